"""``replant plan`` and ``replant verify`` for a large cluster, against the scan of its dump."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import cluster, measure

WANTED = 2.0
REPLANT = str(Path(sys.executable).with_name("replant"))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="replant-bench-") as name:
        dump, plan = Path(name, "dump.json"), Path(name, "plan.yaml")
        cluster.write_dump(dump)
        given = ["-f", str(dump), "--server-version", "1.24.17"]
        scan = [REPLANT, "scan", *given, "-o", "json", "--fail-on", "never"]
        make = [REPLANT, "plan", "disable", *given, "--plugin", "aws-ebs", "-o", "yaml"]
        prove = [REPLANT, "verify", str(plan)]
        scans, plans, proofs = [], [], []
        for _ in range(measure.ROUNDS):
            scans.append(measure.run(scan, dump.with_suffix(".out")))
            # The dump does not show the control plane's flags: the plan says so, and ends with 3.
            plans.append(measure.run(make, plan, ends_with=(0, 3)))
            proofs.append(measure.run(prove, dump.with_suffix(".out")))
    scanned, planned, proved = map(measure.best, (scans, plans, proofs))
    both = planned.seconds + proved.seconds
    print(f"plan and verify, {cluster.NODES:,} nodes, {cluster.VOLUMES:,} volumes")
    print(f"  floor: replant scan of the same dump {scanned.seconds:13.2f} s")
    print(f"  replant plan{'':31} {planned.seconds:6.2f} s")
    print(f"  replant verify{'':29} {proved.seconds:6.2f} s")
    ratio = both / scanned.seconds
    print(f"  ratio of both together{'':21} {ratio:6.2f}   (wanted: at most {WANTED})")


if __name__ == "__main__":
    main()
