"""Carries ``replant convert`` out: a plan from what is there, shown or carried out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from replant.cli.applying import BLOCKERS, carry_out
from replant.cli.bulk import collector_off
from replant.cli.connecting import connected, journals_of
from replant.cli.plan import printed
from replant.cli.reporting import Report
from replant.cli.scanning import Scanning
from replant.errors import Refused, printable
from replant.execute.journal import Run, State
from replant.execute.swapping import Backups
from replant.execute.timing import RealTiming
from replant.plan.convert import Asked, make_conversion, make_restoration
from replant.plan.model import Goal, RestoreVolumes
from replant.plan.repository import repository_changes
from replant.report import patches

if TYPE_CHECKING:
    from replant.inventory.model import Inventory

_OF_APPLY = {
    "path": None, "resume": False, "undo": False, "run_id": "", "actuator": None, "hook": "",
    "agent_image": "", "delete_naked_pods": False, "delete_emptydir_data": False,
    "drain_timeout": 3600, "accept_no_upgrade": False,
}  # fmt: skip
"""What ``replant apply`` asks for and a conversion does not need."""


def convert(asked: Asked, given: dict[str, Any]) -> int:
    """One run of the command; the exit code says how it ended."""
    report = Report(verbose=given["verbose"])
    runs = asyncio.run(_runs(given)) if given["undo"] else []
    if unfinished := next((it for it in runs if it.state is State.UNFINISHED), None):
        return _take_back(unfinished, asked, given)
    with collector_off():
        inventory = _inventory(report, given)
        if given["output"] == "patch":
            click.echo(patches.text(repository_changes(asked, inventory)), nl=False)
            return 0
        if given["undo"]:
            plan = make_restoration(asked, _saved(runs), inventory)
        else:
            plan = make_conversion(asked, inventory)
    if given["dry_run"]:
        return printed(plan, given["output"])
    if plan.blockers:
        for blocker in plan.blockers:
            click.echo(f"blocker: {printable(f'{blocker.message} {blocker.fix}')}", err=True)
        return BLOCKERS
    if plan.proof is not None and not plan.proof.safe:
        raise Refused(f"The plan is not safe: {plan.proof.bad_state}; -o yaml shows it.")
    for check in plan.preflight:
        if check.result != "passed":
            click.echo(f"{check.result.value}: {printable(check.message)}", err=True)
    return carry_out(plan, None, {**given, **_OF_APPLY})


def _take_back(run: Run, asked: Asked, given: dict[str, Any]) -> int:
    """A run that is under way is taken back as a whole, or gone on with first."""
    if asked.names or asked.plugins or asked.namespace or asked.selector:
        raise Refused(
            f"The run {run.header.id} is unfinished: go on with it (replant apply --resume), or "
            "take all of it back (replant convert --undo), before some of it is."
        )
    if given["dry_run"]:
        click.echo(f"The run {run.header.id} would be taken back.")
        return 0
    return carry_out(run.plan, run, {**given, **_OF_APPLY, "undo": True})


def _inventory(report: Report, given: dict[str, Any]) -> Inventory:
    names = ("paths", "recursive", "kubeconfig", "context", "server_version", "max_size")
    inventory = Scanning(report, **{name: given[name] for name in names}).inventory()
    if report.failed:
        raise Refused("No plan is made from what could be read only in part.")
    return inventory


async def _runs(given: dict[str, Any]) -> list[Run]:
    """The conversions that the journal has, the oldest first."""
    report = Report(verbose=True)
    async with connected(given, report.note) as reader:
        journals = journals_of(given["journal"], reader, RealTiming(), report.note)
        return [
            await journals.read(it.id) for it in await journals.runs() if it.goal == Goal.CONVERT
        ]


def _saved(runs: list[Run]) -> dict[str, Any]:
    """Volumes as they were in the tree, of each the one that was written down last."""
    found: dict[str, Any] = {}
    for run in runs:
        plans = [it.saved for it in run.plan.steps if isinstance(it, RestoreVolumes)]
        saved = [one for some in plans for one in some]
        found |= Backups.of(run.entries, saved).in_tree
    return found
