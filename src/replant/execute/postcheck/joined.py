"""Nodes that have joined with other gates since a run was done: nobody has switched them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from replant.execute.census_model import Census, Joined
from replant.execute.journal import Journals, Run, State
from replant.execute.verifying.comparison import Comparison


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """A node, and in what its CSINode differs from those of the run's nodes."""

    name: str
    run: str
    """The last one that came to its end."""
    missing: tuple[str, ...]
    """Plugins that it should list."""
    surplus: tuple[str, ...]
    """Plugins that it should not list."""


async def find_joined(
    journals: Journals, listed: Mapping[str, frozenset[str]]
) -> tuple[JoinedNode, ...]:
    """Those that differ, by what each CSINode lists; none while a run is not finished."""
    runs = await journals.runs()
    if not runs or any(it.state is State.UNFINISHED for it in runs):
        return ()
    return tuple(joined(await journals.read(runs[-1].id), listed))


def joined(run: Run, listed: Mapping[str, frozenset[str]]) -> Iterator[JoinedNode]:
    """The nodes that a finished run's plan does not know and that differ from those it knows."""
    plan = replace(run.plan, steps=()) if run.undoing else run.plan
    nothing = Joined(Census())
    comparison = Comparison(plan, nothing, nothing)
    for name, plugins in sorted(listed.items()):
        redirected = comparison.redirected(name)
        if comparison.is_planned(name) or redirected is None:
            continue
        lists = plugins & frozenset(plan.plugins)
        if lists != redirected:
            missing, surplus = sorted(redirected - lists), sorted(lists - redirected)
            yield JoinedNode(name, run.header.id, tuple(missing), tuple(surplus))
