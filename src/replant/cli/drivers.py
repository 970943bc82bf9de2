"""``replant drivers``: install, adopt and remove CSI drivers, and see how they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from replant.cli import options

EXAMPLES = """\b
Examples:
  # Which drivers this cluster has and should have, and what would come next
  replant drivers status
\b
  # See what installing one would make, then do it
  replant drivers install aws-ebs
  replant drivers install aws-ebs --yes
\b
  # The same as manifests for a repository, from a mirror's images
  replant drivers install aws-ebs --values mirror.yaml -o yaml > aws-ebs.yaml
\b
  # Take over what OLM, Helm or kubectl has installed; its pods run on
  replant drivers adopt aws-ebs --yes
\b
  # Remove an optional one, once nothing uses it
  replant drivers remove vmware-vsphere --yes
"""

_yes = click.option("--yes", is_flag=True, help="Do it. Without it, it is only shown.")
_timeout = options.timeout("a driver's start, or its going,")


def _driver(ctx: click.Context, param: click.Parameter, value: Any) -> Any:  # noqa: ARG001
    from replant.drivers.catalog import driver_named
    from replant.errors import InputError

    try:
        if isinstance(value, tuple):
            return tuple(driver_named(it) for it in value)
        return driver_named(value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


_one = click.argument("driver", callback=_driver, metavar="DRIVER")


def _common(command: Callable[..., None]) -> Callable[..., None]:
    for option in (options.context, options.kubeconfig, options.values):
        command = option(command)
    return command


@click.group(epilog=EXAMPLES)
def command() -> None:
    """Install, adopt and remove CSI drivers, and see how they are.

    A DRIVER is called by its backend (aws-ebs), its own name (ebs.csi.aws.com) or the kind of its
    CR (AWSEBSDriver). The same is done, and kept so, by replant operator --controllers drivers. See
    docs/drivers.md.
    """


@command.command()
@click.argument("drivers", nargs=-1, callback=_driver, metavar="[DRIVER…]")
@click.option(
    "-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table",
    show_default=True,
)  # fmt: skip
@_common
@click.pass_context
def status(ctx: click.Context, /, **given: Any) -> None:
    """Show which drivers are there, how they are, and what would come next.

    Nothing is changed. Exit codes: 0 shown, 1 not all could be read.
    """
    from replant.cli.driving import status

    ctx.exit(status(given))


@command.command()
@_one
@click.option(
    "--credentials", type=click.Choice(("Secret", "Node")),
    help="Where its rights come from: a Secret, or the machine that it runs on.",
)  # fmt: skip
@click.option(
    "--default-class", "default_class", type=click.Choice(("in-tree", "csi")),
    help="Whose StorageClass serves claims that name none.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(("Normal", "Debug", "Trace", "TraceAll")),
    help="Of its containers.",
)  # fmt: skip
@click.option("--storage-policy", metavar="NAME", help="Of vSphere, for the StorageClass.")
@click.option(
    "--share-type", "share_types", multiple=True, metavar="NAME",
    help="Of Manila, instead of those that the cloud has.",
)  # fmt: skip
@_yes
@_timeout
@click.option(
    "-o", "--output", type=click.Choice(("text", "yaml")), default="text", show_default=True,
    help="yaml: all manifests, for a repository; nothing is done.",
)  # fmt: skip
@_common
@click.pass_context
def install(ctx: click.Context, /, **given: Any) -> None:
    """Install a driver beside the in-tree plugin, or bring one up to date.

    Exit codes: 0 it runs (or, without --yes, it was shown), 3 something is in the way and nothing
    was done, 4 it does not run yet: the same command goes on, 1 it failed.
    """
    if given["output"] == "yaml" and given["yes"]:
        raise click.UsageError("-o yaml prints manifests and does nothing: leave out --yes")
    from replant.cli.driving import install

    ctx.exit(install(given))


@command.command()
@_one
@_yes
@_timeout
@_common
@click.pass_context
def adopt(ctx: click.Context, /, **given: Any) -> None:
    """Take over a driver that OLM, Helm or kubectl has installed, under its names.

    Its pods run on until they are rolled to the new version, one after the other. Exit codes are
    those of install.
    """
    from replant.cli.driving import adopt

    ctx.exit(adopt(given))


@command.command()
@_one
@_yes
@_timeout
@_common
@click.pass_context
def remove(ctx: click.Context, /, **given: Any) -> None:
    """Remove an optional driver that nothing uses; what still does is named.

    Exit codes: 0 it is gone (or, without --yes, it was shown), 3 it is in use or installed by
    default, 4 it is not gone yet, 1 it failed.
    """
    from replant.cli.driving import remove

    ctx.exit(remove(given))
