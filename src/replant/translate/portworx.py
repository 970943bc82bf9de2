"""Portworx volumes, with and without security."""

from __future__ import annotations

from replant.objects import Object
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.plugin import (
    READ_ONLY_MANY,
    READ_WRITE_ONCE,
    SECRET_REFERENCES,
    InlineVolume,
    Plugin,
)

SECRET_NAME = "openstorage.io/auth-secret-name"  # noqa: S105
SECRET_NAMESPACE = "openstorage.io/auth-secret-namespace"  # noqa: S105
_SECRET_PARAMETERS = tuple(
    f"csi.storage.k8s.io/{call}-secret-"
    for call in (
        "provisioner",
        "controller-publish",
        "node-stage",
        "node-publish",
        "controller-expand",
        "node-expand",
    )
)


class Portworx(Plugin):
    """``portworx-volume``: a volume ID is the handle."""

    name = "kubernetes.io/portworx-volume"
    driver = "pxd.portworx.com"
    source = "portworxVolume"

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        csi = self._csi(source)
        annotations = draft.annotations
        if SECRET_NAME in annotations and SECRET_NAMESPACE in annotations:
            secret = sparse(name=annotations[SECRET_NAME], namespace=annotations[SECRET_NAMESPACE])
            # Each call to the driver carries the token of the secret that its reference names.
            csi.update((reference, dict(secret)) for reference in sorted(SECRET_REFERENCES))
        return csi

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:  # noqa: ARG002
        """See Plugin."""
        return {
            "volumeID": csi.required_text("volumeHandle"),
            **sparse(fsType=csi.text("fsType"), readOnly=csi.flag("readOnly")),
        }

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:  # noqa: ARG002
        """See Plugin."""
        csi = self._csi(source)
        return InlineVolume(
            name=f"{self.driver}-{csi['volumeHandle']}",
            csi=csi,
            access_mode=READ_ONLY_MANY if source.flag("readOnly") else READ_WRITE_ONCE,
        )

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin."""
        parameters: list[tuple[str, str]] = []
        for key, value in draft.parameters.items():
            if key.lower() in (SECRET_NAME, SECRET_NAMESPACE):
                end = "name" if key.lower() == SECRET_NAME else "namespace"
                parameters += [(f"{start}{end}", value) for start in _SECRET_PARAMETERS]
            else:
                parameters.append((key, value))
        draft.replace_parameters(parameters)
        draft.provisioner = self.driver

    def _csi(self, source: Fields) -> Object:
        return {
            "driver": self.driver,
            "volumeHandle": source.required_text("volumeID"),
            **sparse(fsType=source.text("fsType")),
        }
