"""A wave of 1,000 shoots that one operator migrates, all of which are due at once.

    python -m benchmarks.gardener [SHOOTS]

Each is taken all the way, with its control plane and its API server: one serves for all of them.
The processor's time is that of the operator and of both sandboxes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.operators.test_operator import WAVE_AT_ONCE, WRITES_A_SHOOT, wave

SHOOTS = 1_000
PATIENCE = 1_800.0


def main() -> None:
    shoots = int(sys.argv[1]) if len(sys.argv) > 1 else SHOOTS
    with TemporaryDirectory() as folder:
        began, spent = time.monotonic(), time.process_time()
        writes, most = wave(Path(folder), shoots, PATIENCE)
        took, spent = time.monotonic() - began, time.process_time() - spent
    print(
        f"{shoots} shoots, {WAVE_AT_ONCE} at a time: {writes / shoots:.2f} writes each (wanted "
        f"{WRITES_A_SHOOT}), at most {most} requests at once; {took:.0f} s, {spent:.0f} s of the "
        "processor, the sandboxes' included"
    )
    if writes != shoots * WRITES_A_SHOOT:
        sys.exit("there were writes that nothing asked for")


if __name__ == "__main__":
    main()
