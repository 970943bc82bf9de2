"""Carries ``replant apply`` out: checks, asks, shows how it goes, and tells how it ended."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from replant.cli.actuating import Job, actuator_for, choose_actuator, timing_for
from replant.cli.connecting import CLUSTER, connected, journals_of, place_of
from replant.cli.display import display_of
from replant.cli.finding import find_run, refuse_beside, refuse_unfinished
from replant.cli.reporting import FAILED, Report, silence, tell
from replant.cli.whole_files import WholeFile
from replant.errors import Blocked, Halted, Refused, ReplantError, printable
from replant.execute.draining import DrainRules
from replant.execute.engine import Display
from replant.execute.journal import Run, State
from replant.execute.patience import Patience
from replant.execute.run import Applying, How, Result
from replant.plan.model import Goal, Plan, RollNodes

if TYPE_CHECKING:
    from replant.execute.outages import Outage

BLOCKERS = 3
RESUMABLE = 4

KEPT = (
    "actuator", "hook", "agent_image", "accept_no_upgrade", "parallel", "delete_naked_pods",
    "delete_emptydir_data", "drain_timeout", "timeout",
)  # fmt: skip
"""Options that a run keeps, so that it goes on in the way in which it was begun."""


def apply(**given: Any) -> int:
    """One run of the command; the exit code says how it ended."""
    _refuse_unwritable(given)
    if not given["path"]:
        run = _run_to_go_on_with(given)
        asyncio.run(_create_missing(run, given))
        _go_on_as_begun(given, run)
        return carry_out(run.plan, run, given)
    plan = _read_plan(given)
    asyncio.run(refuse_unfinished(given))
    blocked, besides = _looked_at(plan, given)
    if blocked:
        for blocker in blocked:
            click.echo(f"blocker: {printable(blocker)}", err=True)
        return BLOCKERS
    return carry_out(plan, None, given, besides)


def _refuse_unwritable(given: dict[str, Any]) -> WholeFile | None:
    page = WholeFile(given["report"]) if given["report"] else None
    if page:
        page.refuse_unwritable()
    return page


def carry_out(plan: Plan, run: Run | None, given: dict[str, Any], besides: str = "") -> int:
    """Carry a plan out that nothing speaks against, or go on with its run.

    ``besides`` is what feature sets would switch too, which speaks against it where they are used.
    """
    page = _refuse_unwritable(given)
    choose_actuator(given, plan)
    _choose_parallel(given, plan)
    if not plan.steps:
        left = plan.done_as_far_as_possible
        why = "what is left cannot be done" if left else "there is nothing to do"
        click.echo(f"The plan has no steps: {why}.", err=True)
        for check in plan.preflight:
            if check.check == "feature-sets":
                click.echo(printable(check.message), err=True)
        return 0
    if not given["yes"] and not _agreed(plan, run, given):
        click.echo("nothing was done", err=True)
        return FAILED
    try:
        ending = asyncio.run(_carry_out(Job(plan, run is None, besides), run, given))
    except Blocked as error:
        tell(f"blocker: {printable(str(error))}")
        return BLOCKERS
    if page:
        _report(page, ending, run, given)
    if ending.result is None:
        tell(f"stopped: {printable(ending.halted)}")
        again = f"replant apply{_journal(given)}{_shoot(given)}"
        tell(f"Go on with: {again} --resume. Go back with: {again} --undo.")
        return RESUMABLE
    _tell(ending.result, given)
    return 0


def _journal(given: dict[str, Any]) -> str:
    """The option that finds the same journal again."""
    return "" if given["journal"] == CLUSTER else f" --journal {shlex.quote(given['journal'])}"


def _shoot(given: dict[str, Any]) -> str:
    """The option that finds the same shoot again."""
    return f" --shoot {shlex.quote(given['shoot'])}" if given.get("shoot") else ""


# Before anything is done


def _read_plan(given: dict[str, Any]) -> Plan:
    from replant.cli.documents import Document

    plan = Document.read(given["path"], given["max_size"]).plan()
    if plan.goal is Goal.UNDO:
        raise Refused(
            "A plan that undoes another belongs to the run of that one: take the run back with "
            "replant apply --undo."
        )
    return plan


def _looked_at(plan: Plan, given: dict[str, Any]) -> tuple[list[str], str]:
    """What keeps a plan from being carried out on the cluster as it is now, and what does so only
    where feature sets are used.
    """
    from replant.cli.bulk import collector_off
    from replant.cli.scanning import Scanning
    from replant.plan.convert import changed_verdicts
    from replant.plan.courses import proved
    from replant.plan.make import refuse_other, refuse_untrue
    from replant.plan.model import Weight
    from replant.plan.preflight import preflight
    from replant.plan.preflight.featuresets import besides
    from replant.plan.situation import situation

    report = Report(verbose=False)
    with collector_off():
        reading = Scanning(report, kubeconfig=given["kubeconfig"], context=given["context"])
        inventory = reading.inventory()
        if report.failed:
            raise Refused("Nothing is done to a cluster that could be read only in part.")
        refuse_other(plan, inventory)
        known = {gate: on for gate, on in plan.control_plane.gates.items() if on is not None}
        hidden = known if not plan.control_plane.replicas else None
        now = situation(inventory, plan.plugins, hidden)
        refuse_untrue(plan, now)
        checks = preflight(plan.goal, now)
    found = [f"{it.message} {it.fix}".strip() for it in checks if it.result is Weight.BLOCKER]
    found += changed_verdicts(plan, now)
    proof = proved(plan)
    if not proof.safe:
        found.append(f"The plan is not safe: {proof.bad_state}; replant verify tells how.")
    return found, besides(plan.goal, now, plan.steps)


def _run_to_go_on_with(given: dict[str, Any]) -> Run:
    listed, run = asyncio.run(find_run(given))
    # What the list says counts: by it another run is refused, until a resumed one mends it.
    if listed.state is not State.UNFINISHED and not given["undo"]:
        raise Refused(f"The run {listed.id} is {listed.state}: there is nothing left to do.")
    return run


async def _create_missing(run: Run, given: dict[str, Any]) -> None:
    """Create the volumes that are away before anything else, and before anybody is asked."""
    from replant.cluster.live import PATIENT
    from replant.cluster.writing import LiveWriter
    from replant.execute.runtime.missing_volumes import create_missing

    if run.state is State.UNFINISHED:
        async with connected(given, tell, PATIENT) as reader:
            await create_missing(reader, LiveWriter(reader), run, back=given["undo"], notice=tell)


def _go_on_as_begun(given: dict[str, Any], run: Run) -> None:
    """Take the options of a run from its journal, unless they are given anew."""
    source = click.get_current_context().get_parameter_source
    for name in KEPT:
        explicit = source(name) is click.core.ParameterSource.COMMANDLINE
        if not explicit and name in run.header.options:
            given[name] = run.header.options[name]
    for name, actuator in (("hook", "hooks"), ("agent_image", "kubeadm")):
        explicit = source(name) is click.core.ParameterSource.COMMANDLINE
        if explicit and given["actuator"] not in (None, actuator):
            option = f"--{name.replace('_', '-')}"
            raise Refused(
                f"The run {run.header.id} goes on with --actuator {given['actuator']}, to which "
                f"{option} means nothing: leave it out, or say --actuator {actuator} too."
            )


def _choose_parallel(given: dict[str, Any], plan: Plan) -> None:
    most = min((it.max_unavailable for it in plan.steps if isinstance(it, RollNodes)), default=0)
    if most and (given["parallel"] or 0) > most:
        raise Refused(
            f"The plan allows {most} node(s) at a time, and its proof counts with that: make one "
            f"with --max-unavailable {given['parallel']}."
        )


def _agreed(plan: Plan, run: Run | None, given: dict[str, Any]) -> bool:
    what = f"{plan.goal} {', '.join(plan.plugins)}"
    if run is not None:
        verb = "Take back" if given["undo"] else "Go on with"
        click.echo(
            f"{verb} the run {run.header.id} ({what}), begun {run.header.started}.", err=True
        )
    else:
        for number, step in enumerate(plan.steps, 1):
            click.echo(f"{number}. {step.title}", err=True)
    if not sys.stdin.isatty():
        raise Refused("Nobody is there to agree: say --yes.")
    return click.confirm(f"{what}: go ahead?", err=True)


# The run


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run has ended in this process: with a result, or halted."""

    result: Result | None
    halted: str
    outages: list[Outage]


