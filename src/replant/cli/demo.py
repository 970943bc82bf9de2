"""``replant demo``: everything that Replant does, on a sandbox of its own."""

from __future__ import annotations

import click

PACES = ("fast", "slow")
REPORT = "replant-demo-report.html"


@click.command()
@click.option(
    "--pace",
    type=click.Choice(PACES),
    default="fast",
    show_default=True,
    help="slow leaves an audience time to read.",
)
@click.option(
    "--report",
    default=REPORT,
    show_default=True,
    metavar="FILE.html",
    help="Where the report of the run goes; all else is removed at the end.",
)
def command(pace: str, report: str) -> None:
    """Show a switch of twenty nodes: interrupted, taken back, killed, resumed, and done wrong.

    It runs the real commands on embedded clusters that are gone at the end, and touches no other.
    It fails, with exit code 1, if anything comes out otherwise than it should.
    """
    from replant.cli.demo_acts import play

    play(pace, report)
