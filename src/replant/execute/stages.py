"""One step as something that is decided about again and again, until it is done."""

from __future__ import annotations

from typing import Protocol

from replant.execute.acts import Act, Decision
from replant.execute.world import World


class Stage(Protocol):
    """A step under way. It remembers when what was seen; what is so it sees each time."""

    def decide(self, world: World, now: float) -> Decision:
        """What to do now, from what is seen now."""
        ...

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """What has come of an act: what was seen, or the error it ended with."""
        ...
