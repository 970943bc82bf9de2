"""One Replant at a time: who gets the lease, who is told so, and by whose clock."""

from __future__ import annotations

import asyncio

import pytest

from replant.cluster.ports import LEASES
from replant.errors import Final, Refused
from replant.execute.lease import DURATION, NAME, UNFINISHED, Lease, look
from replant.execute.namespace import NAMESPACE
from tests.execute.memory import Api, Clock


def lease(api: Api, clock: Clock) -> Lease:
    return Lease(api, api, clock, lambda _: None)


def holder(api: Api) -> str | None:
    return api.named(NAME)["spec"].get("holderIdentity")  # type: ignore[no-any-return]


def test_the_first_has_it_until_it_gives_it_back() -> None:
    async def story() -> None:
        api, clock = Api(), Clock()
        first, second = lease(api, clock), lease(api, clock)
        await first.acquire()
        assert holder(api) == first.holder
        await first.release()
        assert holder(api) is None
        await second.acquire()
        assert holder(api) == second.holder
        assert clock.slept == []

    asyncio.run(story())


@pytest.mark.parametrize("skew", [-86_400.0, 0.0, 86_400.0])
def test_one_that_is_alive_is_seen_whatever_the_clocks_say(skew: float) -> None:
    async def story() -> None:
        api, mine, theirs = Api(), Clock(), Clock()
        theirs.time += skew
        other = lease(api, theirs)
        await other.acquire()

        async def renewing() -> None:
            while True:
                await asyncio.sleep(0)
                await other.renew({})

        at_work = asyncio.create_task(renewing())
        with pytest.raises(Refused, match="is at work in this cluster"):
            await lease(api, mine).acquire()
        at_work.cancel()
        assert holder(api) == other.holder

    asyncio.run(story())


def test_one_that_is_dead_is_waited_for_and_then_stopped_for_good() -> None:
    async def story() -> None:
        api, clock = Api(), Clock()
        dead, next_one = lease(api, clock), lease(api, clock)
        await dead.acquire()
        await next_one.acquire()
        assert sum(clock.slept) >= DURATION
        with pytest.raises(Refused, match="taken over by"):
            await dead.renew({})
        assert holder(api) == next_one.holder

    asyncio.run(story())


def test_who_ends_while_it_is_waited_for_has_the_last_word() -> None:
    async def story() -> None:
        api, clock = Api(), Clock()
        ending = lease(api, clock)
        await ending.acquire()
        await ending.mark("run-1 in a file")

        class Meanwhile(Clock):
            async def sleep(self, seconds: float) -> None:
                if not self.slept:
                    await ending.mark("")
                    await ending.release()
                await super().sleep(seconds)

        next_one = lease(api, Meanwhile())
        await next_one.acquire()
        next_one.refuse_beside()  # there is nothing unfinished any more
        assert UNFINISHED not in (api.named(NAME)["metadata"].get("annotations") or {})

    asyncio.run(story())


def test_a_run_that_is_unfinished_elsewhere_is_known_to_the_next() -> None:
    async def story() -> None:
        api, clock = Api(), Clock()
        stopped = lease(api, clock)
        await stopped.acquire()
        await stopped.mark("run-1 in a file")
        await stopped.release()
        next_one = lease(api, clock)
        await next_one.acquire()
        next_one.refuse_beside("run-1")
        with pytest.raises(Refused, match="run-1 in a file"):
            next_one.refuse_beside("run-2")

    asyncio.run(story())


@pytest.mark.parametrize("what", ["acquire", "renew", "release"])
def test_an_answer_that_is_lost_does_not_cost_the_lease(what: str) -> None:
    async def story() -> None:
        api, clock = Api(), Clock()
        mine = lease(api, clock)
        if what != "acquire":
            await mine.acquire()
        api.lose_answers = 1
        await {"acquire": mine.acquire, "renew": lambda: mine.renew({}), "release": mine.release}[
            what
        ]()
        assert holder(api) == (None if what == "release" else mine.holder)
        if what != "release":
            await mine.renew({})

    asyncio.run(story())


def test_a_lease_that_cannot_be_read_is_named() -> None:
    async def story() -> None:
        api = Api()
        made = {"metadata": {"name": NAME}, "spec": {"holderIdentity": 7}}
        await api.create(LEASES, made, namespace=NAMESPACE)
        with pytest.raises(Final, match=f"{NAMESPACE}/{NAME} cannot be read"):
            await look(api)

    asyncio.run(story())
