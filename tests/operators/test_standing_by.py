"""Two operators and one Lease: who works, who stands by and says so, and who takes over."""

from __future__ import annotations

import asyncio

import pytest

from replant.execute.lease import Lease
from replant.operator.standing_by import lead
from tests.execute.memory import Api, Clock

NAME = "replant-test"


class Paced(Clock):
    """A clock for several who wait: each lets the others go on."""

    async def wait(self, tasks: object, woken: asyncio.Event, seconds: float) -> None:
        del tasks
        for _turn in range(50):
            if woken.is_set():
                return
            await asyncio.sleep(0)
        self.time += seconds / 5

    async def sleep(self, seconds: float) -> None:
        await self.wait((), asyncio.Event(), seconds)
        await self.wait((), asyncio.Event(), seconds)


class Candidate:
    """An operator that only says that it works."""

    def __init__(self, api: Api, clock: Paced) -> None:
        self.notes: list[str] = []
        self.stop = asyncio.Event()
        self.works = False
        self.lease = Lease(api, api, clock, self.notes.append, NAME)
        self.life = asyncio.ensure_future(
            lead(self.lease, clock, self._work, stop=self.stop, note=self.notes.append)
        )

    async def _work(self, end: asyncio.Event) -> None:
        self.works = True
        await end.wait()
        self.works = False

    def stands_down(self) -> str:
        return next((it for it in self.notes if it.startswith("standing down")), "")


async def until(true: object) -> None:
    for _turn in range(20_000):
        if true():  # type: ignore[operator]
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def test_the_second_stands_down_says_so_and_takes_over_when_the_first_ends() -> None:
    async def story() -> None:
        api, clock = Api(), Paced()
        first = Candidate(api, clock)
        await until(lambda: first.works)
        second = Candidate(api, clock)
        await until(second.stands_down)
        assert not second.works
        assert f"Replant on {first.lease.holder} is at work" in second.stands_down()
        first.stop.set()
        await first.life
        assert not first.works
        await until(lambda: second.works)
        second.stop.set()
        await second.life
        assert api.named(NAME)["spec"].get("holderIdentity") is None

    asyncio.run(story())


def test_one_whose_lease_is_taken_stops_working_and_stands_by() -> None:
    async def story() -> None:
        api, clock = Api(), Paced()
        first = Candidate(api, clock)
        await until(lambda: first.works)
        held = api.named(NAME)
        held["spec"]["holderIdentity"] = "somebody"
        held["metadata"]["resourceVersion"] = "999999"
        await until(lambda: not first.works)
        assert "taken over by somebody" in first.stands_down()
        first.stop.set()
        await first.life

    asyncio.run(story())


def test_what_fails_ends_it_and_gives_the_lease_back() -> None:
    async def story() -> None:
        api, clock = Api(), Paced()
        notes: list[str] = []
        lease = Lease(api, api, clock, notes.append, NAME)

        async def work(_end: asyncio.Event) -> None:
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await lead(lease, clock, work, stop=asyncio.Event(), note=notes.append)
        assert api.named(NAME)["spec"].get("holderIdentity") is None

    asyncio.run(story())
