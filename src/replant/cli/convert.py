"""``replant convert``: stored in-tree volumes become native CSI ones, while their pods run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.cli.plan import PLATFORMS, chosen_plugins

if TYPE_CHECKING:
    from replant.plan.classes import ClassWay
    from replant.plan.convert import Asked

FORMATS = ("table", "yaml", "json", "patch")

EXAMPLES = """\b
Examples:
  # Which volumes can be native, which only while nothing uses them, and which cannot
  replant convert
\b
  # All EBS volumes of a namespace, 16 at a time, while their pods run
  replant convert -n shop --plugin aws-ebs --dry-run=false
\b
  # One volume, and back again
  replant convert pv-data-0 --dry-run=false
  replant convert pv-data-0 --undo --dry-run=false
\b
  # A plan to review, to prove and to carry out later
  replant convert -o yaml > convert.yaml
  replant verify convert.yaml && replant apply convert.yaml
\b
  # What a repository has to say of them, for Argo CD, Flux or Helm; from a dump too
  replant convert --storage-classes --inline -o patch -f dump.json > native.yaml
"""


def _suffix(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    from replant.errors import Refused
    from replant.plan.classes import refuse_suffix

    try:
        if value:
            refuse_suffix(value)
    except Refused as error:
        raise click.BadParameter(str(error)) from None
    return value


def _size(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    from replant.inventory.quantities import amount

    if amount(value) <= 0:
        raise click.BadParameter(f"{value!r} is no size such as 10Gi")
    return value


@click.command(epilog=EXAMPLES)
@click.argument("names", metavar="[PV…]", nargs=-1)
@click.option(
    "-l",
    "--selector",
    callback=options.selector,
    metavar="SELECTOR",
    help="Only volumes with these labels, or whose claim has them.",
)
@click.option("-n", "--namespace", default="", metavar="NS", help="Only volumes of claims here.")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    callback=chosen_plugins,
    metavar="PLUGIN",
    help="Only these, such as aws-ebs.",
)
@click.option(
    "--dry-run",
    type=click.BOOL,
    is_flag=False,
    flag_value=True,
    default=True,
    show_default=True,
    metavar="true|false",
    help="Show what would be done.",
)
@click.option(
    "--undo",
    is_flag=True,
    help="Put volumes back as the journals have them: those that are named or chosen, or all.",
)
@click.option(
    "--scale-down",
    is_flag=True,
    help="Scale workloads down whose volumes can only be replaced unused, and up again.",
)
@click.option(
    "--accept-losses", is_flag=True, help="Go on where the twin says less than the volume does."
)
@click.option(
    "--accept-owners",
    is_flag=True,
    help="Go on where Argo CD, Flux or Helm writes the volume from a repository.",
)
@click.option(
    "--accept-unsuited",
    is_flag=True,
    help="Go on where a driver is known not to cope with the twin; docs/convert.md says which.",
)
@click.option(
    "--accept-finalizer",
    "accept_finalizers",
    multiple=True,
    metavar="NAME",
    help="Go on where a volume has this finalizer, whose controller you know not to delete disks.",
)
@click.option(
    "--accept-controller",
    "accept_controllers",
    multiple=True,
    metavar="NAME",
    help="Go on while this controller runs, which deletes the storage of deleted volumes.",
)
@click.option(
    "--storage-classes",
    is_flag=True,
    help="Make the plugins' StorageClasses again too, under their names, with the driver.",
)
@click.option(
    "--class-suffix",
    callback=_suffix,
    default="",
    metavar="SUFFIX",
    help="Make CSI classes beside the old ones instead, with names that end so.",
)
@click.option(
    "--inline",
    is_flag=True,
    help="Have workloads name claims instead of disks too; their pods are replaced.",
)
@click.option(
    "--inline-capacity",
    callback=_size,
    default="1Gi",
    show_default=True,
    metavar="SIZE",
    help="What the disks are taken to hold that pods name by themselves.",
)
@click.option("--platform", type=click.Choice(PLATFORMS), default=PLATFORMS[0], hidden=True)
@click.option(
    "--parallel",
    type=click.IntRange(min=1, max=256),
    default=16,
    show_default=True,
    metavar="VOLUMES",
    help="So many volumes at a time.",
)
@options.yes
@options.timeout("a detach, or a claim's way back to Bound,")
@click.option(
    "-f",
    "--filename",
    "paths",
    multiple=True,
    metavar="FILE|DIR|-",
    help="Look at files instead of a cluster.",
)
@options.journal
@click.option("-o", "--output", type=click.Choice(FORMATS), default=FORMATS[0])
@options.run_report
@options.recursive
@options.kubeconfig
@options.context
@options.server_version
@options.max_size
@options.verbose
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Replace stored in-tree volumes by native CSI ones, under their names and for their claims.

    Each is written down whole before it is touched, and at no moment does neither a volume nor the
    journal name its disk. Stop it at any time: replant apply --resume goes on, --undo goes back.
    Exit codes: 0 done, or nothing speaks against it; 3 a volume that was named cannot be replaced;
    4 partly done and resumable; 1 nothing was done.
    """
    if given["paths"] and not given["dry_run"]:
        raise click.UsageError("files cannot be changed: leave -f out, or --dry-run=false")
    if given["paths"] and given["undo"]:
        raise click.UsageError("what is undone is in the cluster's journal: leave -f out")
    if given["undo"] and given["journal"] != "cluster":
        raise click.UsageError(
            "a file holds one run, which is taken back as a whole: replant apply --undo --journal "
            f"{given['journal']}"
        )
    if given["output"] == "patch" and (given["undo"] or not given["dry_run"]):
        raise click.UsageError("-o patch changes nothing: leave --undo and --dry-run=false out")
    if given["undo"] and (given["storage_classes"] or given["class_suffix"] or given["inline"]):
        raise click.UsageError(
            "--undo puts volumes back; a whole run, with its classes and workloads, is taken back "
            "by replant apply --undo"
        )
    from replant.cli.converting import convert

    ctx.exit(convert(asked(given), given))


def _way(given: dict[str, Any]) -> ClassWay:
    from replant.plan.classes import ClassWay

    if given["class_suffix"]:
        return ClassWay.TWIN
    return ClassWay.REPLACE if given["storage_classes"] else ClassWay.LEAVE


def asked(given: dict[str, Any]) -> Asked:
    """What the options ask for."""
    from replant.plan.classes import AskedClasses
    from replant.plan.convert import Asked
    from replant.plan.inline import AskedInline
    from replant.plan.verdicts import Accepted

    accepted = Accepted(
        losses=given["accept_losses"],
        unsuited=given["accept_unsuited"],
        owners=given["accept_owners"],
        scale_down=given["scale_down"],
        finalizers=given["accept_finalizers"],
        controllers=given["accept_controllers"],
    )
    return Asked(
        names=given["names"],
        plugins=given["plugins"],
        namespace=given["namespace"],
        selector=given["selector"],
        accepted=accepted,
        platform=given["platform"],
        classes=AskedClasses(_way(given), given["class_suffix"]),
        inline=AskedInline(given["inline"], given["inline_capacity"]),
    )
