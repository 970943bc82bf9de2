"""What the API server completes and refuses of what is created, by what else there is.

Who looks after objects that were there all along is not asked: they are as they were left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from replant.gates.versions import Version
from replant.objects import DEFAULT_CLASS, Object
from replant.sandbox.admission import limit_ranges, quotas
from replant.sandbox.defaults import quality
from replant.sandbox.refusals import forbidden
from replant.sandbox.resources import (
    LIMIT_RANGES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    STORAGE_CLASSES,
    Resource,
)
from replant.sandbox.store import Store

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_SEVERAL_DEFAULTS = Version(1, 26)
"""From here on the newest of several default classes is taken; before, that was a mistake."""


class Admission:
    """Completes what is created in a store, whoever creates it, or refuses it."""

    def __init__(self, store: Store, version: Callable[[], str]) -> None:
        self._store = store
        self._version = version
        store.admit = self._admit

    def _admit(self, resource: Resource, obj: Object) -> None:
        if resource not in (PODS, PERSISTENT_VOLUME_CLAIMS):
            return
        namespace = obj["metadata"].get("namespace", "")
        ranges = self._store.list(LIMIT_RANGES, namespace)
        if resource is PODS:
            limit_ranges.complete(obj, ranges)
            if ranges and "status" in obj:
                obj["status"]["qosClass"] = quality(obj)
        elif not _says_class(obj):
            self._give_class(resource, obj)
        refusal_of = (
            limit_ranges.refusal_of_pod if resource is PODS else limit_ranges.refusal_of_claim
        )
        reasons = [refusal_of(obj, it) for it in ranges]
        if quotas_here := self._store.list(RESOURCE_QUOTAS, namespace):
            others = self._store.list(resource, namespace)
            now = self._store.now()
            reasons += [quotas.refusal(obj, it, others, now) for it in quotas_here]
        if why := next(filter(None, reasons), ""):
            raise forbidden(resource, obj["metadata"].get("name", ""), why)

    def _give_class(self, resource: Resource, obj: Object) -> None:
        defaults = default_classes(self._store.list(STORAGE_CLASSES))
        if len(defaults) > 1 and Version.parse(self._version()) < _SEVERAL_DEFAULTS:
            why = f"Internal error occurred: {len(defaults)} default StorageClasses were found"
            raise forbidden(resource, obj["metadata"]["name"], why)
        if defaults:
            obj["spec"]["storageClassName"] = defaults[0]


def _says_class(claim: Object) -> bool:
    """Whether a claim says its class: to say that it has none is to say it too."""
    annotations = claim["metadata"].get("annotations") or {}
    return _OLD_CLASS in annotations or claim["spec"].get("storageClassName") is not None


def default_classes(classes: Iterable[Object]) -> list[str]:
    """The names of those that serve claims without a class, the one that is taken first."""
    found = [it["metadata"] for it in classes]
    found = [it for it in found if _is_default(it.get("annotations") or {})]
    by_name = sorted(found, key=lambda it: str(it["name"]))
    newest_first = sorted(by_name, key=lambda it: str(it["creationTimestamp"]), reverse=True)
    return [it["name"] for it in newest_first]


def _is_default(annotations: dict[str, str]) -> bool:
    return any(annotations.get(key) == "true" for key in DEFAULT_CLASS)
