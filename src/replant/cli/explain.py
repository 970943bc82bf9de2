"""``replant explain``: what a finding means, what a plugin loses, what concerns an object."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.cli.reporting import FAILED, Report
from replant.errors import InputError, printable

if TYPE_CHECKING:
    from replant.inventory.findings import Finding

EXAMPLES = """\b
Examples:
  replant explain RP109                     # what this finding means, and what to do
  replant explain aws-ebs                   # versions of a plugin, and what a round trip loses
  replant explain pv/db-1                   # all that concerns this volume, in the cluster
  replant explain deployment/shop/web -f dump.json
"""

_KINDS = {
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "sc": "StorageClass",
    "deploy": "Deployment",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "rs": "ReplicaSet",
    "po": "Pod",
    "no": "Node",
}


@click.command(epilog=EXAMPLES)
@click.argument("subject", metavar="ID|PLUGIN|KIND/[NAMESPACE/]NAME")
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-",
    help="Look the object up in files instead of the cluster.",
)  # fmt: skip
@options.recursive
@options.kubeconfig
@options.context
@options.server_version
@click.pass_context
def command(ctx: click.Context, /, subject: str, **given: Any) -> None:
    """Explain a finding by its ID, a plugin by its name, or what concerns one object."""
    from replant.inventory.checks.catalogue import TITLES
    from replant.translate import plugins

    if subject.upper() in TITLES:
        click.echo(page(subject.upper()), nl=False)
    elif f"kubernetes.io/{subject.removeprefix('kubernetes.io/')}" in plugins():
        click.echo(about_plugin(f"kubernetes.io/{subject.removeprefix('kubernetes.io/')}"))
    elif "/" in subject:
        report = Report(verbose=False)
        found = _findings_of(subject, report, given)
        click.echo("\n\n".join(map(_shown, found)) or f"Nothing is known of {printable(subject)}.")
        ctx.exit(FAILED if report.failed else 0)
    else:
        raise click.UsageError(
            f"{printable(subject)} is no finding (RP101), plugin (aws-ebs) or object (pv/NAME)"
        )


def page(finding_id: str) -> str:
    """The documentation of a finding, as it ships with Replant."""
    package = Path(__file__).parents[1]
    for folder in (package / "findings", package.parents[1] / "docs" / "findings"):
        file = folder / f"{finding_id}.md"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise InputError("its page is not installed", source=finding_id)


def about_plugin(plugin: str) -> str:
    """What Kubernetes did to a plugin, and what its volumes lose on the way there and back."""
    from replant.gates.plugins import LIVES, migrated_by_default_from
    from replant.translate import driver_of
    from replant.translate.losses import Start, losses

    life, since = LIVES[plugin], migrated_by_default_from(plugin)
    default = f"by default from {since.of_minor} on" if since else "never by default"
    if not life.translated:
        default = "only where its gate is on"
    lines = [
        f"{plugin} is taken over by {driver_of(plugin)}.",
        f"Kubernetes redirects its volumes {default} ({life.migration_gate}).",
        f"Its code is gone from {life.removed.of_minor} on"
        + ("." if life.translated else ", and so is its translation: convert its volumes before."),
    ]
    for start, other in ((Start.IN_TREE, "CSI"), (Start.CSI, "in-tree")):
        lines += ["", f"What {start} → {other} → {start} changes:"]
        lines += [f"  {loss.field}: {loss.why}" for loss in losses(plugin, start)]
    return "\n".join(lines)


def _findings_of(subject: str, report: Report, given: dict[str, Any]) -> list[Finding]:
    from replant.cli.scanning import Scanning

    kind, _, path = subject.partition("/")
    namespace, _, name = path.rpartition("/")
    singular = kind.lower().removesuffix("s") if kind.lower() not in _KINDS else kind.lower()
    wanted = {_KINDS.get(it, it).lower() for it in (kind.lower(), singular)}
    result = Scanning(report, **given).run()
    return [
        finding
        for finding in result.findings
        if finding.object.kind.lower() in wanted
        and finding.object.name == name
        and (not namespace or finding.object.namespace in (namespace, ""))
    ]


def _shown(finding: Finding) -> str:
    lines = [f"{finding.id} ({finding.severity}): {finding.reason}"]
    lines += [f"  {line}" for line in finding.fix.splitlines()]
    return "\n".join(map(printable, lines))
