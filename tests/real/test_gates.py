"""Our table of gates beside the components' own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from replant.gates.history import known_gates
from replant.gates.settings import problems
from replant.gates.versions import Version
from tests.real.ground import programs

NOT_OURS = "CSIMigrationNobody"
REFUSAL = re.compile("unrecognized feature gate|cannot set feature gate")


@pytest.mark.usefixtures("ground")
@pytest.mark.parametrize("component", ["kube-controller-manager", "kube-scheduler", "kubelet"])
@pytest.mark.parametrize("version", [programs.OLD, programs.newest()])
def test_components_refuse_what_we_refuse(component: str, version: str) -> None:
    program = programs.program(version, component)
    settings = [(gate, on) for gate in (*known_gates(), NOT_OURS) for on in (True, False)]
    refused = {(gate, on) for gate, on in settings if not takes(program, gate, on=on)}
    ours = {(gate, on) for gate, on in settings if problems(Version.parse(version), {gate: on})}
    assert refused == ours
    assert (NOT_OURS, True) in refused


def takes(program: Path, gate: str, *, on: bool) -> bool:
    """Whether a component starts with that gate; it gets no further than to what comes next."""
    # A kubelet looks at its gates only when it is to run, and then for its configuration.
    instead = "--config=/no/such/file" if program.name == "kubelet" else "--version"
    command = [str(program), f"--feature-gates={gate}={str(on).lower()}", instead]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    refused = bool(REFUSAL.search(said))
    assert refused != ("no/such/file" in said or "Kubernetes v" in said), said
    return not refused
