"""``replant sandbox``: an embedded cluster that speaks the Kubernetes API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replant.cli import options, sandbox_controls
from replant.cli.sandbox_controls import DEFAULT_KUBECONFIG
from replant.errors import InputError

if TYPE_CHECKING:
    from replant.sandbox.server import Sandbox

EXAMPLES = """\b
Examples:
  replant sandbox up                        # on a free port; ends with Ctrl-C
  replant sandbox up --scenario aws-20-nodes --speed 20
  replant sandbox up --port 8001 -f cluster.yaml
  kubectl --kubeconfig $(replant sandbox kubeconfig) get nodes
  replant sandbox switch --component kube-controller-manager CSIMigrationAWS=true
  replant sandbox switch --node workers-0 CSIMigrationAWS=-
  replant sandbox disks
"""
SCENARIOS = (
    "aws-20-nodes",
    "multi-cloud",
    "portworx-secure",
    "openshift",
    "gardener-seed",
    "5000-nodes",
)


@click.group(epilog=EXAMPLES)
def command() -> None:
    """Run an embedded cluster that kubectl can talk to. It is gone when it ends."""


for _control in sandbox_controls.COMMANDS:
    command.add_command(_control)


@command.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="PORT",
    help="Where to listen on 127.0.0.1; a free port by default.",
)  # fmt: skip
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-",
    help="Objects to begin with.",
)  # fmt: skip
@click.option(
    "--scenario", metavar="NAME|FILE",
    help=f"A cluster that lives: {', '.join(SCENARIOS)}, or a YAML of your own.",
)  # fmt: skip
@click.option(
    "--speed", type=float, metavar="NUMBER", default=1.0, show_default=True,
    help="So many seconds of the scenario's cluster pass in a real one.",
)  # fmt: skip
@options.recursive
@options.max_size
@click.option(
    "--kubeconfig", "kubeconfig", type=click.Path(path_type=Path), default=DEFAULT_KUBECONFIG,
    show_default=True, metavar="FILE", help="Where to write the kubeconfig.",
)  # fmt: skip
def up(
    port: int,
    paths: tuple[str, ...],
    scenario: str | None,
    speed: float,
    recursive: bool,
    max_size: int,
    kubeconfig: Path,
) -> None:
    """Start it, print its kubeconfig's path, and serve until interrupted."""
    if scenario == "":
        raise InputError("give a name or a file, or leave it out", source="--scenario")
    if speed != 1 and not scenario:
        raise click.UsageError("--speed is a scenario's: without one nothing happens by itself.")
    from replant.sandbox.server import Sandbox, open_port, serve, write_kubeconfig

    with open_port(port) as listening:
        sandbox = of_scenario(scenario, max_size, speed) if scenario else Sandbox()
        sandbox.load(_objects(paths, recursive=recursive, max_size=max_size))
        taken = listening.getsockname()[1]
        kubeconfig = kubeconfig.expanduser().absolute()
        write_kubeconfig(kubeconfig, taken)
        click.echo(str(kubeconfig))
        click.echo(f"serving on http://127.0.0.1:{taken}; Ctrl-C ends it", err=True)
        serve(sandbox, listening)


def of_scenario(scenario: str, max_size: int, speed: float = 1.0) -> Sandbox:
    """The sandbox of a scenario that ships, by its name, or of one in a file."""
    from replant.cli.bulk import collector_off
    from replant.cli.documents import Document
    from replant.sandbox.refusals import ApiError
    from replant.sandbox.server import Sandbox
    from replant.sandbox.soundness import Mistake

    shipped = Path(__file__).parents[1] / "sandbox" / "scenarios" / f"{scenario}.yaml"
    path = str(shipped) if scenario in SCENARIOS else scenario
    document = Document.read(path, max_size)
    wanted = document.scenario()
    with collector_off():
        try:
            return Sandbox.of(wanted, speed=speed)
        except Mistake as error:
            raise document.wrong(error.place, error.reason) from None
        except ApiError as error:
            # What nobody has thought of: the file is known at least.
            raise document.wrong((), error.message) from None


@command.command("kubeconfig")
def show_kubeconfig() -> None:
    """Print where a sandbox writes its kubeconfig unless told otherwise."""
    click.echo(str(DEFAULT_KUBECONFIG.expanduser()))


def _objects(paths: tuple[str, ...], *, recursive: bool, max_size: int) -> Iterator[dict[str, Any]]:
    """The objects of the files that were named; an error if one cannot be read."""
    from replant.manifests import sources
    from replant.manifests.documents import documents

    for path in paths:
        for file in sources.find(path, recursive=recursive):
            if isinstance(file, InputError):
                raise file
            for document in documents(sources.read(file, max_size)):
                if isinstance(document, InputError):
                    raise document
                yield from (item.value() for item in document.items)
