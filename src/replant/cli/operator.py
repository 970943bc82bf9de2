"""``replant operator``: controllers that run until they are stopped."""

from __future__ import annotations

from typing import Any

import click

from replant.cli import options
from replant.errors import printable

MIGRATION = "gardener-csi-migration"
CONTROLLERS = (MIGRATION,)
PROVIDERS = ("aws", "gcp", "openstack", "azure")

EXAMPLES = """\b
Examples:
  # In a seed of Gardener, for the shoots of one provider
  replant operator --controllers gardener-csi-migration --provider aws
\b
  # With another minor, and classes of one's own
  replant operator --controllers gardener-csi-migration --provider aws \\
    --migration-version 1.19 --legacy-class fast=kubernetes.io/aws-ebs
"""


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


@click.command(epilog=EXAMPLES)
@click.option(
    "--controllers", type=click.Choice(CONTROLLERS), multiple=True, required=True,
    help="What to run.",
)  # fmt: skip
@click.option(
    "--provider", type=click.Choice(PROVIDERS), required=True,
    help="Whose shoots are meant.",
)  # fmt: skip
@click.option(
    "--migration-version", callback=options.version, metavar="VERSION",
    help="The minor with which shoots go over to CSI; the provider's own by default.",
)  # fmt: skip
@click.option(
    "--legacy-class", "classes", multiple=True, callback=_classes, metavar="NAME=PROVISIONER",
    help="A class that makes way for a CSI one; the provider's own by default.",
)  # fmt: skip
@click.option(
    "--concurrency", type=click.IntRange(1, 1000), default=10, show_default=True,
    metavar="SHOOTS", help="So many shoots at a time.",
)  # fmt: skip
@options.kubeconfig
@options.context
def command(**given: Any) -> None:
    """Run controllers until they are interrupted.

    What they do follows from what they see: stopped at any time, started anew or run twice, they
    come to the same end. See docs/gardener.md.
    """
    import asyncio

    from replant.gardener.providers import PROVIDERS as TABLE
    from replant.operator.run import Running, Where, migrate_shoots

    provider = TABLE[given["provider"]].told(given["migration_version"], given["classes"])
    where = Where(given["kubeconfig"], given["context"])

    async def run() -> None:
        await migrate_shoots(
            where, provider, concurrency=given["concurrency"], note=_note, running=Running()
        )

    asyncio.run(run())


def _note(text: str) -> None:
    click.echo(printable(text), err=True)
