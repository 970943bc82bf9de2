"""``replant route``: who serves each operation on a volume, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.cli.gates import COMPONENTS
from replant.cli.reporting import FAILED, Report
from replant.errors import printable

if TYPE_CHECKING:
    from replant.cli.tracing import Trace
    from replant.routing import Route

EXAMPLES = """\b
Examples:
  replant route pv/db-1                              # on the node where its pod runs
  replant route shop/data-0 --node node-a            # by its claim, on any node
\b
  # What if the controller were switched on, and the kubelets not yet?
  replant route db-1 --gates kube-controller-manager:CSIMigrationAWS=true
  replant route db-1 -f dump.json --server-version 1.24.17 -o json
"""
CONTROLLERS = ("upstream", "node-driven")

Gates = dict[str, dict[str, bool]]
"""By component."""


def _gates(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Gates:  # noqa: ARG001
    """Read GATE=true for all components, COMPONENT:GATE=true for one."""
    given: Gates = {component: {} for component in COMPONENTS}
    for setting, on in options.gate_settings(values):
        component, colon, gate = setting.rpartition(":")
        if colon and component not in given:
            known = ", ".join(COMPONENTS)
            raise click.BadParameter(f"{component!r} is not a component; known are {known}")
        for each in [component] if colon else COMPONENTS:
            given[each][gate] = on
    return given


@click.command(epilog=EXAMPLES)
@click.argument("volume", metavar="[pv/]NAME|[pvc/]NAMESPACE/NAME")
@click.option(
    "--node", default="", metavar="NAME",
    help="The node to ask about; by default the one where the volume is used.",
)  # fmt: skip
@click.option(
    "--gates", "--gate", "gates", multiple=True, callback=_gates,
    metavar="[COMPONENT:]GATE=true|false,…",
    help="What components are started with, instead of what is seen of them.",
)  # fmt: skip
@click.option(
    "--adc", type=click.Choice(CONTROLLERS), default=CONTROLLERS[0], show_default=True,
    help="The attach/detach controller; OpenShift's is node-driven.",
)  # fmt: skip
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-",
    help="Look in files instead of the cluster.",
)  # fmt: skip
@options.recursive
@options.kubeconfig
@options.context
@options.server_version
@options.probe_nodes
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table")
@click.pass_context
def command(
    ctx: click.Context, /, volume: str, node: str, gates: Gates, adc: str, output: str, **given: Any
) -> None:
    """Tell who serves each operation on a volume: in-tree, CSI or nobody, and by which rule.

    Gates are taken from the components where they can be seen, a kubelet's from what its CSINode
    lists; --gates answers what if.
    """
    from replant.cli.scanning import Scanning
    from replant.cli.tracing import GatesRefused, Tracer
    from replant.routing import AttachController

    report = Report(verbose=True)
    inventory = Scanning(report, **given).inventory()
    try:
        tracer = Tracer(inventory, gates, AttachController(adc), note=report.note)
        trace = tracer.trace(volume, node)
    except GatesRefused as refused:
        for problem in refused.problems:
            report.problem(problem)
        ctx.exit(FAILED)
    click.echo(json.dumps(document(trace), indent=2) if output == "json" else _table(trace))
    if trace.apart:
        report.note(trace.apart)
    ctx.exit(FAILED if report.failed else 0)


_WRITTEN_WITH = {
    "storage-provisioner": "provision",
    "migrated-to": "delete",
    "storage-resizer": "expand",
}
"""The operation that an annotation hands over, by the last part of its key."""


def document(trace: Trace) -> list[dict[str, Any]]:
    """The routes as plain data, each with the annotations that hand it over."""
    return [_described(route, trace.annotations) for route in trace.routes]


def _described(route: Route, annotations: dict[str, str]) -> dict[str, Any]:
    written = {
        key: value
        for key, value in annotations.items()
        if _WRITTEN_WITH.get(key.rpartition("/")[2]) == route.operation
    }
    shown = {
        "operation": route.operation.value,
        "servedBy": route.served_by.value,
        "reason": route.reason,
        "rule": route.rule,
    }
    return {**shown, "annotations": written} if written else shown


def _table(trace: Trace) -> str:
    volume = trace.volume
    what = f"native, of {volume.driver}" if volume.native else f"{volume.plugin} ({volume.driver})"
    lines = [f"{trace.name} on {trace.node}: {what}", ""]
    rows = [(it.operation.value, it.served_by.value, it.reason, it.rule) for it in trace.routes]
    width = max(len(operation) for operation, *_ in rows)
    lines += [
        f"  {operation:<{width}}  {side:<7}  {reason} [{rule}]"
        for operation, side, reason, rule in rows
    ]
    if not volume.attachable:
        lines += ["", f"Volumes of {volume.driver} are neither attached nor detached."]
    if trace.annotations:
        lines += ["", "What the controllers write on the volume and its claim:"]
        lines += [f"  {key}: {value}" for key, value in trace.annotations.items()]
    return "\n".join(map(printable, lines))
