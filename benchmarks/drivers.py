"""A driver that rolls out to 5,000 nodes, hundreds of which are replaced meanwhile.

    python -m benchmarks.drivers [NODES]

What the operator writes must not depend on how many nodes there are; the processor's time is that
of the sandbox, nearly all of it.
"""

from __future__ import annotations

import sys
import time

from tests.operators.test_drivers_enduring import come_and_go

NODES = 5_000
FEW = 400


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    few = come_and_go(FEW)
    began = time.process_time()
    many = come_and_go(nodes)
    took = time.process_time() - began
    print(f"writes: {few} with {FEW} nodes, {many} with {nodes}; {took:.1f} s of the processor")
    if many > few * 1.5:
        sys.exit("the operator writes more where there are more nodes")


if __name__ == "__main__":
    main()
