"""``replant apply``: carry a plan out, go on with a run, or take it back."""

from __future__ import annotations

from typing import Any

import click

from replant.cli import options

ACTUATORS = ("gardener", "hooks", "kubeadm", "observe", "openshift", "sandbox")

EXAMPLES = """\b
Examples:
  # Plan, look at it, carry it out with a command of your own that switches gates
  replant plan enable --plugin aws-ebs -o yaml > plan.yaml
  replant apply plan.yaml --actuator hooks --hook ./switch-gates.sh --report run.html
\b
  # It was stopped, or its machine has died: go on from any other, or take it back
  replant apply --resume
  replant apply --undo
\b
  # Somebody else switches gates: be told what to do, and have it waited for
  replant apply plan.yaml --actuator observe
\b
  # Against a sandbox (replant sandbox up --scenario aws-20-nodes)
  replant apply plan.yaml --yes --actuator sandbox --kubeconfig $(replant sandbox kubeconfig)
"""


@click.command(epilog=EXAMPLES)
@click.argument("path", metavar="[PLAN.yaml|-]", required=False)
@click.option("--resume", is_flag=True, help="Go on with the run that is unfinished.")
@click.option("--undo", is_flag=True, help="Take it back, from wherever it is.")
@click.option("--run", "run_id", default="", metavar="RUN", help="Which run, if there are several.")
@options.yes
@click.option("--actuator", type=click.Choice(ACTUATORS), help="How gates are switched.")
@click.option("--hook", default="", metavar="COMMAND", help="The command of --actuator hooks.")
@click.option(
    "--agent-image",
    default="",
    metavar="IMAGE",
    help="The image of the pod with which --actuator kubeadm edits nodes.",
)
@click.option(
    "--accept-no-upgrade",
    is_flag=True,
    help="Agree that --actuator openshift may set CustomNoUpgrade, which is for ever.",
)
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    metavar="NODES",
    help="So many nodes at a time; at most, and by default, as many as the plan allows.",
)
@options.journal
@click.option(
    "--delete-naked-pods", is_flag=True, help="Drain pods too that no controller would make again."
)
@click.option(
    "--delete-emptydir-data", is_flag=True, help="Drain pods too that have data in an emptyDir."
)
@click.option(
    "--drain-timeout",
    type=click.IntRange(min=1),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="How long a pod may take to leave its node.",
)
@options.timeout("a detach, a switch or a pod's start")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text")
@options.run_report
@options.kubeconfig
@options.context
@options.shoot
@options.max_size
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Carry a plan out, step by step, each written down before it is done.

    Stop it at any time with Ctrl-C, or by pulling the plug: --resume goes on, --undo goes back.
    Exit codes: 0 done and verified, 3 the plan has blockers or a node cannot be drained, 4 partly
    applied and resumable, 1 nothing was done.
    """  # fmt: skip
    _check(given)
    from replant.cli.applying import apply

    if given["shoot"]:
        from replant.cli.reporting import Report
        from replant.cli.shoots import lead_to_shoot

        note = Report(verbose=True).note
        given["from_seed"] = lead_to_shoot(given, given["shoot"], note)

    ctx.exit(apply(**given))


def _check(given: dict[str, Any]) -> None:
    resumes = given["resume"] or given["undo"]
    if given["resume"] and given["undo"]:
        raise click.UsageError("--resume goes on and --undo goes back: choose one")
    if resumes and given["path"]:
        raise click.UsageError("a run has its plan in its journal: leave the plan out")
    if not resumes and not given["path"]:
        raise click.UsageError("name the plan to carry out, or --resume or --undo a run")
    if given["run_id"] and not resumes:
        raise click.UsageError("--run is for --resume and --undo")
    if given["hook"] and given["actuator"] not in (None, "hooks"):
        raise click.UsageError("--hook is for --actuator hooks")
    if given["shoot"] is None and given["actuator"] == "gardener":
        raise click.UsageError("--actuator gardener needs --shoot, and the kubeconfig of its seed")
    if given["accept_no_upgrade"] and given["actuator"] not in (None, "openshift"):
        raise click.UsageError("--accept-no-upgrade is for --actuator openshift")
