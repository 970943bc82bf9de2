"""What was done in a run, by its journal: several processes may have carried it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from replant.execute.acts import Evict, RestartLeader
from replant.execute.journal import Entry, Mark

_POD = "pod "
"""How the target of an eviction begins."""


class Deed(NamedTuple):
    """An act, as often as it may have been written down: it is, each time that it is tried."""

    act: str
    step: str
    target: str
    why: str
    """It tells acts on one target apart: a pod that moves twice leaves two nodes."""
    leader: str = ""
    """Whose lead was ended, for the reason is always the same."""


def deeds(entries: Iterable[Entry]) -> Iterator[Deed]:
    """What entries are about that was done or tried."""
    for it in entries:
        if it.mark is Mark.ACT:
            before = (it.backup or {}) if it.act == RestartLeader.__name__ else {}
            yield Deed(it.act, it.step, it.target, it.why, before.get("holder", ""))


def on_this_way(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Those since a run was begun, or turned back."""
    turns = [number for number, it in enumerate(entries, 1) if it.mark is Mark.UNDO]
    return entries[turns[-1] :] if turns else entries


def counted(done: Iterable[Deed]) -> dict[str, int]:
    """How many there are of each act."""
    return dict(Counter(it.act for it in set(done)))


def let_go(done: Iterable[Deed]) -> frozenset[str]:
    """The pods, with their namespace, that were had to leave their node."""
    return frozenset(it.target.removeprefix(_POD) for it in done if it.act == Evict.__name__)
