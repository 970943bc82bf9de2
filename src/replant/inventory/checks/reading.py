"""What could not be read, and so is unknown."""

from __future__ import annotations

from collections.abc import Iterator

from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, ObjectRef, Severity

ABSENT = "absent"
"""Why a kind is unknown: it does not occur in the files. Any other reason is the server's."""


NOT_SERVED = "does not serve"
"""What the reader says of a kind that the server does not know in this version."""


def findings(view: View) -> Iterator[Finding]:
    """What a person must know before believing the rest."""
    absent = sorted(kind for kind, why in view.inventory.unknown.items() if why == ABSENT)
    if absent:
        yield Finding(
            "RP001",
            Severity.INFO,
            ObjectRef("Scan", "input"),
            f"Not in the input, so nothing is said of them: {', '.join(absent)}.",
            "Scan the cluster itself, or add them to the dump.",
        )
    for kind, why in sorted(view.inventory.unknown.items()):
        if why != ABSENT:
            served = NOT_SERVED not in why
            yield Finding(
                "RP002" if served else "RP001",
                Severity.WARNING if served else Severity.INFO,
                ObjectRef("Scan", kind),
                f"{kind} could not be read, so nothing is said of it: {why}",
                "kubectl apply -f deploy/rbac/scan.yaml" if served else "",
            )
    if view.server is None:
        yield Finding(
            "RP003",
            Severity.INFO,
            ObjectRef("Scan", "server"),
            "The server's version is not known, so phases and removals are not judged.",
            "Give it with --server-version, such as --server-version 1.24.17",
        )
