"""Who serves an operation on a volume, or that nobody can, and why. Pure.

``model`` is what is asked about and what is answered, ``rules`` every rule there is, then one
file for each component that decides: ``attaching`` (the attach/detach controller), ``mounting``
(the kubelet), ``claims`` (the controllers of claims and volumes), ``limits`` (the scheduler).
``restarts`` is what a controller that starts makes of what is attached.
``table`` puts a volume's routes together.
"""

from replant.routing.attaching import attach, detach
from replant.routing.claims import (
    delete,
    expand,
    marks,
    migrated_to,
    provision,
    provisioner_annotations,
    resizer,
)
from replant.routing.limits import count
from replant.routing.model import (
    FIRST,
    AttachController,
    NodeView,
    Operation,
    Process,
    Route,
    Side,
    VolumeView,
    is_attached,
)
from replant.routing.mounting import mount, unmount
from replant.routing.rules import RULES, Rule
from replant.routing.table import routes

__all__ = [
    "FIRST",
    "RULES",
    "AttachController",
    "NodeView",
    "Operation",
    "Process",
    "Route",
    "Rule",
    "Side",
    "VolumeView",
    "attach",
    "count",
    "delete",
    "detach",
    "expand",
    "is_attached",
    "marks",
    "migrated_to",
    "mount",
    "provision",
    "provisioner_annotations",
    "resizer",
    "routes",
    "unmount",
]
