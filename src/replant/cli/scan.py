"""``replant scan``: everything that is still in the tree, and what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from replant.cli import options
from replant.cli.bulk import buffered_stdout
from replant.cli.reporting import FAILED, Report
from replant.errors import ReplantError

FINDINGS = 2
BLOCKERS = 3
FORMATS = ("table", "wide", "json", "yaml", "markdown", "csv", "junit", "sarif", "html")

EXAMPLES = """\b
Examples:
  # Where does this cluster stand, and is it ready for 1.31?
  replant scan --target-version 1.31
\b
  # A dump, without the cluster
  kubectl get pv,pvc,sc,pods,deploy,sts,ds,nodes,csinodes,csidrivers -A -o json > dump.json
  replant scan -f dump.json --server-version 1.24.17
\b
  # A report to show around, and a gate in CI that only blockers close
  replant scan -o html > report.html
  replant scan -f manifests/ --recursive --fail-on blockers -o junit > report.xml
"""


def _ids(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:  # noqa: ARG001
    from replant.inventory.checks.catalogue import TITLES

    ids = frozenset(part.upper() for value in values for part in value.replace(",", " ").split())
    unknown = ", ".join(sorted(ids - TITLES.keys()))
    if unknown:
        raise click.BadParameter(f"no such finding: {unknown}; docs/findings lists them all")
    return ids


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-",
    help="Scan files instead of a cluster: dumps, manifests, rendered charts; YAML or JSON.",
)  # fmt: skip
@options.recursive
@options.kubeconfig
@options.context
@click.option("-n", "--namespace", default="", metavar="NS", help="Only claims and workloads here.")
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces (the default).")
@click.option(
    "-l", "--selector", callback=options.selector, metavar="SELECTOR",
    help="Only volumes and claims with these labels, such as app=db,tier!=test.",
)  # fmt: skip
@click.option(
    "--target-version", callback=options.version, metavar="VERSION",
    help="Judge for this version, such as 1.31; by default for the next minor.",
)  # fmt: skip
@options.server_version
@options.probe_nodes
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--check", "only", multiple=True, callback=_ids, metavar="ID", help="Only these.")
@click.option("--skip", multiple=True, callback=_ids, metavar="ID", help="All but these.")
@click.option(
    "--fail-on", type=click.Choice(["findings", "blockers", "never"]), default="findings",
    show_default=True, help="What makes the exit code 2 (findings) or 3 (blockers).",
)  # fmt: skip
@options.max_size
@options.verbose
@click.pass_context
def command(ctx: click.Context, /, output: str, fail_on: str, verbose: bool, **given: Any) -> None:
    """Find every volume, class and workload that is still in the tree, and say what to do.

    Nothing is changed: a scan only gets and lists. Exit codes: 0 clean, 1 the scan failed,
    2 findings, 3 blockers.
    """
    if given["namespace"] and given.pop("all_namespaces"):
        raise click.UsageError("-n and -A contradict each other")
    given.pop("all_namespaces", None)
    from replant.cli.scanning import Scanning

    report = Report(verbose=verbose)
    try:
        result = Scanning(report, detect=True, **given).run()
    except ReplantError as error:
        report.problem(error)
        ctx.exit(FAILED)
    _print(result, output)
    read = result.read.values()
    report.finish(
        f"{sum(it.seen for it in read)} objects read, {sum(it.used for it in read)} used, "
        f"{sum(it.passed_over for it in read)} passed over"
    )
    ctx.exit(FAILED if report.failed else _exit_code(result, fail_on))


def _print(result: Any, output: str) -> None:
    from replant.report.render import pieces

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    colour = terminal and not os.environ.get("NO_COLOR")
    with buffered_stdout() as out:
        for piece in pieces(result, output, width=width, colour=colour):
            out.write(piece.encode("utf-8", "backslashreplace"))


def _exit_code(result: Any, fail_on: str) -> int:
    from replant.inventory.findings import Severity
    from replant.inventory.scan import counts_as_failure

    if fail_on == "never":
        return 0
    counted = [finding for finding in result.findings if counts_as_failure(finding)]
    if any(finding.severity is Severity.BLOCKER for finding in counted):
        return BLOCKERS
    return FINDINGS if counted and fail_on == "findings" else 0
