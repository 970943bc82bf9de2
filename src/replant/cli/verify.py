"""``replant verify``: a proof that an order loses no volume, or the story of how it does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.cli.reporting import Report
from replant.errors import Refused

if TYPE_CHECKING:
    from replant.plan.model import Plan
    from replant.proof import Verdict

UNSAFE = 3
EXAMPLES = """\b
Examples:
  replant verify plan.yaml                  # what `replant plan enable -o yaml` printed
  replant verify order.yaml                 # a MigrationOrder, written by hand
  replant verify order.yaml -o json         # {safe, badState, states, story}
\b
  # An order, in full; docs/proof.md explains each field
  apiVersion: replant.dev/v1alpha1
  kind: MigrationOrder
  plugin: aws-ebs
  kubernetesVersion: "1.24"
  from: {controlPlane: {CSIMigrationAWS: false}, nodes: {CSIMigrationAWS: false}}
  steps:
  - controlPlane: {CSIMigrationAWS: true}
  - nodes: {drain: true, gates: {CSIMigrationAWS: true}}
"""


@click.command(epilog=EXAMPLES)
@click.argument("path", metavar="PLAN|ORDER.yaml|-")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text")
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR",
    help="Refuse a plan that was made for another cluster than this dump's.",
)  # fmt: skip
@click.option("--live", is_flag=True, help="The same, with the cluster itself.")
@options.recursive
@options.kubeconfig
@options.context
@options.server_version
@options.max_size
@click.pass_context
def command(
    ctx: click.Context, /, path: str, output: str, live: bool, max_size: int, **cluster: Any
) -> None:
    """Look at everything that may happen while an order is carried out, or stopped, or undone.

    Exit codes: 0 no bad state can be reached, 3 one can (the shortest story to it is told), 1 the
    order cannot be read, or the plan is another cluster's.
    """
    from replant.cli.documents import Document
    from replant.plan.courses import verdict_on
    from replant.proof import verify

    document = Document.read(path, max_size)
    compare = live or cluster["paths"]
    if compare and not document.is_plan:
        raise click.UsageError("an order is of no cluster; -f and --live are for plans")
    if document.is_plan:
        plan = document.plan()
        if compare:
            _refuse_other(plan, max_size=max_size, **cluster)
        verdict = verdict_on(plan)
    else:
        verdict = verify(document.order())
    click.echo(json.dumps(described(verdict), indent=2) if output == "json" else told(verdict))
    ctx.exit(0 if verdict.safe else UNSAFE)


def _refuse_other(plan: Plan, **cluster: Any) -> None:
    from replant.cli.scanning import Scanning
    from replant.plan.make import refuse_other

    report = Report(verbose=False)
    inventory = Scanning(report, **cluster).inventory()
    if report.failed:
        raise Refused("Nobody can say whether the plan fits what could be read only in part.")
    refuse_other(plan, inventory)


def described(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain data."""
    return {
        "safe": verdict.safe,
        "badState": verdict.bad_state,
        "states": verdict.states,
        "story": list(verdict.story),
    }


def told(verdict: Verdict) -> str:
    """A verdict as a person reads it."""
    if verdict.safe:
        return f"Safe: {verdict.states:,} states can be reached, and none of them is bad."
    *events, end = verdict.story
    seen = f"{verdict.states:,} states seen"
    lines = [f"Unsafe for {verdict.plugin}. The shortest story, of {seen}:", ""]
    lines += [f"  {number}. {event}" for number, event in enumerate(events, 1)]
    return "\n".join([*lines, "", end])
