"""Who writes an object from a repository, by the marks that it leaves on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

OWNERS = {
    "argocd.argoproj.io/instance": "Argo CD",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "meta.helm.sh/release-name": "Helm",
}
"""Labels and annotations by which those who write objects from a repository know their own."""

INSTANCE = "app.kubernetes.io/instance"
"""By this label Argo CD knew its own up to 2.x, unless told otherwise. Charts give it to workloads
as well, whoever installs them."""
MANAGED_BY = "app.kubernetes.io/managed-by"


def owner_of(marks: Iterable[str]) -> str:
    """Who writes an object with these labels and annotations; nothing where none is sure to."""
    said = frozenset(marks)
    return next((owner for key, owner in OWNERS.items() if key in said), "")


def owner_of_stored(labels: Mapping[str, str], annotations: Iterable[str]) -> str:
    """The same of a volume or a class, to which nobody else gives the labels of charts."""
    if known := owner_of((*labels, *annotations)):
        return known
    charted = INSTANCE in labels or labels.get(MANAGED_BY) == "Helm"
    return "Argo CD or Helm" if charted else ""
