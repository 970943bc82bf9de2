"""What objects of every kind have, names and labels above all, and what selects them by these."""

from __future__ import annotations

from msgspec import Struct, field

Strings = dict[str, str]


class OwnerReference(Struct, gc=False):
    """What made an object."""

    kind: str = ""
    name: str = ""
    controller: bool | None = None


class Metadata(Struct, gc=False):
    """Names, and what tells the state of an object."""

    name: str = ""
    namespace: str | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    deletionTimestamp: str | None = None  # noqa: N815 - the API's own name, as in all records
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class Record(Struct, gc=False, kw_only=True):
    """What all objects have."""

    metadata: Metadata = field(default_factory=Metadata)


class LabelRequirement(Struct, gc=False):
    """One of a selector's expressions."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct, gc=False):
    """Which objects are meant, by their labels."""

    matchLabels: Strings | None = None  # noqa: N815
    matchExpressions: list[LabelRequirement] | None = None  # noqa: N815
