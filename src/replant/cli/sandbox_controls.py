"""``replant sandbox``, for one that is up: what is in it, and what to do to it.

They reach it over HTTP as any client does, and never leave this machine: a kubeconfig that leads
anywhere else is refused before anything is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from replant.errors import InputError, Refused, Unreachable, printable, shown

DEFAULT_KUBECONFIG = Path("~/.cache/replant/sandbox.kubeconfig")
_HERE = ("127.0.0.1", "localhost")
_TIMEOUT = 60.0
_GIB = 1 << 30

Rows = Iterable[Sequence[str]]
Shown = dict[str, Any]

_kubeconfig = click.option(
    "--kubeconfig", "kubeconfig", type=click.Path(path_type=Path), default=DEFAULT_KUBECONFIG,
    show_default=True, metavar="FILE", help="Where the sandbox has written its kubeconfig.",
)  # fmt: skip
_output = click.option("-o", "--output", type=click.Choice(("table", "json")), default="table")


def _gates(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> dict[str, bool | None]:
    written = {"true": True, "false": False, "-": None}
    given: dict[str, bool | None] = {}
    for value in values:
        gate, _, setting = value.partition("=")
        if not gate or setting not in written:
            said = f"{shown(value)!r} is not GATE=true, GATE=false, or GATE=- to take it away"
            raise click.BadParameter(said)
        given[gate] = written[setting]
    return given


@click.command()
@_kubeconfig
@_output
def disks(kubeconfig: Path, output: str) -> None:
    """Show which disk is attached where, as the cloud has it."""
    _say(_ask(kubeconfig, "GET", "disks"), output, _disk_rows)


@click.command()
@_kubeconfig
@_output
def writes(kubeconfig: Path, output: str) -> None:
    """Show how much was written to each disk, and the gaps.

    Pods write to their disks once a second. A disk that was taken from one that ran is yanked.
    """
    _say(_ask(kubeconfig, "GET", "writes"), output, _write_rows)


@click.command()
@click.option("--component", metavar="NAME", help="Such as kube-controller-manager: all replicas.")
@click.option("--node", metavar="NAME", help="The kubelet of a node.")
@click.argument("gates", nargs=-1, callback=_gates, metavar="[GATE=true|false|-]...")
@_kubeconfig
@_output
def switch(
    component: str | None,
    node: str | None,
    gates: dict[str, bool | None],
    kubeconfig: Path,
    output: str,
) -> None:
    """Give a component or a node's kubelet other gates, which restarts it; or show those it has."""
    if bool(component) == bool(node):
        raise click.UsageError("Name either a --component or a --node.")
    path = ("components", component) if component else ("nodes", node or "")
    if gates:
        answer = _ask(kubeconfig, "PUT", *path, body={"gates": gates})
    else:
        answer = _ask(kubeconfig, "GET", *path)
    _say(answer, output, _replica_rows)


@click.command()
@click.argument("node")
@_kubeconfig
@_output
def kill(node: str, kubeconfig: Path, output: str) -> None:
    """Have a node's machine die without a word."""
    _say(_ask(kubeconfig, "POST", "nodes", node, "kill"), output, _replica_rows)


@click.command()
@click.argument("node")
@_kubeconfig
@_output
def revive(node: str, kubeconfig: Path, output: str) -> None:
    """Have a dead node's machine boot."""
    _say(_ask(kubeconfig, "POST", "nodes", node, "revive"), output, _replica_rows)


COMMANDS = (disks, writes, switch, kill, revive)


# What is shown


def _say(answer: Shown, output: str, rows: Callable[[Shown], Rows]) -> None:
    if output == "json":
        click.echo(json.dumps(answer, indent=2))
        return
    table = [[printable(cell) or "-" for cell in row] for row in rows(answer)]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _disk_rows(answer: Shown) -> Iterator[Sequence[str]]:
    yield "DISK", "SIZE", "ZONE", "NODE", "STATE"
    for disk in answer["disks"]:
        node = disk["attachedTo"] or disk["attachingTo"]
        state = "attached" if disk["attachedTo"] else "attaching" if node else "free"
        # Of a disk that a volume brought along, the cloud knows neither size nor zone.
        size = f"{disk['size'] / _GIB:g}Gi" if disk["size"] else ""
        yield disk["id"], size, disk["zone"], node, "detaching" if disk["detaching"] else state


