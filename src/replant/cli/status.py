"""``replant status``: how far the migration is, and where to look if it does not go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.cli.plan import chosen_plugins
from replant.cli.reporting import FAILED, Report
from replant.errors import ReplantError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replant.gardener.providers import Provider
    from replant.gates.versions import Version
    from replant.inventory.model import Inventory
    from replant.report.standing import JoinedStanding, RunStanding

FORMATS = ("table", "json", "yaml")

EXAMPLES = """\b
Examples:
  # Who redirects what by now, and what is stuck
  replant status
\b
  # Every node, one plugin
  replant status --plugin aws-ebs --nodes
\b
  # How far all shoots of a seed of Gardener are
  replant status --shoots
\b
  # The same, where the operator was told another minor
  replant status --shoots --provider aws --migration-version 1.19
\b
  # Every volume, and which driver it is marked with
  replant status --volumes
\b
  # For a script
  replant status -o json | jq '.plugins[].nodes[] | select(.migrated | not).name'
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--plugin", "plugins", multiple=True, callback=chosen_plugins, metavar="PLUGIN",
    help="Such as aws-ebs; by default all that the cluster has anything of.",
)  # fmt: skip
@click.option("--shoots", is_flag=True, help="All shoots of a seed of Gardener instead.")
@options.provider("Whose shoots --migration-version and --legacy-class are for.")
@options.migration_version
@options.legacy_classes
@click.option("--nodes", "every_node", is_flag=True, help="A line for each node, not only counts.")
@click.option(
    "--volumes", "every_volume", is_flag=True,
    help="A line for each volume: its claim, how it is stored, and what it is marked with.",
)  # fmt: skip
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-",
    help="Look at files instead of a cluster.",
)  # fmt: skip
@options.recursive
@options.kubeconfig
@options.context
@options.server_version
@click.option("-o", "--output", type=click.Choice(FORMATS), default=FORMATS[0], show_default=True)
@options.journal
@options.max_size
@options.verbose
@click.pass_context
def command(
    ctx: click.Context,
    /,
    plugins: tuple[str, ...],
    every_node: bool,
    every_volume: bool,
    shoots: bool,
    output: str,
    verbose: bool,
    journal: str,
    provider: str | None,
    migration_version: Version | None,
    classes: tuple[tuple[str, str], ...],
    **given: Any,
) -> None:
    """Show how far each plugin's migration is: gates, nodes, volumes, and what is stuck.

    Nothing is changed, and nothing is judged: replant scan does that. Exit codes: 0 shown, 1 not
    all could be read.
    """
    from replant.cli.bulk import collector_off
    from replant.cli.scanning import Scanning
    from replant.gardener.providers import PROVIDERS
    from replant.inventory.standing import standing
    from replant.report.standing import document, text

    report = Report(verbose=verbose)
    if shoots:
        _only_with_shoots(ctx)
        if bool(provider) != bool(migration_version or classes):
            raise click.UsageError(
                "--migration-version and --legacy-class are told of one --provider: give both"
            )
        providers = dict(PROVIDERS)
        if provider:
            providers[provider] = PROVIDERS[provider].told(migration_version, classes)
        click.echo(_shoots(given, output, report, providers), nl=False)
        ctx.exit(FAILED if report.failed else 0)
    if provider or migration_version or classes:
        raise click.UsageError("--provider, --migration-version and --legacy-class need --shoots")
    try:
        with collector_off():
            inventory = Scanning(report, **given).inventory()
            found = standing(inventory, plugins)
    except ReplantError as error:
        report.problem(error)
        ctx.exit(FAILED)
    run, joined = (None, ()) if given["paths"] else _runs(journal, given, report, inventory)
    if output == "table":
        told = text(found, run, joined, nodes=every_node, volumes=every_volume)
    else:
        told = rendered(document(found, run, joined), output)
    click.echo(told, nl=False)
    ctx.exit(FAILED if report.failed else 0)


def _only_with_shoots(ctx: click.Context) -> None:
    """Refuse what would be passed over in silence."""
    taken = (
        "shoots", "provider", "migration_version", "classes",
        "kubeconfig", "context", "output", "verbose",
    )  # fmt: skip
    for option in ctx.command.params:
        name = option.name or ""
        default = ctx.get_parameter_source(name) is click.core.ParameterSource.DEFAULT
        if name not in taken and not default:
            raise click.UsageError(f"--shoots does not go with {option.opts[-1]}")


def _shoots(
    given: dict[str, Any], output: str, report: Report, providers: Mapping[str, Provider]
) -> str:
    """How far every shoot of a seed is, in one of the formats."""
    import asyncio

    from replant.cli.connecting import connected
    from replant.gardener.standing import ShootStanding
    from replant.operator.survey import survey
    from replant.report import shoots

    async def look() -> list[ShootStanding]:
        async with connected(given, report.note) as reader:
            return await survey(reader, providers)

    found = asyncio.run(look())
    if unread := [it.cluster for it in found if it.unread]:
        report.problem(f"{len(unread)} of {len(found)} shoots could not be read")
    if output == "table":
        return shoots.text(found)
    return rendered(shoots.document(found), output)


_Runs = tuple["RunStanding | None", "tuple[JoinedStanding, ...]"]


def _runs(journal: str, given: dict[str, Any], report: Report, inventory: Inventory) -> _Runs:
    """The run that is under way, as far as this user may see it, and who joined since the last."""
    import asyncio

    from replant.cli.connecting import connected, journals_of
    from replant.errors import Forbidden
    from replant.execute.following import follow
    from replant.execute.postcheck.joined import find_joined
    from replant.execute.timing import RealTiming
    from replant.report.standing import JoinedStanding, RunStanding

    async def look() -> _Runs:
        timing = RealTiming()
        async with connected(given, report.note) as reader:
            journals = journals_of(journal, reader, timing, report.note)
            found = await follow(reader, journals, timing.now())
            listed = {it: inventory.announced_by(it) for it in inventory.nodes}
            joined = await find_joined(journals, listed)
        others = tuple(JoinedStanding(it.name, it.run, it.missing, it.surplus) for it in joined)
        if found is None:
            return None, others
        run = RunStanding(
            id=found.id,
            goal=found.goal,
            state=found.state,
            step=found.step,
            waiting_for=found.waits,
            holder=found.at_work,
            since=found.started,
            away=found.away,
        )
        return run, others

    try:
        return asyncio.run(look())
    except Forbidden as error:
        report.note(f"whether a run is under way cannot be seen: {error}")
    except ReplantError as error:
        report.problem(error)  # how far the cluster is can be shown all the same
    return None, ()


def rendered(data: Any, output: str) -> str:
    """Plain data as JSON or YAML."""
    from replant.manifests import yamltext
    from replant.report import json_document

    return json_document.json_text(data) if output == "json" else yamltext.dump(data)
