"""A plan for the largest scenario, carried out: the engine's own work, and what it asks for.

The sandbox is another process whose clock stands still unless the engine waits, so waiting costs
nothing, and what counts is the processor's time of the engine's process.

    python -m benchmarks.apply [NODES ...]

Numbers of nodes make the scenario so large instead, one after the other: what a node costs must
not depend on how many there are.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

import replant
from replant.execute.hands import REQUESTS_AT_ONCE

SCENARIO = "5000-nodes"
NODES = 5000
AT_ONCE = 100
MILLISECONDS_PER_NODE = 10.0
REQUESTS_PER_NODE = 6.0
MARK_EVERY = 1.0
"""So many seconds are between two looks at how fast the machine is."""

SERVER = """
import sys, time
from pathlib import Path
from contextlib import closing
from replant.cli.bulk import collector_off
from replant.cli.documents import Document
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig

scenario = Document.read(sys.argv[1], 1).scenario()
with collector_off():
    sandbox = Sandbox.of(scenario, by_hand=True)
with closing(open_port(0)) as listening, serving(sandbox, listening):
    write_kubeconfig(Path(sys.argv[2]), listening.getsockname()[1])
    print("up", flush=True)
    began = time.process_time()
    sys.stdin.read()
    print(time.process_time() - began)
"""


class Silent:
    """Shows nothing: a terminal's work is not the engine's."""

    def step(self, *_: Any) -> None: ...
    def progress(self, *_: Any) -> None: ...
    def step_done(self, *_: Any) -> None: ...
    def note(self, text: object) -> None:
        print(f"  note: {text}", file=sys.stderr)


APART = ("evictions", "journal", "lease", "sandbox")
"""Requests that are counted apart: one for each pod, and what is not about nodes."""


def kind_of(method: str, path: str) -> str:
    """What a request is for."""
    if path.startswith("/sandbox"):
        return "sandbox"
    if path.endswith("/eviction"):
        return "evictions"
    if "/configmaps" in path:
        return "journal"
    if "/leases" in path:
        return "lease"
    kinds = ("pods", "nodes", "csinodes", "volumeattachments")
    return f"{method} {next((it for it in kinds if f'/{it}' in path), path.split('/')[-1])}"


def counting(connection: Any) -> Counter[str]:
    """Count all requests of a connection from here on."""
    counts: Counter[str] = Counter()
    opened = connection._opened  # noqa: SLF001 (only a benchmark)

    def counted(client: Any, request: Any) -> Any:
        counts[kind_of(request.method, request.path)] += 1
        return opened(client, request)

    connection._opened = counted  # noqa: SLF001
    return counts


class Pace:
    """How fast this machine is now: it may have others to work for, and change by the minute."""

    def __init__(self) -> None:
        self._marks: list[float] = []

    def mark(self) -> None:
        """Do a piece of work that is always the same, and note the processor's seconds for it."""
        began = time.process_time()
        sum(len(str(number)) for number in range(20_000))
        self._marks.append(time.process_time() - began)

    async def follow(self) -> None:
        """Go on doing so now and then, until cancelled."""
        while True:
            self.mark()
            await asyncio.sleep(MARK_EVERY)

    @property
    def spent(self) -> float:
        """What all of that has cost."""
        return sum(self._marks)

    @property
    def mean(self) -> float:
        """What one piece has cost."""
        return self.spent / len(self._marks)


async def bare(connection: Any) -> float:
    """What a request costs that is sent with the same client, as many at a time, and no more.

    It is counted in pieces of work that are always the same: see Pace.
    """
    rounds, each = 20, 25

    async def some() -> None:
        for _number in range(each):
            await connection.get("/version", {})

    pace, spent = Pace(), 0.0
    for _round in range(rounds):
        pace.mark()
        began = time.process_time()
        await asyncio.gather(*(some() for _ in range(REQUESTS_AT_ONCE)))
        spent += time.process_time() - began
    return spent / (rounds * each * REQUESTS_AT_ONCE) / pace.mean


