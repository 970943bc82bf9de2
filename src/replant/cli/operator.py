"""``replant operator``: controllers that run until they are stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replant.cli import options
from replant.errors import printable

if TYPE_CHECKING:
    from replant.drivers.values import Values
    from replant.operator.health import Tally
    from replant.operator.run import Controller, Where

MIGRATION = "gardener-csi-migration"
WEBHOOK = "gardener-webhook"
DRIVERS = "drivers"
CONTROLLERS = (MIGRATION, WEBHOOK, DRIVERS)

EXAMPLES = """\b
Examples:
  # In a seed of Gardener, for the shoots of one provider
  replant operator --controllers gardener-csi-migration --provider aws
\b
  # With another minor, and classes of one's own
  replant operator --controllers gardener-csi-migration --provider aws \\
    --migration-version 1.19 --legacy-class fast=kubernetes.io/aws-ebs
\b
  # The webhooks, on all interfaces
  replant operator --controllers gardener-webhook --provider aws \\
    --bind 0.0.0.0 --tls-cert tls.crt --tls-key tls.key
\b
  # The CSI drivers of a cluster, with images from a mirror
  replant operator --controllers drivers --values values.yaml
\b
  # Their controllers in a seed, their nodes in a shoot
  replant operator --controllers drivers --namespace shoot--x--y \\
    --node-kubeconfig shoot.yaml --node-kubeconfig-secret gardener
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--controllers", type=click.Choice(CONTROLLERS), multiple=True, required=True,
    help="What to run.",
)  # fmt: skip
@options.provider("Whose shoots are meant; controllers of Gardener need it.")
@options.migration_version
@options.legacy_classes
@click.option(
    "--concurrency", type=click.IntRange(1, 1000), default=10, show_default=True,
    metavar="SHOOTS", help="So many shoots at a time.",
)  # fmt: skip
@click.option(
    "--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS",
    help="Where webhooks and probes are answered.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9443, show_default=True, metavar="PORT",
    help="The webhooks' port; 0 for any.",
)  # fmt: skip
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), metavar="FILE",
    help="The webhooks' certificate; it may be renewed in place.",
)  # fmt: skip
@click.option(
    "--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its key.",
)  # fmt: skip
@click.option(
    "--health-port", type=click.IntRange(0, 65535), metavar="PORT",
    help="Answer /healthz, /readyz and /metrics there, over plain HTTP.",
)  # fmt: skip
@click.option(
    "--cloud-config", metavar="PATH",
    help="Where control planes find the cloud's configuration.",
)  # fmt: skip
@options.values
@click.option(
    "--node-kubeconfig", metavar="FILE",
    help="Leads to the cluster where nodes are, if controllers of drivers run in another.",
)  # fmt: skip
@click.option(
    "--node-kubeconfig-secret", metavar="NAME",
    help="The Secret whose key kubeconfig leads controllers of drivers there.",
)  # fmt: skip
@click.option(
    "--namespace", metavar="NAME", help="Where controllers of drivers run in that case.",
)  # fmt: skip
@options.kubeconfig
@options.context
def command(**given: Any) -> None:
    """Run controllers until they are interrupted.

    What they do follows from what they see: stopped at any time, started anew or run twice, they
    come to the same end. See docs/gardener.md and docs/drivers.md.
    """
    if {MIGRATION, WEBHOOK} & set(given["controllers"]) and not given["provider"]:
        raise click.UsageError("controllers of Gardener need --provider")
    split = [given[it] for it in ("node_kubeconfig", "node_kubeconfig_secret", "namespace")]
    if any(split) and not all(split):
        raise click.UsageError(
            "--node-kubeconfig, --node-kubeconfig-secret and --namespace belong together"
        )
    if WEBHOOK in given["controllers"] and not (given["tls_cert"] and given["tls_key"]):
        raise click.UsageError(f"{WEBHOOK} needs --tls-cert and --tls-key")
    import asyncio

    from replant.operator.run import Running, run

    async def main() -> None:
        await run(_controllers(given), running=Running())

    asyncio.run(main())


def _controllers(given: dict[str, Any]) -> list[Controller]:
    from replant.operator.health import Tally
    from replant.operator.run import Where, health
    from replant.operator.webhooks import Listener

    where = Where(given["kubeconfig"], given["context"])
    wanted: list[Controller] = []
    tally = Tally()
    if given["health_port"] is not None:
        wanted.append(health(Listener(given["bind"], given["health_port"], "--health-port"), tally))
    if DRIVERS in given["controllers"]:
        wanted.append(_drivers(given, where))
    if given["provider"]:
        wanted += _of_gardener(given, where, tally)
    return wanted


def _drivers(given: dict[str, Any], where: Where) -> Controller:
    from replant.drivers.operand import Split
    from replant.operator.driver_run import Asked, drivers
    from replant.operator.run import Where

    nodes = split = None
    if given["node_kubeconfig"]:
        nodes = Where(given["node_kubeconfig"])
        split = Split(given["namespace"], given["node_kubeconfig_secret"])
    asked = Asked(where, read_values(given["values"]), nodes, split)
    return drivers(asked, note=_note)


def _of_gardener(given: dict[str, Any], where: Where, tally: Tally) -> list[Controller]:
    from replant.gardener.components import CLOUD_CONFIG_PATH
    from replant.gardener.providers import PROVIDERS as TABLE
    from replant.operator.run import migration, webhooks
    from replant.operator.webhooks import Door

    provider = TABLE[given["provider"]].told(given["migration_version"], given["classes"])
    wanted: list[Controller] = []
    if MIGRATION in given["controllers"]:
        concurrency = given["concurrency"]
        wanted.append(migration(where, provider, concurrency=concurrency, note=_note, tally=tally))
    if WEBHOOK in given["controllers"]:
        door = Door(given["bind"], given["port"], given["tls_cert"], given["tls_key"])
        path = given["cloud_config"] or CLOUD_CONFIG_PATH
        wanted.append(webhooks(where, provider, door, note=_note, cloud_config=path))
    return wanted


def read_values(path: Path | None) -> Values:
    """Which images drivers run: those of a file, or those that ship."""
    from importlib.resources import as_file, files

    from replant.cli.documents import Document
    from replant.drivers.values import values_of

    with as_file(files("replant.drivers") / "values.yaml") as shipped:
        document = Document.read(str(path or shipped), max_size=1)
    return values_of(document.data, document.source)


def _note(text: str) -> None:
    click.echo(printable(text), err=True)
