"""``replant translate``: manifests and dumps in, their twins of the other side out."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import click

from replant.cli import options
from replant.cli.reporting import FAILED, Report
from replant.errors import printable

_QUANTITY = re.compile(r"\d+(\.\d+)?([eE]\d+|k|[KMGTPE]i|[MGTPE])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}

EXAMPLES = """\b
Examples:
  # What would change in this cluster's volumes?
  kubectl get pv,sc -o json | replant translate -f - -o diff
\b
  # The same objects, CSI, in the format that they came in
  replant translate -f volumes.json > volumes-csi.json
\b
  # A folder of manifests: inline volumes become claims
  replant translate -f manifests/ --recursive --inline-capacity 20Gi -o yaml
\b
  # And back again
  replant translate -f volumes-csi.json --to in-tree
"""


def _quantity(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    if not _QUANTITY.fullmatch(value) or not value.strip("0."):
        raise click.BadParameter(f"{printable(value)!r} is not a quantity such as 1Gi or 500M")
    return value


def _namespace(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    if not _NAMESPACE.fullmatch(value):
        raise click.BadParameter(f"{printable(value)!r} is not a name of a namespace")
    return value


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "paths", multiple=True, required=True, metavar="FILE|DIR|-",
    help="File, folder or - for standard input, YAML or JSON. May be given several times.",
)  # fmt: skip
@click.option("--to", type=click.Choice(["csi", "in-tree"]), default="csi", show_default=True)
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json", "diff"]),
    help="What to print. By default the format of the first input.",
)  # fmt: skip
@options.recursive
@click.option(
    "--inline-capacity", default="1Gi", show_default=True, metavar="SIZE", callback=_quantity,
    help="Capacity of the volumes that are made of pods' inline volumes, which do not say theirs.",
)  # fmt: skip
@click.option(
    "-n", "--namespace", default="default", show_default=True, callback=_namespace,
    metavar="NAMESPACE",
    help="Where workloads that name no namespace will run.",
)  # fmt: skip
@options.max_size
@options.verbose
@click.pass_context
def command(
    ctx: click.Context, /, paths: tuple[str, ...], max_size: int, verbose: bool, **given: Any
) -> None:
    """Translate PersistentVolumes, StorageClasses and inline volumes from in-tree to CSI, or back.

    Nothing in a cluster is touched: objects are read from files and written to standard output.
    What needs no change passes through as it was; what cannot be translated passes through
    unchanged, is named on standard error, and makes the exit code 1. YAML documents may have up
    to 64 MiB each, and are loaded safely.
    """
    from replant.cli.translation import Translation

    report = Report(verbose=verbose)
    translation = Translation(report, paint=_painter(), **given)
    translation.run(paths, max_size)
    report.finish(translation.summary())
    ctx.exit(FAILED if report.failed else 0)


def _painter() -> Callable[[str], str]:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return str
    return _painted


def _painted(line: str) -> str:
    heading = line.startswith(("--- ", "+++ "))
    return click.style(line, fg=_COLOURS.get(line[:1]), bold=heading or None)
