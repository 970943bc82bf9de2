"""``replant gates``: what the feature gates of a component come to at a version."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.cli.reporting import FAILED, Report

if TYPE_CHECKING:
    from replant.gates.settings import Component, Flavour
    from replant.gates.versions import Version

EXAMPLES = """\b
Examples:
  replant gates                                         # the cluster's version, all defaults
  replant gates --version 1.24                          # and what 1.25 changes
  replant gates --version 1.22 --gate CSIMigrationAWS=true
  replant gates --version 1.24 --component kubelet --gate CSIMigrationAWS=false -o json
"""
COMPONENTS = ("kube-controller-manager", "kube-scheduler", "kubelet")
FLAVOURS = ("shipped", "review")


@click.command(epilog=EXAMPLES)
@click.option(
    "--version",
    callback=options.version,
    metavar="VERSION",
    help="The component's Kubernetes version, 1.14 to 1.36; by default, the cluster's.",
)
@click.option(
    "--component", type=click.Choice(COMPONENTS), default=COMPONENTS[0], show_default=True
)
@click.option(
    "--gate",
    "given",
    multiple=True,
    callback=options.gates,
    metavar="GATE=true|false,…",
    help="What the component is started with; the rest are defaults.",
)
@click.option(
    "--flavour",
    type=click.Choice(FLAVOURS),
    default=FLAVOURS[0],
    help="review: with CSIMigrationInTreeOff, which never shipped.",
)
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table")
@options.kubeconfig
@options.context
@click.pass_context
def command(
    ctx: click.Context,
    /,
    version: Version | None,
    component: str,
    given: dict[str, bool],
    flavour: str,
    output: str,
    **cluster: str | None,
) -> None:  # fmt: skip
    """Show a component's migration gates at a version, what they do, and what comes next."""
    from replant.gates.history import FIRST, LAST
    from replant.gates.settings import Component, Flavour, problems

    version = version or asyncio.run(_cluster_version(**cluster))
    if not FIRST <= version.first_patch <= LAST:
        raise click.BadParameter(
            f"{version.of_minor} is not known here, only {FIRST.of_minor} to {LAST.of_minor}",
            param_hint="--version",
        )
    found = problems(version, given, Flavour(flavour))
    if found:
        report = Report(verbose=True)
        for problem in found:
            report.problem(problem)
        ctx.exit(FAILED)
    document = described(version, Component(component), given, Flavour(flavour))
    click.echo(json.dumps(document, indent=2) if output == "json" else _table(document))


async def _cluster_version(kubeconfig: str | None, context: str | None) -> Version:
    from replant.cluster.live import connect
    from replant.gates.versions import Version

    report = Report(verbose=True)
    async with connect(kubeconfig, context, notice=report.note) as reader:
        return Version.parse(await reader.server_version())


def described(
    version: Version, component: Component, given: dict[str, bool], flavour: Flavour
) -> dict[str, Any]:
    """All that the command shows, as plain data."""
    from replant.gates.settings import changes, effective, standings

    return {
        "version": str(version),
        "component": component.value,
        "gates": effective(version, given, flavour),
        "plugins": [
            {
                "plugin": standing.plugin,
                "phase": int(standing.phase),
                "registered": standing.registered,
                "meaning": standing.meaning(component),
            }
            for standing in standings(version, given, flavour)
        ],
        "nextMinor": list(changes(version, given, component)),
    }


def _table(document: dict[str, Any]) -> str:
    gates, plugins = document["gates"], document["plugins"]
    width = max((len(gate) for gate in gates), default=0)
    lines = [f"{document['component']} {document['version']}", ""]
    lines += [f"  {gate:<{width}}  {'on' if on else 'off'}" for gate, on in gates.items()]
    lines += [""] if gates else ["  has no gates of the migration any more", ""]
    lines.append("Plugins, and their phases:")
    width = max(len(entry["plugin"]) for entry in plugins)
    lines += [
        f"  {each['plugin']:<{width}}  {each['phase']}  {each['meaning']}" for each in plugins
    ]
    if document["nextMinor"]:
        lines += ["", "At the next minor:"]
        lines += [f"  {change}" for change in document["nextMinor"]]
    return "\n".join(lines)
