"""``replant scan`` of a large cluster, from a dump and over HTTP, against decoding it whole."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import cluster, measure

DUMP_FLOOR = """
import gc, orjson, sys, time
data = open(sys.argv[1], "rb").read()
gc.disable()
start = time.perf_counter()
orjson.loads(data)
print(time.perf_counter() - start)
"""

HTTP_FLOOR = """
import asyncio, gc, orjson, sys, time
from replant.cluster.live import connect
from replant.cluster.ports import SCANNED

async def main():
    async with connect(sys.argv[1]) as reader:
        for resource in SCANNED:
            async for page in reader.list_pages(resource):
                orjson.loads(page.body)

gc.disable()
start = time.perf_counter()
asyncio.run(main())
print(time.perf_counter() - start)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="replant-bench-") as name:
        folder = Path(name)
        bare = measure.run(measure.python("pass"), folder / "nothing")
        size = f"{cluster.NODES:,} nodes, {cluster.PODS:,} pods, {cluster.VOLUMES:,} volumes"
        print(f"scan, {size}")
        dump = folder / "dump.json"
        cluster.write_dump(dump)
        arguments = ["-f", str(dump), "--server-version", "1.24.17"]
        compare(f"a dump of {dump.stat().st_size / 1e6:.0f} MB", "orjson.loads", 0.8, bare,
                floor=(DUMP_FLOOR, dump), arguments=arguments)  # fmt: skip
        dump.unlink()
        with served(folder) as kubeconfig:
            compare("over HTTP, in pages of 500", "same client + orjson.loads", 1.0, bare,
                    floor=(HTTP_FLOOR, kubeconfig),
                    arguments=["--kubeconfig", str(kubeconfig)])  # fmt: skip


def compare(
    title: str, against: str, wanted: float, bare: measure.Cost, *,
    floor: tuple[str, Path], arguments: list[str],
) -> None:  # fmt: skip
    replant = str(Path(sys.executable).with_name("replant"))
    out = floor[1].with_suffix(".out")
    scan = [replant, "scan", *arguments, "-o", "json", "--fail-on", "never"]
    ours, floors = [], []
    for _ in range(measure.ROUNDS):
        floors.append(measure.floor(*floor, out))
        ours.append(measure.run(scan, out))
    mine, theirs = measure.best(ours), measure.best(floors)
    print(f" {title}")
    print(f"  floor: {against:<36} {theirs.seconds:6.2f} s")
    print(f"  replant scan, whole command{'':16} {mine.seconds:6.2f} s")
    print(f"  ratio{'':38} {mine.seconds / theirs.seconds:6.2f}   (wanted: at most {wanted})")
    print(f"  peak memory above the interpreter{'':10} {mine.peak_mib - bare.peak_mib:6.0f} MiB")


@contextmanager
def served(folder: Path) -> Iterator[Path]:
    """The cluster's pages on loopback, in a process of their own; yields a kubeconfig."""
    for kind in cluster.KINDS:
        (folder / "pages" / kind).mkdir(parents=True)
        for number, page in enumerate(cluster.pages(kind)):
            (folder / "pages" / kind / f"{number}.json").write_bytes(page)
    command = [sys.executable, "-m", "benchmarks.page_server", str(folder / "pages")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - it was asked for
            address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
            config = folder / "kubeconfig"
            config.write_text(json.dumps(_kubeconfig(address)))
            yield config
        finally:
            server.terminate()


def _kubeconfig(server: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "none"}}],
    }


if __name__ == "__main__":
    main()
