"""What is seen of one driver, and what a decision about it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from replant.drivers.catalog import Cloud, Driver
from replant.drivers.credentials import version_of
from replant.drivers.kinds import Key
from replant.drivers.naming import Names, names_of
from replant.drivers.operand import Facts, Split
from replant.drivers.removal import Uses
from replant.drivers.settings import Credentials, Settings
from replant.drivers.writes import Write
from replant.objects import Object


class Look(StrEnum):
    """Look at this, and ask again."""

    USES = "what uses the driver"
    SHARE_TYPES = "the share types of Manila"
    WORKLOADS = "every Deployment, StatefulSet and DaemonSet"


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
    """What is there of the keys that ``wanted_keys`` names. A Secret needs its metadata
    and the keys of its data, with nothing behind them."""
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
    """OpenShift's Storage ``cluster``: it keeps what an adoption needs; without it the CR does."""
    vendor: Object | None = None
    """ClusterCSIDriver of the driver's name, or Portworx's StorageCluster: read and reported."""
    uses: Uses | None = None
    """Looked at when asked for."""
    share_types: tuple[str, ...] | None = None
    """Of Manila; none for a cloud without that service. Looked at when asked for."""
    share_trouble: str = ""
    """Why they could not be asked for, if they could not."""
    workloads: Sequence[Object] | None = None
    """All Deployments, StatefulSets and DaemonSets. Looked at when asked for."""
    split: Split | None = None

    @property
    def names(self) -> Names:
        """What its objects are called."""
        elsewhere = self.split.namespace if self.split else ""
        return names_of(self.driver, self.cr, self.objects, elsewhere)

    @property
    def keeper(self) -> Object | None:
        """What keeps in mind how far an adoption is."""
        return self.storage or self.cr

    @property
    def controller(self) -> Object | None:
        """The Deployment, if it is there."""
        names = self.names
        return self.objects.get(("Deployment", names.controller_namespace, names.controller))

    @property
    def node(self) -> Object | None:
        """The DaemonSet, if it is there."""
        names = self.names
        return self.objects.get(("DaemonSet", names.namespace, names.node))

    @property
    def csi_driver(self) -> Object | None:
        """The CSIDriver, if it is there, whoever has made it."""
        return self.objects.get(("CSIDriver", "", self.driver.name))

    @property
    def secret(self) -> Object | None:
        """The credentials, if they are there."""
        return self.objects.get(self.secret_key)

    @property
    def secret_key(self) -> Key:
        """Where they are looked for."""
        return "Secret", self.names.controller_namespace, self.driver.secret

    def facts(self, settings: Settings) -> Facts:
        """What the operand depends on, apart from its settings."""
        status = (self.infrastructure or {}).get("status") or {}
        platform = status.get("platformStatus") or {}
        single = self.nodes == 1 or status.get("infrastructureTopology") == "SingleReplica"
        by_secret = settings.credentials is Credentials.SECRET
        return Facts(
            self.names,
            credentials=version_of(self.secret) if by_secret else "",
            asks=by_secret and "CredentialsRequest" in self.served,
            snapshots="VolumeSnapshotClass" in self.served,
            openshift=self.infrastructure is not None,
            replicas=settings.replicas or (1 if single else 2),
            region=str((platform.get("aws") or {}).get("region") or ""),
            split=self.split,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now: look, or else write, or else wait."""

    writes: tuple[Write, ...] = ()
    look: tuple[Look, ...] = ()
    """If there are any: look at these first, and ask again; nothing is written before."""
    again: float | None = None
    """Ask again after so many seconds, even if nothing was heard; None to wait for a change."""
    why: str = ""
