"""``replant translate`` from file to file, against decoding and encoding the same bytes alone."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import measure, volumes

JSON_VOLUMES = 100_000
YAML_DOCUMENTS = 5_000

JSON_FLOOR = """
import gc, orjson, sys, time
data = open(sys.argv[1], "rb").read()
gc.disable()
start = time.perf_counter()
orjson.dumps(orjson.loads(data))
print(time.perf_counter() - start)
"""

YAML_FLOOR = """
import gc, sys, time, yaml
data = open(sys.argv[1], "rb").read()
gc.disable()
start = time.perf_counter()
yaml.dump_all(yaml.load_all(data, Loader=yaml.CSafeLoader), Dumper=yaml.CSafeDumper)
print(time.perf_counter() - start)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="replant-bench-") as folder:
        bare = measure.run(measure.python("pass"), Path(folder, "nothing"))
        json_file = Path(folder, "volumes.json")
        volumes.write_json_list(json_file, JSON_VOLUMES)
        compare(
            f"translate, {JSON_VOLUMES:,} PersistentVolumes as JSON", json_file, bare,
            floor="orjson.loads + orjson.dumps", script=JSON_FLOOR, wanted=2.0,
        )  # fmt: skip
        yaml_file = Path(folder, "volumes.yaml")
        volumes.write_yaml_documents(yaml_file, YAML_DOCUMENTS)
        compare(
            f"translate, {YAML_DOCUMENTS:,} YAML documents", yaml_file, bare,
            floor="yaml.CSafeLoader + yaml.CSafeDumper", script=YAML_FLOOR, wanted=1.3,
        )  # fmt: skip


def compare(
    title: str, source: Path, bare: measure.Cost, *, floor: str, script: str, wanted: float
) -> None:
    replant = str(Path(sys.executable).with_name("replant"))
    out = source.with_suffix(".out")
    ours, floors = [], []
    for _ in range(measure.ROUNDS):
        floors.append(measure.floor(script, source, out))
        ours.append(measure.run([replant, "translate", "-f", str(source)], out))
    mine, theirs = measure.best(ours), measure.best(floors)
    print(f"{title} ({source.stat().st_size / 1e6:.0f} MB)")
    print(f"  floor: {floor:<36} {theirs.seconds:6.2f} s")
    print(f"  replant translate, file to file{'':12} {mine.seconds:6.2f} s")
    print(f"  ratio{'':38} {mine.seconds / theirs.seconds:6.2f}   (wanted: at most {wanted})")
    print(f"  peak memory above the interpreter{'':10} {mine.peak_mib - bare.peak_mib:6.0f} MiB")


if __name__ == "__main__":
    main()
