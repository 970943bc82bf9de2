"""Registers the commands and turns every outcome into an exit code.

0 clean, 1 the tool failed, 2 findings, 3 blockers, 4 partly applied and resumable.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import PurePath

import click

from replant import __version__
from replant.cli.reporting import FAILED, silence
from replant.errors import ReplantError, printable

COMMANDS = {
    "scan": "Find everything that is still in the tree, and say what to do about it.",
    "explain": "Explain a finding, a plugin or an object.",
    "gates": "Show what feature gates do at a version, and what the next one changes.",
    "route": "Tell who serves each operation on a volume, or that nobody can, and why.",
    "plan": "Plan a switch: preflight, steps in the only safe order, undo and proof.",
    "status": "Show how far each plugin's migration is, and what is stuck.",
    "verify": "Prove that a plan or an order loses no volume, or tell how it does.",
    "apply": "Carry a plan out, step by step; resume it or take it back from anywhere.",
    "convert": "Replace stored in-tree volumes by native CSI ones, while their pods run.",
    "drivers": "Install, adopt and remove CSI drivers, and see how they are.",
    "translate": "Translate manifests and dumps from in-tree volumes to CSI, or back.",
    "operator": "Run controllers in a cluster: CSI drivers, Gardener's CSI migration.",
    "sandbox": "Run an embedded cluster that kubectl can talk to.",
    "demo": "Show all of it, on a sandbox, in a minute.",
}
"""Each command, in the module of its name, and what ``--help`` says of it."""

INTERRUPTED = 130


class Commands(click.Group):
    """Loads a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All commands, in the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"replant.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading one."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="See 'replant COMMAND --help' for a command's options and examples.",
)
@click.version_option(__version__, prog_name="replant")
def main() -> None:
    """Move a cluster's volumes out of the tree: from in-tree plugins to their CSI drivers."""


def run() -> None:
    """The ``replant`` and ``kubectl-replant`` commands."""
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:
            # Closed by whoever started us; what is written there is not wanted.
            setattr(sys, stream, open(os.devnull, "r+"))  # noqa: PTH123, SIM115
    name = PurePath(sys.argv[0]).name
    prog_name = "kubectl replant" if name.startswith("kubectl-") else "replant"
    sys.exit(_outcome(prog_name))


def _outcome(prog_name: str) -> int:
    try:
        code = main.main(prog_name=prog_name, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return FAILED
    except BrokenPipeError:
        silence(sys.stdout)  # whoever read our output has seen enough
        return FAILED
    except (ReplantError, OSError) as error:
        click.echo(f"error: {printable(str(error))}", err=True)
        return FAILED
    except Exception as error:
        if os.environ.get("REPLANT_TRACEBACK"):
            raise
        what = printable(f"{type(error).__name__}: {error}")
        click.echo(
            f"replant: this should not have happened: {what}\n"
            "Please report it, with what REPLANT_TRACEBACK=1 in the environment makes it print.",
            err=True,
        )
        return FAILED
    return code if isinstance(code, int) else 0
