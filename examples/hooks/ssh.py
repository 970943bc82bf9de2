#!/usr/bin/env python3
"""A hook for machines that are reached over SSH, to start from: `replant apply` runs it.

It is made for components that systemd runs and that have their gates from a file of their own,
/etc/kubernetes/PROGRAM.gates, with one line such as

    FEATURE_GATES=CSIMigrationAWS=true,RotateKubeletServerCertificate=true

which their unit reads (EnvironmentFile=) and passes on (--feature-gates=${FEATURE_GATES}).

CONTROL_PLANE names the machines of the control plane, such as "cp-1 cp-2 cp-3". SSH is the command
that reaches a machine, if it is not plain ssh. A node's name must be one that it can reach.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any, NoReturn

TRY_AGAIN = 75
SSH_FAILED = 255

RUNNING = "pid=$(pidof -s {program}) || exit 0; tr '\\0' '\\n' < /proc/$pid/cmdline"
READ = "cat /etc/kubernetes/{program}.gates"
# The new file is whole before it takes the old one's place.
WRITE = """set -e
cat > /etc/kubernetes/.{program}.gates
mv /etc/kubernetes/.{program}.gates /etc/kubernetes/{program}.gates
systemctl restart {program}"""


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    if "node" in question:
        program, machines = "kubelet", [question["node"]]
    else:
        program, machines = question["component"], os.environ["CONTROL_PLANE"].split()
    if question["verb"] == "observe":
        answer = {"replicas": [observed(machine, program) for machine in machines]}
        sys.stdout.write(json.dumps(answer) + "\n")
    elif question.get("addFlags") or question.get("removeFlags"):
        fail(1, "this hook switches gates, not flags")
    else:
        # One after the other: the others go on meanwhile.
        for machine in machines:
            switch(machine, program, question["gates"])


def observed(machine: str, program: str) -> dict[str, Any]:
    """What counts is what runs, not what is in a file."""
    words = remote(machine, RUNNING.format(program=program)).splitlines()
    flags = [it.partition("=")[2] for it in words if it.startswith("--feature-gates=")]
    gates = {name: on == "true" for flag in flags for name, on in pairs(flag).items()}
    return {"name": machine, "gates": gates, "ready": bool(words)}


def switch(machine: str, program: str, wanted: dict[str, bool | None]) -> None:
    """Write the file, and restart what reads it, unless all is so already."""
    line = remote(machine, READ.format(program=program)).strip()
    before = pairs(line.removeprefix("FEATURE_GATES="))
    after = before | {name: str(on).lower() for name, on in wanted.items()}
    after = {name: on for name, on in after.items() if wanted.get(name, on) is not None}
    running = observed(machine, program)
    as_wanted = all(running["gates"].get(name) is on for name, on in wanted.items())
    if after == before and as_wanted and running["ready"]:
        return  # asked again, it does no harm
    joined = ",".join(f"{name}={on}" for name, on in after.items())
    remote(machine, WRITE.format(program=program), f"FEATURE_GATES={joined}\n")


def pairs(text: str) -> dict[str, str]:
    """Gates by name, as text."""
    found = (pair.partition("=") for pair in text.split(",") if pair)
    return {name: on for name, _, on in found}


def remote(machine: str, command: str, stdin: str = "") -> str:
    """What a command prints on a machine."""
    ssh = shlex.split(os.environ.get("SSH", "ssh -o BatchMode=yes -o ConnectTimeout=10"))
    done = subprocess.run(  # noqa: S603 - the machines are named by whoever runs this
        [*ssh, machine, command], input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode == SSH_FAILED:
        fail(TRY_AGAIN, f"{machine} was not reached: {done.stderr}")
    if done.returncode:
        fail(1, f"{machine}: {done.stderr}")
    return done.stdout


def fail(code: int, why: str) -> NoReturn:
    """End, and say why."""
    sys.stderr.write(why.strip() + "\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
