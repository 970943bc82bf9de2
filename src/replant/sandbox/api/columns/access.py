"""The columns of who may do what."""

from __future__ import annotations

from collections.abc import Callable

from replant.objects import Object
from replant.sandbox.api.columns.cells import AGE, Cell, Column, count
from replant.sandbox.validation import at


def _subjects(kind: str) -> Callable[[Object], Cell]:
    def cell(obj: Object) -> str:
        found = (it for it in obj.get("subjects") or () if it.get("kind") == kind)
        return ", ".join(
            f"{it['namespace']}/{it['name']}" if it.get("namespace") else it["name"] for it in found
        )

    return cell


_SUBJECTS = (
    Column("Users", _subjects("User"), wide=True),
    Column("Groups", _subjects("Group"), wide=True),
    Column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "ServiceAccount": (Column("Secrets", count("secrets")), AGE),
    "ClusterRoleBinding": (
        Column("Role", lambda obj: f"ClusterRole/{at(obj, ('roleRef', 'name'))}"),
        AGE,
        *_SUBJECTS,
    ),
    "RoleBinding": (
        Column(
            "Role",
            lambda obj: f"{at(obj, ('roleRef', 'kind'))}/{at(obj, ('roleRef', 'name'))}",
        ),
        AGE,
        *_SUBJECTS,
    ),
}
