"""ControllerRevisions: the templates that a StatefulSet or a DaemonSet has had."""

from __future__ import annotations

from dataclasses import dataclass

from replant.objects import Object
from replant.sandbox.controllers.base import key_of
from replant.sandbox.controllers.workloads import pods
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.resources import CONTROLLER_REVISIONS, Resource
from replant.sandbox.shelves import Entry
from replant.sandbox.validation import at

HASH = "controller-revision-hash"
"""The label by which a pod says which template it was made of."""


@dataclass(frozen=True)
class Revision:
    """One template."""

    name: str
    number: int
    template: Object
    entry: Entry

    @classmethod
    def of(cls, entry: Entry) -> Revision:
        """As it is stored."""
        obj = entry.value()
        said = at(obj, ("data", "spec", "template"))
        template = {name: it for name, it in said.items() if name != "$patch"} if said else {}
        return cls(entry.name, obj.get("revision", 0), template, entry)


def history(family: Family, resource: Resource, obj: Object) -> list[Revision]:
    """The templates that a workload has had, the oldest first."""
    made = family.made(resource, obj, CONTROLLER_REVISIONS)
    return sorted(map(Revision.of, made), key=lambda it: it.number)


def current(
    family: Family, resource: Resource, obj: Object, known: list[Revision], first: str = ""
) -> Revision | None:
    """The revision of a workload's template as it is now, made if there is none yet.

    A workload that was loaded without its history has pods of a revision whose name somebody else
    has chosen: that is then the name of the ``first``.
    """
    template = obj["spec"]["template"]
    number = known[-1].number + 1 if known else 1
    for revision in known:
        if revision.template == template:
            return revision if revision is known[-1] else _renumbered(family, revision, number)
    name = "" if known else first
    name = name or f"{obj['metadata']['name']}-{pods.digest(template)}"
    labels = (template.get("metadata") or {}).get("labels") or {}
    made = {
        "metadata": {
            "name": name,
            "labels": {**labels, HASH: name.rpartition("-")[2]},
            "ownerReferences": [pods.owner_reference(resource, obj)],
        },
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": number,
    }
    entry = family.create(CONTROLLER_REVISIONS, made, obj["metadata"]["namespace"])
    return Revision.of(entry) if entry else None


def _renumbered(family: Family, revision: Revision, number: int) -> Revision | None:
    """What was rolled back to is the newest once more."""

    def write(obj: Object) -> None:
        obj["revision"] = number

    entry = family.world.change(CONTROLLER_REVISIONS, key_of(revision.entry), write)
    return Revision.of(entry) if entry else None


def forget(family: Family, obj: Object, known: list[Revision], used: set[str]) -> None:
    """Let go of the oldest that nobody uses, until no more are left than are to be kept."""
    unused = [it for it in known if it.name not in used]
    limit = obj["spec"].get("revisionHistoryLimit", 10)
    for revision in unused[: max(len(unused) - limit, 0)]:
        family.remove(revision.entry)
