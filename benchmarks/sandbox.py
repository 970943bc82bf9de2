"""The largest scenario as it ships: what it takes to come up, and its lists against their bytes.

All of coming up happens in one thread, so what counts is the processor's time, from the start of
the process on. Others who are busy on the machine slow it down too, by two fifths at worst so far.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from replant.sandbox.server import Sandbox

SCENARIO = "5000-nodes"
PAGE = 500
ROUNDS = 3
LIMIT = 3.0
"""A list may cost so many times what sending its bytes with the same server does."""
UP_SECONDS, UP_MIB = 30, 2048

SERVER = """
import resource, sys, time
from contextlib import closing
from benchmarks.sandbox import SCENARIO, count, floor_app
from replant.cli.sandbox import of_scenario
from replant.sandbox.server import Sandbox, open_port, serving

sandbox = of_scenario(SCENARIO, max_size=1)
seconds = time.process_time()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
counted = count(sandbox)
with closing(open_port(0)) as first, serving(sandbox, first) as address:
    bare = Sandbox()
    bare.api.app = lambda: floor_app(address)
    with closing(open_port(0)) as second, serving(bare, second) as floor:
        print(address, floor, seconds, peak, *counted, flush=True)
        sys.stdin.read()
"""


def count(sandbox: Sandbox) -> tuple[int, int, int]:
    """Its nodes, its volumes, and its pods that run on volumes."""
    from replant.sandbox.resources import NODES, PERSISTENT_VOLUMES, PODS

    pods = [it for it in sandbox.store.entries(PODS) if it.namespace != "kube-system"]
    running = sum(it.fields["status.phase"] == "Running" for it in pods)
    if running != len(pods):
        raise SystemExit(f"only {running} of {len(pods)} pods run")
    entries = sandbox.store.entries
    return len(entries(NODES)), len(entries(PERSISTENT_VOLUMES)), running


def floor_app(address: str) -> Any:
    """The pages of the volumes' list, as bytes that are only to be sent."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    with client(address) as http:
        pages = listed(http)

    async def page(request: Request) -> Response:
        body = pages[int(request.path_params["number"])]
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/{number}", page)])


def client(address: str) -> httpx.Client:
    return httpx.Client(base_url=address, trust_env=False, timeout=60)


def listed(http: httpx.Client) -> list[bytes]:
    pages: list[bytes] = []
    asked: dict[str, str] = {"limit": str(PAGE)}
    while True:
        body = http.get("/api/v1/persistentvolumes", params=asked).content
        pages.append(body)
        head = body[: body.index(b',"items":')]
        asked["continue"] = json.loads(head + b"}")["metadata"].get("continue", "")
        if not asked["continue"]:
            return pages


def sent(http: httpx.Client, count: int) -> list[bytes]:
    return [http.get(f"/{number}").content for number in range(count)]


def timed(what: Any, *arguments: Any) -> tuple[float, list[bytes]]:
    start = time.perf_counter()
    pages: list[bytes] = what(*arguments)
    return time.perf_counter() - start, pages


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="replant-bench-") as name:
        script = Path(name) / "server.py"
        script.write_text(SERVER)
        with subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        ) as process:
            assert process.stdout  # noqa: S101 (it is a pipe)
            address, floor, seconds, peak, *counted = process.stdout.readline().split()
            nodes, volumes, pods = map(int, counted)
            print(f"sandbox, {SCENARIO}: {nodes:,} nodes, {volumes:,} volumes, {pods:,} pods run")
            compare(address, floor, float(seconds), float(peak))
            process.terminate()


def compare(address: str, floor: str, seconds: float, peak: float) -> None:
    print(
        f"  up in {seconds:.1f} s of the processor (at most {UP_SECONDS}), {peak:,.0f} MiB "
        f"(at most {UP_MIB:,})"
    )
    lists: list[float] = []
    bytes_only: list[float] = []
    amount = 0
    with client(address) as http, client(floor) as bare:
        for _round in range(ROUNDS):
            took, pages = timed(listed, http)
            lists.append(took)
            took, same = timed(sent, bare, len(pages))
            bytes_only.append(took)
            amount = sum(map(len, pages))
            if amount != sum(map(len, same)):
                raise SystemExit("the list and its floor are not of the same size")
    ratio = min(lists) / min(bytes_only)
    print(
        f"  a list of {amount / 1e6:.0f} MB in pages of {PAGE}: {min(lists):.2f} s, sending its "
        f"bytes {min(bytes_only):.2f} s, ratio {ratio:.1f} (at most {LIMIT})"
    )
    if ratio > LIMIT or seconds > UP_SECONDS or peak > UP_MIB:
        raise SystemExit("too slow or too large")


if __name__ == "__main__":
    main()
