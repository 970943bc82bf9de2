"""What replacing a volume in use must not touch: its VolumeAttachments, and the pods that use it.

Whoever owns them may touch them meanwhile. So what is not as it was is told, and fails nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from replant.execute.world import World
from replant.plan.model import VolumeSwap

_UNTOUCHED = "for replacing a volume does not touch it"


@dataclass(frozen=True, slots=True)
class Bystanders:
    """Those of some volumes, at one moment."""

    attachments: Mapping[str, frozenset[tuple[str, str]]]
    """By volume, its VolumeAttachments: what each is called, and its uid."""
    pods: Mapping[str, Mapping[str, tuple[str, int]]]
    """By claim, the pods that use it: of each, by its name, its uid and how often it restarted."""

    @classmethod
    def of(cls, volumes: Iterable[VolumeSwap], world: World) -> Bystanders:
        """Those of the volumes that may be in use; others must be let go, and tell nothing."""
        used = [it for it in volumes if not it.free_of]
        names, claims = {it.name for it in used}, {it.claim for it in used if it.claim}
        attachments: dict[str, frozenset[tuple[str, str]]] = {}
        for node in world.nodes() if names else ():
            for it in world.attachments_on(node.metadata.name):
                name = it.spec.source.persistent_volume_name or ""
                if name in names:
                    one = it.metadata.name, it.metadata.uid
                    attachments[name] = attachments.get(name, frozenset()) | {one}
        pods: dict[str, dict[str, tuple[str, int]]] = {}
        for pod in world.pods() if claims else ():
            for claim in claims.intersection(pod.claims):
                pods.setdefault(claim, {})[pod.name] = pod.metadata.uid, pod.restarts
        return cls(attachments, pods)

    def touched(self, now: Bystanders, volumes: Iterable[VolumeSwap]) -> Iterator[str]:
        """What a person should know of those that are not what they were."""
        for volume in volumes:
            name = f"PersistentVolume {volume.name}"
            gone = self.attachments.get(volume.name, frozenset()) - now.attachments.get(
                volume.name, frozenset()
            )
            for attachment, _uid in sorted(gone):
                yield (
                    f"VolumeAttachment {attachment} of {name} is gone since the step began: its "
                    f"pod was stopped or moved meanwhile, {_UNTOUCHED}"
                )
            there = now.pods.get(volume.claim, {})
            for pod, (uid, restarts) in self.pods.get(volume.claim, {}).items():
                uid_now, restarts_now = there.get(pod, ("", 0))
                what = ""
                if uid_now != uid:
                    what = "is another one" if uid_now else "is gone"
                elif restarts_now > restarts:
                    what = "was restarted"
                if what:
                    yield (
                        f"Pod {pod}, which used {name}, {what} since the step began: look at its "
                        f"events, {_UNTOUCHED}"
                    )
