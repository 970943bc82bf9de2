"""Volumes that a pod names by itself: as a PersistentVolume, a claim, and a reference to it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from replant.errors import TranslationError
from replant.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Object, name_of
from replant.translate import api, registry
from replant.translate.fields import Fields, sparse
from replant.translate.plugin import SECRET_REFERENCES

_NAME_LENGTH = 63
"""Short enough to be a label's value too."""


@dataclass(frozen=True, slots=True)
class InlineDefaults:
    """What a pod's own volume does not say, but a PersistentVolume and a claim must."""

    capacity: str = "1Gi"
    namespace: str = "default"
    """Of a pod or template that names none."""


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """A pod's volumes, with what they now refer to."""

    volumes: tuple[Object, ...]
    added: tuple[Object, ...]
    notes: tuple[str, ...]


def translate_pod_volumes(whole: Fields, spec: Fields, inline: InlineDefaults) -> PodVolumes | None:
    """The volumes of a pod's spec, or None where all of them may stay as they are."""
    metadata = whole.structure("metadata")
    namespace = metadata.text("namespace") if metadata else ""
    volumes: list[Object] = []
    added: list[Object] = []
    notes: list[str] = []
    for volume in spec.structures("volumes"):
        plugin_name = api.plugin_of(volume.data)
        if plugin_name is None:
            volumes.append(volume.data)
            continue
        pv, claim = _volume_and_claim(plugin_name, volume, namespace, inline)
        added += [pv, claim]
        volumes.append(_reference(volume, claim, registry.BY_NAME[plugin_name].source))
        notes.append(_note(whole, volume, pv, namespace, inline))
    return PodVolumes(tuple(volumes), tuple(added), tuple(notes)) if added else None


def _volume_and_claim(
    plugin_name: str, volume: Fields, namespace: str, inline: InlineDefaults
) -> tuple[Object, Object]:
    home = namespace or inline.namespace
    spec = api.inline_volume(volume, home)["spec"]
    name = _name(plugin_name, home, spec)
    pv = {
        "apiVersion": "v1",
        "kind": PERSISTENT_VOLUME,
        "metadata": {"name": name},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": inline.capacity},
            "claimRef": {
                "apiVersion": "v1",
                "kind": PERSISTENT_VOLUME_CLAIM,
                "name": name,
                "namespace": home,
            },
            "csi": spec["csi"],
            # The pod never owned the disk's life, so its claim must not either.
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "volumeMode": spec["volumeMode"],
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": PERSISTENT_VOLUME_CLAIM,
        "metadata": {"name": name, **sparse(namespace=namespace)},
        "spec": {
            "accessModes": list(spec["accessModes"]),
            "resources": {"requests": {"storage": inline.capacity}},
            # Not the default class: nothing must be provisioned for this claim.
            "storageClassName": "",
            "volumeMode": spec["volumeMode"],
            "volumeName": name,
        },
    }
    return storable(pv), claim


def storable(pv: Object) -> Object:
    """The volume with secret references that the API server accepts.

    In memory Kubernetes makes do with references that say no namespace, or nothing at all; a
    stored one must say both. The in-tree plugins took the claim's namespace.
    """
    csi = pv["spec"]["csi"]
    if SECRET_REFERENCES.isdisjoint(csi):
        return pv
    references = SECRET_REFERENCES & csi.keys()
    if all(_is_complete(csi[key]) for key in references):
        return pv
    completed = dict(csi)
    for key in sorted(references):
        if csi[key].get("name"):
            completed[key] = _completed(pv, key)
        else:
            del completed[key]
    return {**pv, "spec": {**pv["spec"], "csi": completed}}


def _is_complete(reference: Object) -> bool:
    return bool(reference.get("name") and reference.get("namespace"))


def _completed(pv: Object, key: str) -> Object:
    reference: Object = pv["spec"]["csi"][key]
    claim = pv["spec"].get("claimRef") or {}
    namespace = reference.get("namespace") or claim.get("namespace")
    if not namespace:
        raise TranslationError(
            "says no namespace of its secret, and no claimRef does",
            obj=name_of(pv, PERSISTENT_VOLUME),
            field=f"spec.csi.{key}",
        )
    return {**reference, "namespace": namespace}


def _name(plugin_name: str, namespace: str, spec: Object) -> str:
    """A valid name that says what it is, the same for the same disk, use and namespace."""
    handle = spec["csi"]["volumeHandle"]
    identity = json.dumps([namespace, spec], sort_keys=True).encode()
    digest = hashlib.sha256(identity).hexdigest()[:10]
    plugin = plugin_name.removeprefix(registry.PREFIX)
    room = _NAME_LENGTH - len(plugin) - len(digest) - 2
    words = re.sub(r"[^a-z0-9]+", "-", handle.lower()).strip("-")
    if len(words) > room:
        # The end says most; a word cut in half says nothing.
        _, _, words = words[-room - 1 :].partition("-")
    return "-".join(part for part in (plugin, words, digest) if part)


def _reference(volume: Fields, claim: Object, source: str) -> Object:
    fields = volume.structure(source)
    read_only = fields is not None and fields.flag("readOnly")
    reference = {"claimName": claim["metadata"]["name"], **sparse(readOnly=read_only)}
    return {
        ("persistentVolumeClaim" if key == source else key): (reference if key == source else value)
        for key, value in volume.data.items()
    }


def _note(whole: Fields, volume: Fields, pv: Object, namespace: str, inline: InlineDefaults) -> str:
    name = pv["metadata"]["name"]
    where = "" if namespace else f", expected in namespace {inline.namespace} (--namespace)"
    return (
        f"{whole.owner}: {volume.path} becomes PersistentVolume and claim {name}, "
        f"taken to hold {inline.capacity} (--inline-capacity){where}"
    )
