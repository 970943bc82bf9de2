"""Ceph RADOS block devices."""

from __future__ import annotations

import hashlib

from replant.errors import TranslationError
from replant.objects import Object
from replant.translate.classes import CSI_FS_TYPE, FS_TYPE
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.plugin import READ_ONLY_MANY, READ_WRITE_ONCE, InlineVolume, Plugin

HANDLE_ANNOTATION = "rbd.csi.ceph.com/volume-handle"
"""Where the in-tree form of a native volume keeps its handle, for the way back."""

CLUSTER_ID = "clusterID"
JOURNAL_POOL = "journalPool"
IMAGE_FEATURES = "imageFeatures"
IMAGE_FORMAT = "imageFormat"
IMAGE_NAME = "imageName"
ADMIN_ID = "adminId"
POOL = "pool"
MONITORS = "monitors"

_DYNAMIC_IMAGE = "kubernetes-dynamic-pvc-"
_DEFAULT_POOL, _DEFAULT_FEATURES, _DEFAULT_USER = "rbd", "layering", "admin"
_DEFAULT_SECRET_NAMESPACE = "default"  # noqa: S105
_KEPT_ANNOTATIONS = (CLUSTER_ID, JOURNAL_POOL, IMAGE_FEATURES, IMAGE_FORMAT)
_SECRETS = tuple(
    f"csi.storage.k8s.io/{call}-secret-"
    for call in ("provisioner", "node-stage", "controller-expand")
)
_PARAMETERS: dict[str, tuple[str, ...]] = {
    FS_TYPE: (CSI_FS_TYPE,),
    "imagefeatures": (IMAGE_FEATURES,),
    "imageformat": (IMAGE_FORMAT,),
    "pool": (POOL,),
    "adminid": (ADMIN_ID,),
    "monitors": (MONITORS,),
    "adminsecretname": tuple(f"{secret}name" for secret in _SECRETS),
    "adminsecretnamespace": tuple(f"{secret}namespace" for secret in _SECRETS),
}


class Rbd(Plugin):
    """``rbd``: the handle names the cluster (a hash of its monitors), the image and the pool."""

    name = "kubernetes.io/rbd"
    driver = "rbd.csi.ceph.com"
    source = "rbd"
    parameters = frozenset(_PARAMETERS)

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        kept = draft.annotations
        attributes = {
            IMAGE_NAME: source.text("image"),
            POOL: source.text("pool"),
            IMAGE_FEATURES: kept.get(IMAGE_FEATURES) or _DEFAULT_FEATURES,
            IMAGE_FORMAT: kept.get(IMAGE_FORMAT, ""),
            JOURNAL_POOL: kept.get(JOURNAL_POOL, ""),
            "migration": "true",
            "tryOtherMounters": "true",
        }
        handle = kept.get(HANDLE_ANNOTATION)
        if handle:
            attributes[CLUSTER_ID] = kept.get(CLUSTER_ID, "")
        else:
            cluster = attributes[CLUSTER_ID] = _cluster_id(source)
            handle = _handle(source, cluster)
            attributes["staticVolume"] = "true"
        draft.access_modes = [_access_mode(source)]
        secret = _secret(source.structure("secretRef"))
        return {
            "driver": self.driver,
            "volumeHandle": handle,
            **sparse(fsType=source.text("fsType")),
            "volumeAttributes": attributes,
            **_both(secret),
        }

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        attributes = csi.text_map("volumeAttributes")
        draft.annotate(
            {
                HANDLE_ANNOTATION: csi.required_text("volumeHandle"),
                **{key: attributes.get(key, "") for key in _KEPT_ANNOTATIONS},
            }
        )
        secret = _secret(csi.structure("nodeStageSecretRef"))
        return {
            # The driver finds the monitors by the cluster's ID; they are nowhere in the PV.
            "monitors": [""],
            "image": attributes.get(IMAGE_NAME, ""),
            **sparse(
                pool=attributes.get(POOL),
                user=attributes.get(ADMIN_ID) or _DEFAULT_USER,
                fsType=csi.text("fsType"),
                readOnly=csi.flag("readOnly"),
            ),
            **({} if secret is None else {"secretRef": secret}),
        }

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:  # noqa: ARG002
        """See Plugin."""
        image = source.required_text("image")
        secret = source.structure("secretRef")
        reference = sparse(name=secret.text("name"), namespace=namespace) if secret else {}
        return InlineVolume(
            name=f"{self.driver}-{image}",
            csi={
                "driver": self.driver,
                "volumeHandle": image,
                **sparse(fsType=source.text("fsType")),
                "volumeAttributes": {
                    CLUSTER_ID: _cluster_id(source),
                    POOL: source.text("pool") or _DEFAULT_POOL,
                    "staticVolume": "true",
                    IMAGE_FEATURES: _DEFAULT_FEATURES,
                },
                **_both(reference),
            },
            access_mode=_access_mode(source),
        )

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin."""
        given = [
            (name, value)
            for key, value in draft.parameters.items()
            for name in _PARAMETERS.get(key.lower(), ())
        ]
        draft.replace_parameters(given)
        parameters = draft.parameters
        if not parameters.get(f"{_SECRETS[0]}name"):
            draft.refuse("adminSecretName", "is required and missing")
        if not parameters.get(MONITORS):
            draft.refuse(MONITORS, "is required and missing")
        defaults = {f"{secret}namespace": _DEFAULT_SECRET_NAMESPACE for secret in _SECRETS}
        draft.parameters = {
            "migration": "true",
            POOL: _DEFAULT_POOL,
            **defaults,
            **parameters,
            CLUSTER_ID: _md5(parameters[MONITORS], draft.owner, "parameters.monitors"),
        }
        draft.provisioner = self.driver


def _access_mode(source: Fields) -> str:
    return READ_ONLY_MANY if source.flag("readOnly") else READ_WRITE_ONCE


def _secret(reference: Fields | None) -> Object | None:
    if reference is None:
        return None
    return sparse(name=reference.text("name"), namespace=reference.text("namespace"))


def _both(secret: Object | None) -> Object:
    if secret is None:
        return {}
    return {"nodeStageSecretRef": secret, "controllerExpandSecretRef": dict(secret)}


def _cluster_id(source: Fields) -> str:
    monitors = source.texts("monitors")
    if not any(monitors):
        source.refuse("monitors", "is required and missing")
    return _md5(",".join(monitors), source.owner, source.at("monitors"))


def _handle(source: Fields, cluster: str) -> str:
    image = source.required_text("image").removeprefix(_DYNAMIC_IMAGE)
    pool = _bytes(source.text("pool"), source.owner, source.at("pool")).hex()
    return f"mig_mons-{cluster}_image-{image}_{pool}"


def _md5(text: str, owner: str, field: str) -> str:
    # The driver looks its cluster up by exactly this hash; nothing is kept secret by it.
    return hashlib.md5(_bytes(text, owner, field), usedforsecurity=False).hexdigest()


def _bytes(text: str, owner: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise TranslationError("is not valid Unicode", obj=owner, field=field) from None
