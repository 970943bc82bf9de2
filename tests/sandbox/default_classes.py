"""Claims without a class, and which one the API server gives them.

The same is asked of real Kubernetes and of the sandbox; what the real one gave is on record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
OLD_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def given(http: httpx.Client, pause: Callable[[], None]) -> dict[str, str | None]:
    """The class that each claim is given, or why it is refused.

    In a pause those who look for default classes see the new ones, and a second passes.
    """
    seen = {}
    with _classes(http, {"no": (DEFAULT, "false")}):
        pause()
        seen["no default"] = _given(http)
    with _classes(http, {"old": (OLD_DEFAULT, "true")}):
        pause()
        seen["a default by its old name"] = _given(http)
    with _classes(http, {"one": (DEFAULT, "true"), "no": (DEFAULT, "false")}):
        pause()
        seen["a default"] = _given(http)
        seen["says that it has none"] = _given(http, spec={"storageClassName": ""})
        seen["says another"] = _given(http, spec={"storageClassName": "no"})
        seen["says it by its old name"] = _given(http, annotations={OLD_CLASS: "no"})
        seen["names a volume"] = _given(http, spec={"volumeName": "some"})
    older = {"x-older": (DEFAULT, "true"), "b-older": (DEFAULT, "true")}
    with _classes(http, older):
        pause()
        seen["two defaults of one age"] = _given(http)
        with _classes(http, {"newer": (DEFAULT, "true")}):
            pause()
            seen["a newer default"] = _given(http)
    return seen


@contextmanager
def _classes(http: httpx.Client, annotated: dict[str, tuple[str, str]]) -> Iterator[None]:
    for name, (annotation, value) in annotated.items():
        metadata = {"name": name, "annotations": {annotation: value}}
        http.post(CLASSES, json={"metadata": metadata, "provisioner": "x/y"}).raise_for_status()
    try:
        yield
    finally:
        for name in annotated:
            http.delete(f"{CLASSES}/{name}").raise_for_status()


def _given(
    http: httpx.Client,
    spec: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> str | None:
    size = {"requests": {"storage": "1Gi"}}
    claim = {
        "metadata": {"name": "some", "annotations": annotations or {}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": size, **(spec or {})},
    }
    answer = http.post(CLAIMS, params={"dryRun": "All"}, json=claim)
    said = answer.json()
    if answer.status_code != httpx.codes.CREATED:
        return f"{answer.status_code} {said['reason']}: {said['message']}"
    found: str | None = said["spec"].get("storageClassName")
    return found