async def _carry_out(job: Job, run: Run | None, given: dict[str, Any]) -> Ending:
    from replant.cluster.live import PATIENT
    from replant.cluster.writing import LiveWriter

    with display_of() as display:
        async with AsyncExitStack() as held, connected(given, display.note, PATIENT) as reader:
            timing = await timing_for(given, reader)
            actuator = await actuator_for(given, reader, display, job, held)
            applying = Applying(
                reader=reader,
                writer=LiveWriter(reader),
                actuator=actuator,
                journals=journals_of(given["journal"], reader, timing, display.note),
                timing=timing,
                display=display,
                how=_how(given),
            )
            try:
                with _interruptible(applying, display):
                    if run is None:
                        if given["journal"] != CLUSTER:
                            await refuse_beside(reader, timing, display.note)
                        result = await applying.begin(
                            job.plan, {name: given[name] for name in KEPT}
                        )
                    elif given["undo"]:
                        result = await applying.undo(run.header.id)
                    else:
                        result = await applying.resume(run.header.id)
                return Ending(result, "", result.outages)
            except Halted as error:
                unforeseen = error.__cause__ and not isinstance(error.__cause__, ReplantError)
                if unforeseen and os.environ.get("REPLANT_TRACEBACK"):
                    raise
                return Ending(None, str(error), applying.outages)
            finally:
                await actuator.aclose()


