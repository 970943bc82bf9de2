"""Who attaches, mounts, provisions, deletes, expands and counts in the sandbox: its own decisions.

``model`` is what is asked about, ``gates`` what a component's gates come to, then one file for each
component that decides. Written from Kubernetes' sources and played against the records of
tests/real, so that the sandbox can contradict the product: nothing here or elsewhere in the sandbox
may import ``replant.routing`` or ``replant.core.routing``.
"""

from replant.sandbox.sides.attaching import attach_side, can_detach
from replant.sandbox.sides.claims import (
    delete_side,
    expand_side,
    migrated_to,
    provision_side,
    provisioner_annotations,
    resizer,
)
from replant.sandbox.sides.counting import count_side
from replant.sandbox.sides.model import AttachController, NodeView, Process, Side, VolumeView
from replant.sandbox.sides.mounting import mount_side

__all__ = [
    "AttachController",
    "NodeView",
    "Process",
    "Side",
    "VolumeView",
    "attach_side",
    "can_detach",
    "count_side",
    "delete_side",
    "expand_side",
    "migrated_to",
    "mount_side",
    "provision_side",
    "provisioner_annotations",
    "resizer",
]
