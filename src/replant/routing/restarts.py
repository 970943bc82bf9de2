"""What a kube-controller-manager that starts makes of disks that are attached, release by release.

Facts are of pkg/controller/volume/attachdetach in kubernetes/kubernetes. A controller that starts
reads from the nodes' status and from VolumeAttachments what is attached, and from pods what is to
be attached. What no pod wants it detaches once its node does not report it in use; after six
minutes it does so anyway, from 1.24.9 and 1.25 on only if the node is not ready at that moment.
"""

from __future__ import annotations

from typing import Final

from replant.gates.versions import Version

_WITHOUT_DRIVER: Final = (Version(1, 24, 12), Version(1, 25, 8), Version(1, 26, 3), Version(1, 27))
"""The releases, minor by minor, from which a missing driver is no longer an error
(kubernetes#115297)."""
_READS_ATTACHMENTS: Final = (
    Version(1, 18, 16), Version(1, 19, 8), Version(1, 20, 3), Version(1, 21),
)  # fmt: skip
"""Those from which a controller that starts reads VolumeAttachments (kubernetes#96617)."""
_TRANSLATES_ATTACHMENTS: Final = (
    Version(1, 19, 12), Version(1, 20, 8), Version(1, 21, 2), Version(1, 22),
)  # fmt: skip
"""Those from which it translates the volumes in them, if it redirects their plugin
(kubernetes#101737). No release of 1.18 does."""


def needs_driver(controller: Version) -> bool:
    """Whether a controller wants no volume on a node that lists a plugin and lacks its driver.

    Pods that run there do not count for one that starts while the driver is missing. It detaches
    their disks six minutes later.
    """
    return not _is_of(controller, _WITHOUT_DRIVER)


def takes_for_in_tree(controller: Version, *, redirects: bool) -> bool:
    """Whether one that starts takes what the driver has attached for attached by the plugin, too.

    It does so only while it has the plugin. It finds no pod that wants the disk under its in-tree
    name, and detaches it.
    """
    if not _is_of(controller, _READS_ATTACHMENTS):
        return False
    return not (redirects and _is_of(controller, _TRANSLATES_ATTACHMENTS))


def _is_of(version: Version, releases: tuple[Version, ...]) -> bool:
    """Whether a version is one of these releases, or a later one of the same minor or the last."""
    same_minor = [it for it in releases if it.first_patch == version.first_patch]
    return version >= (same_minor or releases)[0]
