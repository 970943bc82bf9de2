"""What a journal says of a run, and that nothing which happens to it makes it say less."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replant.errors import Final, InputError, Refused
from replant.execute.census_model import Census
from replant.execute.journal import Entry, Header, Mark, Run, State
from replant.execute.journal.configmaps import ConfigMapJournals
from replant.execute.journal.files import FileJournals
from tests.execute.memory import Api, Clock
from tests.execute.nodes import ENABLE

HEADER = Header(id="r", goal="enable", plugins=("p",), started="2026-01-01T00:00:00Z", by="me")


def run_of(*entries: Entry) -> Run:
    return Run(HEADER, ENABLE, Census(), list(entries))


def step(name: str) -> Entry:
    return Entry(at="now", mark=Mark.STEP, step=name)


def act(name: str, target: str, of: str = "roll-nodes") -> Entry:
    return Entry(at="now", mark=Mark.ACT, act=name, target=target, step=of)


def done(name: str) -> Entry:
    return Entry(at="now", mark=Mark.STEP_DONE, step=name)


@pytest.mark.parametrize(
    ("begun", "last"),
    [
        ([], ""),
        (["switch-control-plane"], "switch-control-plane"),
        (["switch-control-plane", "roll-nodes"], "roll-nodes"),
        # Resumed, and stopped in the first step, which it goes through again.
        (["switch-control-plane", "roll-nodes", "switch-control-plane"], "roll-nodes"),
        (["roll-nodes", "undo-roll-nodes"], "roll-nodes"),
    ],
)
def test_a_run_has_come_as_far_as_it_ever_was(begun: list[str], last: str) -> None:
    assert run_of(*map(step, begun)).last_begun == last


SWITCH = act("Switch", "node n1")


@pytest.mark.parametrize(
    ("entries", "in_the_air"),
    [
        ([SWITCH], {"node n1"}),
        ([SWITCH, act("Uncordon", "node n1")], set()),
        ([SWITCH, act("Uncordon", "node n2")], {"node n1"}),
        ([SWITCH, act("Cordon", "node n2"), done("switch-control-plane")], {"node n1"}),
        ([SWITCH, done("roll-nodes")], set()),
        ([SWITCH, act("Switch", "node n1", "undo-roll-nodes")], set()),
        ([act("Switch", "kube-scheduler", "switch-control-plane")], {"kube-scheduler"}),
    ],
)
def test_what_another_step_has_begun_to_switch_is_in_the_air(
    entries: list[Entry], in_the_air: set[str]
) -> None:
    assert run_of(*entries).in_the_air("undo-roll-nodes") == in_the_air
    assert run_of(SWITCH).in_the_air("roll-nodes") == set()


class FullDisk:
    """A file on a disk that takes a few bytes more, and then none for a while."""

    def __init__(self, file: Any, room: int) -> None:
        self._file = file
        self.room = room

    def write(self, data: memoryview) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written: int = self._file.write(data[: self.room])
        self.room -= written
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_full_disk_costs_no_more_than_what_it_did_not_take(tmp_path: Path) -> None:
    async def story() -> list[Entry]:
        journals = FileJournals(tmp_path / "journal")
        journal = await journals.begin(run_of())
        await journal.write([step("one")])
        disk = FullDisk(journal._file, room=20)  # noqa: SLF001
        journal._file = disk  # type: ignore[assignment]  # noqa: SLF001
        with pytest.raises(InputError, match="No space left"):
            await journal.write([step("two")])
        disk.room = 10_000
        await journal.write([Entry(at="now", mark=Mark.STOP, why="the disk is full")])
        await journal.aclose()
        assert [it.state for it in await journals.runs()] == [State.UNFINISHED]
        return (await journals.read("r")).entries

    assert [it.step or it.why for it in asyncio.run(story())] == ["one", "the disk is full"]


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: there can be no folder for the journal: File ex"):
        asyncio.run(FileJournals(tmp_path / "file" / "journal").begin(run_of()))


def test_a_disk_that_takes_it_bit_by_bit_gets_it_all(tmp_path: Path) -> None:
    class Slow(FullDisk):
        def write(self, data: memoryview) -> int:
            written: int = self._file.write(data[:7])
            return written

    async def story() -> list[Entry]:
        journals = FileJournals(tmp_path / "journal")
        journal = await journals.begin(run_of())
        journal._file = Slow(journal._file, 0)  # type: ignore[assignment]  # noqa: SLF001
        await journal.write([step("one"), step("two")])
        await journal.aclose()
        return (await journals.read("r")).entries

    assert [it.step for it in asyncio.run(story())] == ["one", "two"]


# In the cluster


def cluster_journals(api: Api) -> ConfigMapJournals:
    return ConfigMapJournals(api, api, Clock(), lambda _: None)


def whole(count: int = 5) -> tuple[Api, ConfigMapJournals]:
    """A run of several logs."""

    async def story() -> None:
        journal = await journals.begin(run_of())
        for number in range(count):
            await journal.write(
                [Entry(at="now", mark=Mark.ACT, target="é" * 20_000, step=str(number))]
            )

    api = Api()
    journals = cluster_journals(api)
    asyncio.run(story())
    return api, journals


def test_a_run_comes_back_as_it_was_written() -> None:
    api, journals = whole()
    logs = [obj for (_, _, name), obj in api.objects.items() if "-log-" in name]
    assert len(logs) > 1
    assert all(
        len(json.dumps(it, ensure_ascii=False).encode()) < 2**20 for it in api.objects.values()
    )
    read = asyncio.run(journals.read("r"))
    assert [it.step for it in read.entries] == list("01234")
    assert (read.header, read.plan) == (HEADER, ENABLE)


Harm = Callable[[Api], None]


def _drop(part: str) -> Harm:
    def harm(api: Api) -> None:
        del api.objects[next(key for key in api.objects if part in key[2])]

    return harm


def _set(part: str, *path: str, to: Any) -> Harm:
    def harm(api: Api) -> None:
        *above, last = path
        obj = api.named(part)
        for name in above:
            obj = obj[name]
        obj[last] = to

    return harm


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (_drop("document-0000"), "replant-r-document-0000 is missing"),
        (_drop("log-0000"), "replant-r-log-"),
        (_drop("log-0001"), "replant-r-log-"),
        (_set("document-0000", "binaryData", "part", to="!!"), "replant-r-document-0000"),
        (_set("document-0000", "binaryData", "part", to="aGVsbG8="), "replant-r-document-0000"),
        (_set("document-0000", "binaryData", to=None), "replant-r-document-0000"),
        (_set("log-0000", "data", "00000000", to="[{]"), "replant-r-log-0000"),
        (_set("log-0000", "data", "00000000", to='[{"at":"x","mark":"y"}]'), "replant-r-log-0000"),
        (_set("log-0000", "data", to={"00000007": "[]"}), "replant-r-log-0000"),
        (_set("log-0001", "data", to=None), "replant-r-log-000"),
        (_set("head", "data", "header", to="{}"), "replant-r-head"),
        (_set("head", "data", "documents", to="many"), "replant-r-head"),
        (_set("head", "data", to=None), "replant-r-head"),
    ],
)
def test_a_journal_that_somebody_has_harmed_is_never_taken_for_a_shorter_one(
    harm: Harm, named: str
) -> None:
    api, journals = whole()
    harm(api)
    for read in (journals.read, journals.open):
        with pytest.raises(Final, match=named):
            asyncio.run(read("r"))


@pytest.mark.parametrize(
    "harm",
    [
        _set("head", "data", to=None),
        _set("head", "data", "header", to="no JSON"),
        _set("head", "metadata", "labels", "replant.dev/state", to="lost"),
    ],
)
def test_a_head_that_is_none_keeps_runs_from_being_listed_and_is_named(harm: Harm) -> None:
    api, journals = whole()
    harm(api)
    with pytest.raises(Final, match="replant-system/replant-r-head"):
        asyncio.run(journals.runs())


def test_whoever_opens_a_run_shuts_everybody_else_out() -> None:
    async def story() -> None:
        api = Api()
        journals = cluster_journals(api)
        first = await journals.begin(run_of())
        await first.write([step("one")])
        _, second = await journals.open("r")
        with pytest.raises(Refused, match="Another Replant goes on with this run"):
            await first.write([step("two")])
        await second.write([step("three")])
        assert [it.step for it in (await journals.read("r")).entries] == ["one", "three"]

    asyncio.run(story())


def test_at_no_moment_does_an_unfinished_run_look_finished() -> None:
    """Not even between the two writes of which one tells of the other."""

    async def story() -> None:
        api = Api()
        journals = cluster_journals(api)
        journal = await journals.begin(run_of())
        await journal.write([Entry(at="now", mark=Mark.END, why=State.DONE)])
        seen: list[tuple[bool, str]] = []

        def look() -> None:
            label = api.named("head")["metadata"]["labels"]["replant.dev/state"]
            logs = "".join(json.dumps(it) for key, it in api.objects.items() if "-log-" in key[2])
            seen.append(('\\"undo\\"' in logs and logs.count('\\"end\\"') < 2, label))

        api.on_write = look
        await journal.write([Entry(at="now", mark=Mark.UNDO)])
        await journal.write([Entry(at="now", mark=Mark.END, why=State.UNDONE)])
        assert (True, "done") not in seen
        assert (True, "unfinished") in seen
        assert [it.state for it in await journals.runs()] == [State.UNDONE]

    asyncio.run(story())


def test_an_answer_that_is_lost_neither_loses_nor_doubles_an_entry() -> None:
    async def story() -> None:
        api = Api()
        journals = cluster_journals(api)
        journal = await journals.begin(run_of())
        for number in range(4):
            api.lose_answers = 1
            await journal.write([step(str(number))])
        assert [it.step for it in (await journals.read("r")).entries] == list("0123")

    asyncio.run(story())


def test_of_two_that_begin_the_same_log_only_one_writes_it() -> None:
    async def story() -> None:
        journals = cluster_journals(Api())
        first = await journals.begin(run_of())
        _, second = await journals.open("r")
        await second.write([step("two")])
        with pytest.raises(Refused, match="Another Replant goes on with this run"):
            await first.write([step("one")])
        assert [it.step for it in (await journals.read("r")).entries] == ["two"]

    asyncio.run(story())
