"""Finds the run that is meant, and those beside which none may be begun, wherever they are kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replant.cli.connecting import CLUSTER, connected, journals_of
from replant.cli.reporting import Report
from replant.errors import Forbidden, InputError
from replant.execute.journal import Run, Summary
from replant.execute.lease import look, refuse_elsewhere
from replant.execute.refusals import chosen, refuse_second
from replant.execute.timing import RealTiming, Timing

if TYPE_CHECKING:
    from replant.cluster.live import LiveReader


async def find_run(given: dict[str, Any]) -> tuple[Summary, Run]:
    """The run that is meant, as the list of runs and as its journal have it."""
    report = Report(verbose=True)
    async with connected(given, report.note) as reader:
        if given["journal"] != CLUSTER and not Path(given["journal"]).expanduser().exists():
            raise InputError("there is no such journal", source=given["journal"])
        journals = journals_of(given["journal"], reader, RealTiming(), report.note)
        runs = await journals.runs()
        await _refuse_elsewhere(reader, runs)
        summary = chosen(runs, given["run_id"])
        return summary, await journals.read(summary.id)


async def refuse_unfinished(given: dict[str, Any]) -> None:
    """Refused while a run is unfinished, before anybody says that it has changed the cluster."""
    report = Report(verbose=True)
    async with connected(given, report.note) as reader:
        timing = RealTiming()
        runs = await journals_of(given["journal"], reader, timing, report.note).runs()
        refuse_second(runs)
        if given["journal"] != CLUSTER:
            await refuse_beside(reader, timing, report.note)
        await _refuse_elsewhere(reader, runs)


async def refuse_beside(reader: LiveReader, timing: Timing, notice: Callable[[str], None]) -> None:
    """Refused while the cluster's own journal has an unfinished run, as far as we may see it."""
    with suppress(Forbidden):
        refuse_second(await journals_of(CLUSTER, reader, timing, notice).runs())


async def _refuse_elsewhere(reader: LiveReader, runs: list[Summary]) -> None:
    """Refused while the Lease tells of an unfinished run that is none of a journal's."""
    if held := await look(reader):
        refuse_elsewhere(held.elsewhere, [it.id for it in runs])