def _how(given: dict[str, Any]) -> How:
    patience = Patience(
        drain=given["drain_timeout"],
        detach=given["timeout"],
        switch=given["timeout"],
        pods=given["timeout"],
    )
    rules = DrainRules(
        naked_pods=given["delete_naked_pods"], empty_dir_data=given["delete_emptydir_data"]
    )
    return How(rules, patience, given["parallel"] or 0)


class _interruptible:  # noqa: N801 - used as a function
    """The first Ctrl-C ends a run where it can be resumed; the second does not wait for that."""

    def __init__(self, applying: Applying, display: Display) -> None:
        self._applying = applying
        self._display = display
        self._asked = False
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def __enter__(self) -> None:
        for name in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(name, self._interrupt)

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        for name in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(name)
        if kind is not asyncio.CancelledError or not self._asked:
            return
        if not self._applying.begun:
            raise click.Abort
        raise Halted("It was interrupted, and has not waited for what was under way.")

    def _interrupt(self) -> None:
        if (self._asked or not self._applying.at_work) and self._task is not None:
            self._asked = True
            self._task.cancel()
            return
        self._asked = True
        self._display.note("stopping as soon as what is under way has ended; Ctrl-C again: at once")
        self._applying.stop("It was interrupted.")


# Afterwards


def _report(page: WholeFile, ending: Ending, run: Run | None, given: dict[str, Any]) -> None:
    """Write the page from the whole journal, which other processes may have begun."""
    from replant.report import run_page

    run_id = ending.result.run if ending.result else run.header.id if run else ""
    checks = ending.result.checks if ending.result else ()
    try:
        # Without an id it is the only unfinished one: no other could be begun meanwhile.
        _, whole = asyncio.run(find_run({**given, "run_id": run_id}))
        witness = run_page.Witness(
            ending.outages, checks, place_of(given["journal"], whole.header.id), ending.halted
        )
        page.write(run_page.render(whole, witness))
    except ReplantError as error:
        # How the run has ended matters more than its picture, so the exit code is that of the run.
        tell(f"There is no report: {printable(str(error))}")
    else:
        tell(f"The report is in {given['report']}.")


def _tell(result: Result, given: dict[str, Any]) -> None:
    from replant.report import runs

    try:
        click.echo(runs.json_text(result) if given["output"] == "json" else runs.text(result))
    except OSError as error:
        # The run is done all the same, and its exit code says so.
        tell(f"There is no summary: {printable(str(error))}")
        silence(sys.stdout)
