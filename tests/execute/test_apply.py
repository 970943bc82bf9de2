"""Whole runs on the sandbox: enable, resume, undo, and what keeps a run from beginning."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from replant.cluster.answers import Request
from replant.cluster.ports import PODS
from replant.errors import Halted, Missing, Refused
from replant.execute.draining import DrainRules
from replant.execute.following import follow
from replant.execute.journal import Mark, State
from replant.execute.journal.files import FileJournals
from replant.execute.run import Applying, How
from replant.execute.timing import read
from replant.plan.model import Goal
from replant.report.runs import text
from tests.execute.living import Ground, ground, sandbox_of, small
from tests.waiting import wait_until_async

EBS = "kubernetes.io/aws-ebs"

Story = Callable[[Ground], Awaitable[None]]


def live(story: Story, folder: Path, **more: Any) -> None:
    """Play a story on a small sandbox of its own; nothing may be yanked in it."""

    async def played() -> None:
        async with ground(kubeconfig) as it:
            await story(it)
            assert (await it.ask("/sandbox/writes"))["yanked"] == []

    with sandbox_of(small(**more), folder) as kubeconfig:
        asyncio.run(played())


async def migrated(it: Ground) -> list[bool]:
    return [(await it.gates(f"workers-{number}"))["CSIMigrationAWS"] for number in range(4)]


def test_a_plan_is_carried_out_and_verified(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        result = await it.applying().begin(await it.plan(Goal.ENABLE, EBS), {})
        assert result.state is State.DONE
        assert {check.outcome for check in result.checks} == {"passed"}
        assert await migrated(it) == [True] * 4
        assert [run.state for run in await it.journals().runs()] == [State.DONE]
        assert all(outage.longest < 60 for outage in result.outages)
        assert (await acts(it))[-1] == "RestartLeader"
        assert result.acts["RestartLeader"] == 1

    live(story, tmp_path)


async def acts(it: Ground) -> list[str]:
    """What the last run has done, in this order."""
    runs = await it.journals().runs()
    entries = (await it.journals().read(runs[-1].id)).entries
    return [entry.act for entry in entries if entry.mark is Mark.ACT]


def test_while_nodes_are_rolled_nobody_leads_for_long(tmp_path: Path) -> None:
    longest = 60

    async def story(it: Ground) -> None:
        plan = await it.plan(Goal.ENABLE, EBS)
        roll = replace(plan.steps[-1], restart_controllers_seconds=longest)
        await it.applying().begin(replace(plan, steps=(*plan.steps[:-1], roll)), {})
        (run,) = await it.journals().runs()
        since = None
        for entry in (await it.journals().read(run.id)).entries:
            if entry.act == "RestartLeader":
                since = None
            elif entry.act == "Evict":
                since = since or read(entry.at)
            assert since is None or read(entry.at) - since < longest + 10, entry
        assert (await acts(it)).count("RestartLeader") > 1
        assert await migrated(it) == [True] * 4

    live(story, tmp_path)


def test_a_run_that_is_stopped_leaves_nobody_who_waits_for_a_detach(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await it.plan(Goal.ENABLE, EBS)
        applying = it.applying()
        it.shown.when("2 of 4 nodes", lambda: applying.stop("enough"))
        with pytest.raises(Halted, match="enough"):
            await applying.begin(plan, {})
        assert (await acts(it))[-1] == "RestartLeader"
        (run,) = await it.journals().runs()
        await it.timing.sleep(60)
        before = len(await acts(it))
        await it.applying().undo(run.id)
        # That another leads is seen, and is enough: the way back begins with nodes.
        assert (await acts(it))[before] in ("Cordon", "Uncordon")

    live(story, tmp_path)


def test_a_run_that_is_stopped_is_resumed_or_undone(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await it.plan(Goal.ENABLE, EBS)
        applying = it.applying()
        it.shown.when("2 of 4 nodes", lambda: applying.stop("enough"))
        with pytest.raises(Halted, match="enough"):
            await applying.begin(plan, {})
        seen_before = applying.outages
        assert sum(await migrated(it)) == 2
        with pytest.raises(Refused, match="is unfinished"):
            await it.applying().begin(plan, {})
        (run,) = await it.journals().runs()
        result = await it.applying().undo(run.id)
        assert result.state is State.UNDONE
        assert await migrated(it) == [False] * 4
        # What the first process has seen is told by the second as well.
        whole = {outage.claim: outage for outage in result.outages}
        assert seen_before
        for outage in seen_before:
            assert whole[outage.claim].times >= outage.times
            assert whole[outage.claim].total >= outage.total

    live(story, tmp_path)


def test_a_journal_in_a_file_does_as_well(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        journals = FileJournals(tmp_path / "journal")
        applying = it.applying(journals)
        it.shown.when("1 of 4 nodes", lambda: applying.stop("enough"))
        with pytest.raises(Halted):
            await applying.begin(await it.plan(Goal.ENABLE, EBS), {})
        (run,) = await journals.runs()
        # Nobody finds this run in the cluster's own journal; the Lease tells of it.
        found = await follow(it.reader, it.journals(), it.timing.now())
        assert found is not None
        assert (found.id, found.goal, found.at_work) == (run.id, "enable", "")
        assert f"unfinished (its journal is {tmp_path / 'journal'} on " in found.state
        with pytest.raises(Refused, match=f"its journal in a file: {run.id} .*/journal on "):
            await it.applying().begin(await it.plan(Goal.ENABLE, EBS), {})
        written = (tmp_path / "journal").read_bytes()
        for other, who in ((b"", "an older"), (b',"format":99', "a newer")):
            (tmp_path / "journal").write_bytes(written.replace(b',"format":1', other, 1))
            for go_on in (it.applying(journals).resume, it.applying(journals).undo):
                with pytest.raises(Refused, match=f"was begun by {who} Replant"):
                    await go_on(run.id)
        (tmp_path / "journal").write_bytes(written)
        assert (await it.applying(journals).resume(run.id)).state is State.DONE
        assert await migrated(it) == [True] * 4
        result = await it.applying().begin(await it.plan(Goal.DISABLE, EBS), {})
        assert result.state is State.DONE

    live(story, tmp_path)


NAKED = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "naked", "namespace": "default"},
    "spec": {"nodeName": "workers-1", "containers": [{"name": "it", "image": "it"}]},
}


def test_nothing_is_touched_where_a_drain_would_drop_something(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await it.plan(Goal.ENABLE, EBS)
        with pytest.raises(Refused, match=r"default/naked on workers-1 has no controller"):
            await it.applying().begin(plan, {})
        assert await migrated(it) == [False] * 4
        assert await it.journals().runs() == []

    live(story, tmp_path, objects=[NAKED])


def test_a_pod_that_was_allowed_to_go_is_missed_by_nobody(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        def applying() -> Applying:
            return it.applying(how=How(rules=DrainRules(naked_pods=True)))

        first = applying()
        it.shown.when("2 of 4 nodes", lambda: first.stop("enough"))
        with pytest.raises(Halted, match="enough"):
            await first.begin(await it.plan(Goal.ENABLE, EBS), {})
        it.shown.calls.clear()
        with pytest.raises(Missing):
            await it.reader.get(PODS, "naked", namespace="default")
        (run,) = await it.journals().runs()
        for go_on in (applying().resume, applying().undo):
            checks = {check.check: check.message for check in (await go_on(run.id)).checks}
            assert checks["pods"].endswith(" Deleted, as allowed: Pod default/naked.")

    live(story, tmp_path, objects=[NAKED])


def test_a_run_in_several_processes_is_told_as_one(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        began = it.timing.now()
        first, second = it.applying(), it.applying()
        it.shown.when("1 of 4 nodes", lambda: first.stop("enough"))
        with pytest.raises(Halted, match="enough"):
            await first.begin(await it.plan(Goal.ENABLE, EBS), {})
        (run,) = await it.journals().runs()
        it.shown.calls.clear()
        it.shown.when("3 of 4 nodes", lambda: second.stop("enough"))
        with pytest.raises(Halted, match="enough"):
            await second.resume(run.id)
        done = await it.applying().resume(run.id)
        assert (done.resumed, done.acts["Cordon"], done.acts["Switch"]) == (True, 4, 6)
        assert done.seconds == pytest.approx(it.timing.now() - began, abs=60)
        assert "6 switches of gates, 4 nodes taken out" in text(done)
        # The way back is another one.
        turned = it.timing.now()
        back = await it.applying().undo(run.id)
        assert (back.resumed, back.acts["Cordon"]) == (False, 4)
        assert back.seconds <= it.timing.now() - turned

    live(story, tmp_path)


def test_all_that_is_not_well_is_named(tmp_path: Path) -> None:
    spare = [{"name": name, "plugin": "aws-ebs"} for name in ("fast", "slow")]

    async def story(it: Ground) -> None:
        applying = it.applying()
        it.shown.when("1 of 4 nodes", lambda: applying.stop("enough"))
        with pytest.raises(Halted, match="enough"):
            await applying.begin(await it.plan(Goal.ENABLE, EBS), {})
        for name in ("fast", "slow"):
            path = f"/apis/storage.k8s.io/v1/storageclasses/{name}"
            await it.reader.connection.ask(Request("DELETE", path))
        (run,) = await it.journals().runs()
        with pytest.raises(Halted, match=r"In all: StorageClass fast, StorageClass slow\."):
            await it.applying().resume(run.id)

    live(story, tmp_path, classes=[{"name": "gp2", "plugin": "aws-ebs", "default": True}, *spare])


def test_two_do_not_work_at_once(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await it.plan(Goal.ENABLE, EBS)
        first, second = it.applying(), it.applying()
        at_work = asyncio.create_task(first.begin(plan, {}))
        await wait_until_async(lambda: "roll-nodes" in it.shown.steps, "the first run to begin")
        with pytest.raises(Refused, match="is at work in this cluster"):
            await second.begin(plan, {})
        assert (await at_work).state is State.DONE

    live(story, tmp_path)


def test_a_finished_run_is_not_taken_back_after_an_upgrade(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        result = await it.applying().begin(await it.plan(Goal.ENABLE, EBS), {})
        await it.reader.connection.ask(
            Request(
                "PATCH",
                "/api/v1/nodes/workers-1/status",
                {},
                msgspec.json.encode({"status": {"nodeInfo": {"kubeletVersion": "v1.25.3"}}}),
                "application/merge-patch+json",
            )
        )
        with pytest.raises(Refused, match=r"the kubelet of workers-1 is 1\.25\.3 by now"):
            await it.applying().undo(result.run)
        assert [run.state for run in await it.journals().runs()] == [State.DONE]

    live(story, tmp_path)
