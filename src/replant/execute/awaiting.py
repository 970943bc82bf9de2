"""A switch that is waited for: what counts is what is seen, and not what its actuator says."""

from __future__ import annotations

from dataclasses import dataclass

from replant.errors import Final
from replant.execute.acts import ObservePlace, Switch
from replant.execute.actuators import Replica

OBSERVE_AGAIN = 5.0
GRACE = 30.0
"""So long a switch may still turn out well whose actuator said that it failed."""


@dataclass(slots=True)
class AwaitedSwitch:
    """What was seen of a place, when it was switched, and what its actuator has said of that."""

    observed: tuple[Replica, ...] | None = None
    observed_at: float | None = None
    switched: float | None = None
    failure: str = ""

    def learn(self, act: ObservePlace | Switch, outcome: object, now: float) -> None:
        """Note what has come of an act; after another error it is decided upon again."""
        match act, outcome:
            case ObservePlace(), (tuple() | None):
                self.observed, self.observed_at = outcome, now
            case Switch(), (None | Final()):
                # What was seen before it tells nothing any more.
                self.switched, self.observed_at = now, None
                self.failure = str(outcome or "")

    def has_failed(self, now: float) -> bool:
        """Whether it was said to have failed, and nothing else has been seen for long enough."""
        return bool(self.failure) and now > (self.switched or now) + GRACE

    def is_to_be_observed(self, now: float) -> bool:
        """Whether it is time to look again."""
        return self.observed_at is None or now >= self.observed_at + OBSERVE_AGAIN
