"""Keys are attended to a few at a time, and one that fails or hangs holds up no other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine

from replant.errors import Conflict
from replant.operator.rounds import LONGEST_PAUSE, Rounds, pause
from tests import virtual_time

Attend = Callable[[str], Awaitable[float | None]]
HOUR, DAY = 3600.0, 86400.0


def rounds(attend: Attend, places: int = 2) -> tuple[Rounds, list[tuple[str, str]]]:
    failures: list[tuple[str, str]] = []
    return (
        Rounds(
            attend,
            lambda key, error, _seconds: failures.append((key, type(error).__name__)),
            places,
            pause=lambda _tries: 1.0,
        ),
        failures,
    )


def finish(main: Coroutine[None, None, None]) -> None:
    """Run a test to its end, and what it leaves behind too: neither may hang.

    All times are virtual, so none of them depends on how fast the machine is.
    """

    async def bounded() -> None:
        async with asyncio.timeout(DAY):
            await main

    virtual_time.run(bounded())


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(HOUR):
        while not true():
            await asyncio.sleep(0.1)


def test_no_more_at_a_time_than_there_are_places() -> None:
    async def main() -> None:
        now, most, done = 0, 0, Counter[str]()

        async def attend(key: str) -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(1)
            now -= 1
            done[key] += 1

        under, _failures = rounds(attend, places=3)
        async with under:
            for number in range(30):
                under.call(str(number))
            await until(lambda: len(done) == 30)
        assert most == 3
        assert set(done.values()) == {1}

    finish(main())


def test_called_while_attended_to_it_is_attended_to_once_more() -> None:
    async def main() -> None:
        begun, go_on = 0, asyncio.Event()

        async def attend(_key: str) -> None:
            nonlocal begun
            begun += 1
            await go_on.wait()

        under, _failures = rounds(attend)
        async with under:
            under.call("a")
            await until(lambda: begun == 1)
            for _each in range(5):
                under.call("a")
            go_on.set()
            await until(lambda: begun == 2)
            await asyncio.sleep(HOUR)
            assert (begun, under.count()) == (2, 0)
            under.call("a")  # forgotten by now, and begun anew
            await until(lambda: begun == 3)

    finish(main())


def test_it_comes_again_after_a_wait_or_a_failure() -> None:
    async def main() -> None:
        looks: list[str] = []

        async def attend(key: str) -> float | None:
            looks.append(key)
            if len(looks) == 1:
                raise Conflict("meanwhile")
            if len(looks) == 2:
                raise LookupError("a mistake of ours")
            return 1.0 if len(looks) < 5 else None

        under, failures = rounds(attend)
        async with under:
            under.call("a")
            await until(lambda: len(looks) == 5)
            await asyncio.sleep(HOUR)
        assert len(looks) == 5
        # That somebody else has written meanwhile is no failure.
        assert failures == [("a", "LookupError")]

    finish(main())


def test_those_that_hang_again_and_again_leave_places_to_others() -> None:
    async def main() -> None:
        tries, done = Counter[str](), set[str]()

        async def attend(key: str) -> None:
            tries[key] += 1
            if key.startswith("bad"):
                if tries[key] > 1:
                    await asyncio.Event().wait()
                raise LookupError("at once")
            done.add(key)

        under, _failures = rounds(attend, places=4)
        async with under:
            for number in range(20):
                under.call(f"bad{number}")
            await until(lambda: sum(tries.values()) == 22)  # two of them hang, two places are left
            for number in range(20):
                under.call(f"good{number}")
            await until(lambda: len(done) == 20)

    finish(main())


def test_a_key_that_is_called_at_the_very_end_does_not_keep_it_from_ending() -> None:
    async def main() -> None:
        looks = 0

        async def attend(_key: str) -> float:
            nonlocal looks
            looks += 1
            return 2 * DAY

        under, _failures = rounds(attend)
        async with under:
            under.call("a")
            await until(lambda: looks == 1)
            under.call("a")  # and in the same turn of the loop it is cancelled
        assert looks == 1

    finish(main())


def test_pauses_grow_and_end() -> None:
    for tries in range(100):
        longest = min(2.0**tries, LONGEST_PAUSE)
        assert longest / 2 <= pause(tries) <= longest
