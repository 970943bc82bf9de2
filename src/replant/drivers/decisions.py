"""What comes next for one driver, from what is seen of it.

Whoever acts looks, asks ``decide``, writes what it says in its order, looks and asks again until
there is nothing to write. Nothing is remembered but what objects say, so it may be killed between
any two writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from replant.drivers.catalog import Cloud, Driver
from replant.drivers.crds import default_cr
from replant.drivers.kinds import Key, key_of
from replant.drivers.operand import Facts, Split, operand
from replant.drivers.sameness import HASH, annotations_of, covers, marked
from replant.drivers.settings import settings_of
from replant.drivers.values import Values
from replant.objects import Object


class Look(StrEnum):
    """Look at this, and ask again."""

    USES = "what uses the driver"
    SHARE_TYPES = "the share types of Manila"
    WORKLOADS = "every Deployment, StatefulSet and DaemonSet"


@dataclass(frozen=True, slots=True)
class Uses:
    """What uses a driver, each as a person calls it, such as ``PersistentVolume pv-1``."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one driver; None is what is not there, or has not been looked at."""

    driver: Driver
    now: float
    """Seconds since 1970."""
    cloud: Cloud | None = None
    """Where the cluster is; see ``catalog.cloud_of``."""
    cr: Object | None = None
    objects: Mapping[Key, Object] = field(default_factory=dict)
    """What is there of the keys that ``wanted_keys`` names. A Secret needs its metadata only."""
    classes: Sequence[Object] = ()
    """Every StorageClass of the cluster."""
    nodes: int = 0
    """How many nodes there are: one alone gets one replica of a controller."""
    served: frozenset[str] = frozenset()
    """Kinds of others that the cluster serves: CredentialsRequest, VolumeSnapshotClass, ..."""
    infrastructure: Object | None = None
    """OpenShift's, called ``cluster``."""
    subscriptions: Sequence[Object] = ()
    """Every Subscription of OLM."""
    storage: Object | None = None
    """OpenShift's Storage ``cluster``: it keeps what an adoption must not forget. Else the CR does."""
    vendor: Object | None = None
    """ClusterCSIDriver of the driver's name, or Portworx's StorageCluster: read and reported."""
    uses: Uses | None = None
    """Looked at when asked for."""
    share_types: tuple[str, ...] | None = None
    """Of Manila; none for a cloud without that service. Looked at when asked for."""
    workloads: Sequence[Object] | None = None
    """All Deployments, StatefulSets and DaemonSets. Looked at when asked for."""
    split: Split | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply, by force, under our field manager."""

    object: Object


@dataclass(frozen=True, slots=True)
class Create:
    """Create it if it is not there; somebody's own is never overwritten."""

    object: Object


@dataclass(frozen=True, slots=True)
class Replace:
    """Put it in the place of what was seen: it has that uid and resourceVersion."""

    object: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this very object, as it was seen: by its uid and resourceVersion."""

    object: Object


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set these annotations on an object as it was seen (its resourceVersion); None removes one."""

    object: Object
    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Finalizers:
    """Give an object, as it was seen, exactly these finalizers."""

    object: Object
    finalizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """Write the status of a CR, as it was seen."""

    object: Object
    status: Object


Write = Apply | Create | Replace | Delete | Annotate | Finalizers | Status


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now: look, or else write, or else wait."""

    writes: tuple[Write, ...] = ()
    look: tuple[Look, ...] = ()
    """If there are any: look at these first, and ask again; nothing is written before."""
    again: float | None = None
    """Ask again after so many seconds, even if nothing was heard; None to wait for a change."""
    why: str = ""


def wanted_keys(seen: Seen, values: Values) -> frozenset[Key]:
    """All that has to be looked at for a driver, apart from what ``Seen`` has fields for.

    Which it is follows from the driver, its CR, the Storage, ``served`` and the split.
    """
    return frozenset(
        key_of(it) for it in operand(seen.driver, settings_of(seen.cr or {}), values, Facts())
    )


def decide(seen: Seen, values: Values) -> Decision:
    """What comes next for a driver."""
    if seen.cr is None:
        return Decision((Create(default_cr(seen.driver)),), why="a default driver has a CR")
    settings = settings_of(seen.cr)
    writes: list[Write] = []
    for wanted in operand(seen.driver, settings, values, Facts()):
        obj = marked(wanted)
        found = seen.objects.get(key_of(obj))
        if found is None or annotations_of(found).get(HASH) != annotations_of(obj)[HASH] or not covers(found, obj):
            writes.append(Apply(obj))
    return Decision(tuple(writes))
