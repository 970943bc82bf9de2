"""``replant plan``: what to do, in which order, checked and proved before it is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.cli.reporting import FAILED, Report
from replant.errors import ReplantError

if TYPE_CHECKING:
    from replant.plan.model import Plan

BLOCKERS = 3
FORMATS = ("table", "yaml", "json", "mermaid")
PLATFORMS = ("generic", "kubeadm", "openshift", "gardener", "hooks", "observe")
METHODS = ("in-place", "replace", "platform")

EXAMPLES = """\b
Examples:
  # What switching aws-ebs takes, as this cluster is
  replant plan enable --plugin aws-ebs
\b
  # From a dump, as a file to review, to prove again and to carry out
  replant plan enable -f dump.json --server-version 1.24.17 -o yaml > plan.yaml
  replant verify plan.yaml
\b
  # For a shoot of Gardener, from its seed
  replant plan enable --shoot shoot--dev--crazy
\b
  # The way back from a plan that was stopped behind a step
  replant plan undo plan.yaml --done switch-control-plane
"""


@click.group(epilog=EXAMPLES)
def command() -> None:
    """Plan a switch: preflight, steps in the only safe order, an undo for each, and the proof.

    Nothing is changed. Exit codes: 0 the plan can be carried out, 3 it has blockers, 1 there is
    no plan.
    """


def chosen_plugins(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> tuple[str, ...]:
    """Read an option's values as plugins, in short or by their full names."""
    from replant.translate import plugins

    known = {name.removeprefix("kubernetes.io/"): name for name in plugins()}
    chosen = []
    for value in (part for given in values for part in given.split(",")):
        name = known.get(value.strip().removeprefix("kubernetes.io/"))
        if name is None:
            raise click.BadParameter(f"no driver takes over from {value!r}; of {', '.join(known)}")
        chosen.append(name)
    return tuple(dict.fromkeys(chosen))


_SHARED = [
    click.option(
        "--plugin", "plugins", multiple=True, callback=chosen_plugins, metavar="PLUGIN",
        help="Such as aws-ebs; by default all that the cluster uses.",
    ),
    click.option("--platform", type=click.Choice(PLATFORMS), default=None,
                 help="Who switches gates there, and which controllers it has; by default "
                 "gardener with --shoot, openshift where the cluster is one, else generic."),
    click.option("--adc", type=click.Choice(("upstream", "node-driven")), default=None,
                 help="The attach/detach controller; by default node-driven where OpenShift's "
                 "gates for that are seen on, else upstream."),
    click.option(
        "--control-plane-gates", "controller_gates", multiple=True, metavar="GATE=true|false,…",
        callback=options.gates, help="What kube-controller-manager is given, where it hides that.",
    ),
    click.option("--nodes", "method", type=click.Choice(METHODS), default=None,
                 help="Switch kubelets, replace machines, or have the platform roll them; by "
                 "default the platform's way."),
    click.option("--max-unavailable", type=click.IntRange(min=1), default=1, show_default=True,
                 metavar="NODES", help="So many nodes are cordoned at a time."),
    click.option("--one-pod-per-volume", is_flag=True,
                 help="Vouch that no pod is started for a volume while another pod uses it: pods "
                 "are then not kept from nodes of the other kind."),
    click.option("-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-",
                 help="Plan from files instead of a cluster."),
    options.recursive, options.kubeconfig, options.context, options.shoot,
    options.server_version,
    options.probe_nodes,
    click.option("-o", "--output", type=click.Choice(FORMATS), default=FORMATS[0]),
    options.max_size, options.verbose,
]  # fmt: skip


def _register(goal: str, summary: str, *more: Callable[[Any], Any]) -> None:
    @click.pass_context
    def planned(ctx: click.Context, /, **given: Any) -> None:
        ctx.exit(_plan(goal, **given))

    planned.__doc__ = summary
    for option in reversed((*more, *_SHARED)):
        planned = option(planned)
    command.command(goal)(planned)


_register("enable", "Redirect volumes to their CSI drivers.")
_register("disable", "Go back to the in-tree plugins: nodes first, the control plane last.")
_register("complete", "Take the in-tree plugins away, once every node is migrated.")
_register(
    "downgrade",
    "Go to an older version where the platform does so, control plane first (OpenShift).",
    click.option("--to", required=True, callback=options.version, metavar="VERSION",
                 help="The Kubernetes version to go to, such as 1.22."),
)  # fmt: skip


@command.command("undo")
@click.argument("path", metavar="PLAN.yaml|-")
@click.option("--done", required=True, metavar="STEP", help="The last step that was begun.")
@click.option("-o", "--output", type=click.Choice(FORMATS), default=FORMATS[0])
@options.max_size
@click.pass_context
def undo(ctx: click.Context, /, path: str, done: str, output: str, max_size: int) -> None:
    """Plan the way back from a plan that was carried out up to a step."""
    from replant.cli.documents import Document
    from replant.plan.undo import undo_plan

    plan = undo_plan(Document.read(path, max_size).plan(), done)
    ctx.exit(printed(plan, output))


def _plan(goal: str, *, output: str, verbose: bool, **given: Any) -> int:
    from replant.cli.bulk import collector_off
    from replant.cli.scanning import Scanning
    from replant.plan.compose import Choices
    from replant.plan.make import GARDENER, Wanted, make_plan, method_of
    from replant.plan.model import Goal, NodeMethod
    from replant.routing import AttachController

    report = Report(verbose=verbose)
    platform, method, adc = (given.pop(name) for name in ("platform", "method", "adc"))
    most, plugins, gates = (
        given.pop(name) for name in ("max_unavailable", "plugins", "controller_gates")
    )
    to, one_pod = given.pop("to", None), given.pop("one_pod_per_volume")
    shoot = given.pop("shoot")
    if shoot and given["paths"]:
        raise click.UsageError("--shoot is for a live seed, -f for files: choose one")
    try:
        if shoot:
            from replant.cli.shoots import lead_to_shoot

            platform = platform or GARDENER
            found = lead_to_shoot(given, shoot, report.note)
            gates = gates or found.controller_gates
        with collector_off():
            scanning = Scanning(report, detect=platform in (None, "openshift"), **given)
            inventory = scanning.inventory()
            platform = platform or scanning.platform or PLATFORMS[0]
            wanted = Wanted(
                goal=Goal(goal),
                plugins=plugins,
                platform=platform,
                attach_controller=AttachController(adc) if adc else None,
                controller_gates=gates or scanning.controller_gates,
                to=to,
                choices=Choices(
                    NodeMethod(method) if method else method_of(platform), most, one_pod
                ),
            )
            plan = make_plan(wanted, inventory)
    except ReplantError as error:
        report.problem(error)
        return FAILED
    if report.failed:
        report.finish("No plan is made from what could be read only in part.")
        return FAILED
    return printed(plan, output)


def printed(plan: Plan, output: str) -> int:
    """Print a plan; the exit code says whether it can be carried out."""
    click.echo(rendered(plan, output), nl=False)
    safe = plan.proof is not None and plan.proof.safe
    return 0 if safe and not plan.blockers else BLOCKERS


def rendered(plan: Plan, output: str) -> str:
    """A plan in one of the formats."""
    import msgspec

    from replant.manifests import yamltext
    from replant.report import json_document, plans

    if output == "json":
        return json_document.json_text(plan)
    if output == "yaml":
        return yamltext.dump(msgspec.to_builtins(plan))
    return plans.mermaid(plan) if output == "mermaid" else plans.text(plan)
