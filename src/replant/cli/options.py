"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

MAX_SIZE_MIB = 1024
"""A file larger than this is refused, unless a person says otherwise: it is held in memory."""


def version(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:  # noqa: ARG001
    """Read an option's value as a Kubernetes version."""
    if value is None:
        return None
    from replant.gates.versions import Version

    try:
        return Version.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def gate_settings(values: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Read Gate=true,Other=false, as components' own flags are written."""
    for setting in ",".join(values).split(",") if values else ():
        gate, _, written = setting.strip().partition("=")
        if written.lower() not in {"true", "false"} or not gate:
            raise click.BadParameter(f"{setting!r} is not GATE=true or GATE=false")
        yield gate, written.lower() == "true"


def gates(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> dict[str, bool]:
    """Read an option's values as gates."""
    return dict(gate_settings(values))


def selector(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:  # noqa: ARG001
    """Read an option's value as a label selector."""
    if value is None:
        return None
    from replant.inventory.selectors import Selector

    try:
        return Selector.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _classes(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> tuple[tuple[str, str], ...]:
    pairs = [value.partition("=") for value in values]
    for name, _, provisioner in pairs:
        if not name or not provisioner:
            raise click.BadParameter(f"{name!r} is not NAME=PROVISIONER")
    return tuple((name, provisioner) for name, _, provisioner in pairs)


PROVIDERS = ("aws", "gcp", "openstack", "azure")

yes = click.option("--yes", is_flag=True, help="Do not ask.")
values = click.option(
    "--values", type=click.Path(path_type=Path), metavar="FILE",
    help="Which images drivers run, and where a mirror has them; those that ship by default.",
)  # fmt: skip
run_report = click.option(
    "--report", metavar="FILE.html",
    help="Write how it went as one HTML page, also if it is stopped.",
)  # fmt: skip


def timeout(of: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """How long one thing may take before a run stops."""
    return click.option(
        "--timeout", type=click.IntRange(min=1), default=900, show_default=True, metavar="SECONDS",
        help=f"How long {of} may take.",
    )  # fmt: skip


server_version = click.option(
    "--server-version", callback=version, metavar="VERSION",
    help="The cluster's version, where a dump does not say it.",
)  # fmt: skip
recursive = click.option(
    "-R", "--recursive", is_flag=True, help="Read the folders below DIR too."
)  # fmt: skip
kubeconfig = click.option("--kubeconfig", metavar="FILE", help="The kubeconfig to use.")
context = click.option("--context", metavar="NAME", help="The kubeconfig's context to use.")
shoot = click.option(
    "--shoot", metavar="NAMESPACE",
    help="A shoot of Gardener: --kubeconfig and --context are its seed's.",
)  # fmt: skip


def provider(of: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """A provider of Gardener's, for what it is needed there."""
    return click.option("--provider", type=click.Choice(PROVIDERS), help=of)


migration_version = click.option(
    "--migration-version", callback=version, metavar="VERSION",
    help="The minor with which shoots go over to CSI; the provider's own by default.",
)  # fmt: skip
legacy_classes = click.option(
    "--legacy-class", "classes", multiple=True, callback=_classes, metavar="NAME=PROVISIONER",
    help="A class that makes way for a CSI one; the provider's own by default.",
)  # fmt: skip
probe_nodes = click.option(
    "--probe-nodes", is_flag=True,
    help="Ask kubelets for their gates too; needs nodes/proxy, which our role does not grant.",
)  # fmt: skip
journal = click.option(
    "--journal", default="cluster", show_default=True, metavar="cluster|FILE",
    help="Where runs are written down: ConfigMaps, or a file of this machine.",
)  # fmt: skip
max_size = click.option(
    "--max-size", type=click.IntRange(min=1), default=MAX_SIZE_MIB, show_default=True,
    metavar="MIB", help="Refuse larger files.",
)  # fmt: skip
verbose = click.option(
    "-v", "--verbose", is_flag=True, help="Name every object, not only the first 20."
)  # fmt: skip