def _write_rows(answer: Shown) -> Iterator[Sequence[str]]:
    yield "DISK", "WRITES", "GAPS", "LONGEST", "STOPPED", "YANKED"
    yanked = set(answer["yanked"])
    for disk in answer["disks"]:
        gaps = disk["gaps"]
        over = [_seconds(gap) for gap in gaps if gap["end"]]
        longest = f"{max(over):.1f}s" if over else ""
        stopped = next((f"since {gap['start']}" for gap in gaps if not gap["end"]), "")
        was_yanked = "yes" if disk["id"] in yanked else "no"
        yield disk["id"], str(disk["writes"]), str(len(gaps)), longest, stopped, was_yanked


def _seconds(gap: Shown) -> float:
    start, end = (datetime.fromisoformat(gap[it]) for it in ("start", "end"))
    return (end - start).total_seconds()


def _replica_rows(answer: Shown) -> Iterator[Sequence[str]]:
    yield "NAME", "READY", "GATES", "FLAGS"
    for replica in answer["replicas"]:
        gates = (f"{gate}={str(on).lower()}" for gate, on in replica["gates"].items())
        flags = (f"--{flag}={value}" for flag, value in replica.get("flags", {}).items())
        is_ready = "yes" if replica["ready"] else "no"
        yield replica["name"], is_ready, ",".join(gates), " ".join(flags)


# How it is asked


def _ask(kubeconfig: Path, method: str, *path: str, body: object = None) -> Shown:
    """Ask the sandbox that a kubeconfig leads to; an error says what it answered instead."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import quote

    host, port = _address(kubeconfig.expanduser())
    where = f"http://{host}:{port}"
    connection = HTTPConnection(host, port, timeout=_TIMEOUT)
    url = "/".join(("/sandbox", *(quote(part, safe="") for part in path)))
    try:
        connection.request(method, url, None if body is None else json.dumps(body))
        text = connection.getresponse().read()
    except (OSError, HTTPException) as error:
        why = str(error) or type(error).__name__
        said = f"No sandbox answers at {where}: {why}. Start one with replant sandbox up."
        raise Unreachable(said) from None
    finally:
        connection.close()
    try:
        answer = json.loads(text)
        refusal = answer["message"] if answer.get("kind") == "Status" else ""
    except (ValueError, LookupError, AttributeError):
        raise Refused(f"What answers at {where} is no sandbox.") from None
    if refusal:
        raise Refused(refusal)
    found: Shown = answer
    return found


def _address(kubeconfig: Path) -> tuple[str, int]:
    """Where a sandbox's kubeconfig leads; InputError if it is none."""
    from urllib.parse import urlsplit

    from replant.manifests import yamltext

    source = f"kubeconfig {kubeconfig}"
    try:
        server = _server(yamltext.load(kubeconfig.read_bytes().decode()))
        url = urlsplit(server)
        host, port = url.hostname, url.port
    except FileNotFoundError:
        said = "there is no such file; replant sandbox up writes it"
        raise InputError(said, source=source) from None
    except OSError as error:
        raise InputError(error.strerror or str(error), source=source) from None
    except ValueError as error:
        raise InputError(str(error), source=source) from None
    if url.scheme != "http" or host not in _HERE or not port:
        said = f"leads to {shown(server)}, which is no sandbox on this machine"
        raise InputError(said, source=source)
    return host, port


def _server(config: Any) -> str:
    """The address that the current context names."""
    try:
        contexts = {it["name"]: it["context"]["cluster"] for it in config["contexts"]}
        clusters = {it["name"]: it["cluster"]["server"] for it in config["clusters"]}
        return str(clusters[contexts[config["current-context"]]])
    except (LookupError, TypeError):
        raise ValueError("names no server for its current context") from None