async def apply(kubeconfig: str) -> bool:
    from replant.cluster.collect import Collector
    from replant.cluster.live import connect
    from replant.cluster.writing import LiveWriter
    from replant.execute.journal.configmaps import ConfigMapJournals
    from replant.execute.run import Applying, How
    from replant.gates.versions import Version
    from replant.inventory.build import Builder
    from replant.plan.compose import Choices
    from replant.plan.make import Wanted, make_plan
    from replant.plan.model import Goal
    from replant.platforms.sandbox import SandboxActuator, timing_of

    silent = Silent()
    async with connect(kubeconfig) as reader:
        builder = Builder()
        await Collector(reader, builder, complain=silent.note, progress=silent.progress).collect()
        inventory = builder.finish(
            server=Version.parse(await reader.server_version()),
            unknown={}, namespace="", selector=None,
        )  # fmt: skip
        wanted = Wanted(
            Goal.ENABLE, ("kubernetes.io/aws-ebs",), choices=Choices(max_unavailable=AT_ONCE)
        )
        plan = make_plan(wanted, inventory)
        nodes = sum(len(group.nodes) for group in plan.groups)
        del inventory, builder
        first = await bare(reader.connection)
        counts = counting(reader.connection)
        timing = await timing_of(reader.connection)
        writer = LiveWriter(reader)
        applying = Applying(
            reader=reader, writer=writer, actuator=SandboxActuator(reader.connection),
            journals=ConfigMapJournals(reader, writer, timing, silent.note),
            timing=timing, display=silent, how=How(),
        )  # fmt: skip
        began, wall = time.process_time(), time.monotonic()
        pace = Pace()
        following = asyncio.create_task(pace.follow())
        result = await applying.begin(plan, {})
        spent, lived = time.process_time() - began - pace.spent, time.monotonic() - wall
        following.cancel()
        total = Counter(counts)
        floor = total.total() * pace.mean * (first + await bare(reader.connection)) / 2
        return report(nodes, spent, floor, lived, total, result)


def report(
    nodes: int, spent: float, floor: float, wall: float, counts: Counter[str], result: Any
) -> bool:
    own = 1000 * (spent - floor) / nodes
    asked = sum(count for kind, count in counts.items() if kind not in APART)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"apply: {nodes:,} nodes, {AT_ONCE} at a time, {result.state}")
    minutes = result.seconds / 60
    print(f"  {minutes:,.0f} minutes of the cluster's time, lived through in {wall:,.0f} s")
    print(f"  processor: {spent:.1f} s, {peak:,.0f} MiB; sending as many requests: {floor:.1f} s")
    print(f"  the engine's own work: {own:.1f} ms a node (at most {MILLISECONDS_PER_NODE:g})")
    print(f"  requests: {asked / nodes:.1f} a node (at most {REQUESTS_PER_NODE:g}), apart from")
    print("   ", ", ".join(f"{counts[it]:,} {it}" for it in APART))
    return own <= MILLISECONDS_PER_NODE and asked / nodes <= REQUESTS_PER_NODE


def scenario(nodes: int) -> str:
    """The largest scenario that ships, with so many nodes and as much on each."""
    shipped = Path(replant.__file__).parent / "sandbox" / "scenarios" / f"{SCENARIO}.yaml"
    content = yaml.safe_load(shipped.read_text())
    for part in (*content["pools"], *content["workloads"], *content["spares"]):
        part["count"] = part["count"] * nodes // NODES
    return yaml.safe_dump(content)


def measure(nodes: int) -> bool:
    """Carry it out once; tells whether it costs no more than is wanted."""
    with tempfile.TemporaryDirectory(prefix="replant-bench-") as name:
        script, file, kubeconfig = (Path(name) / it for it in ("server.py", "scenario", "config"))
        script.write_text(SERVER)
        file.write_text(scenario(nodes))
        with subprocess.Popen(
            [sys.executable, script, file, kubeconfig],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout  # noqa: S101 (it is a pipe)
            process.stdout.readline()
            try:
                fine = asyncio.run(apply(str(kubeconfig)))
                spent = float(process.communicate()[0])
                print(f"  the sandbox, meanwhile: {spent:,.1f} s of the processor")
            finally:
                process.terminate()
    return fine


def main() -> None:
    sizes = [int(it) for it in sys.argv[1:]] or [NODES]
    fine = [measure(it) for it in sizes]
    if not all(fine):
        raise SystemExit("too much")


if __name__ == "__main__":
    main()
