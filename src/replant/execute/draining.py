"""Which pods leave a node in a drain, which stay, and which go only if a person says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from replant.execute.world import MIRROR, OVER, Pod


@dataclass(frozen=True, slots=True)
class DrainRules:
    """What a person has allowed."""

    naked_pods: bool = False
    """Pods that nobody would make again."""
    empty_dir_data: bool = False
    """Data in emptyDir volumes, which goes with its pod."""


@dataclass(slots=True)
class Drain:
    """The pods of one node."""

    go: list[Pod] = field(default_factory=list)
    leaving: list[Pod] = field(default_factory=list)
    """They were told to go, and have not yet ended."""
    refused: list[str] = field(default_factory=list)
    """Those that are not touched, each as a sentence that says why and what to do."""

    @property
    def over(self) -> bool:
        """Whether nothing is left that should go."""
        return not (self.go or self.leaving or self.refused)


def drain(pods: Iterable[Pod], rules: DrainRules) -> Drain:
    """What is to become of the pods of a node."""
    found = Drain()
    for pod in pods:
        if _stays(pod):
            continue
        if pod.metadata.deletion_timestamp:
            found.leaving.append(pod)
        elif refusal := _refusal(pod, rules):
            found.refused.append(refusal)
        else:
            found.go.append(pod)
    return found


def _stays(pod: Pod) -> bool:
    """A static pod or a DaemonSet's would come back at once; one that has ended holds nothing."""
    owner = pod.metadata.owner
    return (
        pod.metadata.annotation(MIRROR) is not None
        or (owner is not None and owner.kind == "DaemonSet")
        or pod.status.phase in OVER
    )


def _refusal(pod: Pod, rules: DrainRules) -> str:
    if pod.metadata.owner is None and not rules.naked_pods:
        return (
            f"pod {pod.name} on {pod.spec.node_name} has no controller that would make it again "
            "(delete it, or allow it with --delete-naked-pods)"
        )
    if not rules.empty_dir_data and any(it.empty_dir for it in pod.spec.volumes or ()):
        return (
            f"pod {pod.name} on {pod.spec.node_name} has data in an emptyDir, which would be lost "
            "(delete it, or allow it with --delete-emptydir-data)"
        )
    return ""
