"""The hooks in examples/, run as Replant runs them, on machines that are folders."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from replant.errors import Final, Retryable
from replant.execute.actuators import Place, Replica, Wanted, is_so
from replant.platforms.hooks import Hooks

EXAMPLES = Path(__file__).parents[2] / "examples" / "hooks"
CONTROLLER = Place(component="kube-controller-manager")
ON = Wanted({"CSIMigrationAWS": True, "B": None})

# The machine is a folder: a component "runs" with what its file says when it is started.
SSH = """#!/bin/sh
root=$MACHINES/$1
[ -d "$root" ] || { echo no route to $1 >&2; exit 255; }
pidof() { [ -e "$root/cmdline" ] && echo 1; }
systemctl() {
    gates=$(cut -d = -f 2- "$root/$2.gates")
    printf '%s\\n' "$2" "--feature-gates=$gates" > "$root/cmdline"
    echo "$1 $2" >> "$root/done"
}
tr() { cat "$root/cmdline"; }
command=$(printf %s "$2" | sed -e "s,/etc/kubernetes/,$root/,g" -e "s,< /proc/.pid/cmdline,,")
eval "$command"
"""


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for machine in ("cp-1", "cp-2"):
        folder = tmp_path / machine
        folder.mkdir()
        (folder / "kube-controller-manager.gates").write_text("FEATURE_GATES=A=true,B=false\n")
        (folder / "cmdline").write_text("x\n--feature-gates=A=true,B=false\n")
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    monkeypatch.setenv("SSH", f"sh {ssh}")
    monkeypatch.setenv("MACHINES", str(tmp_path))
    monkeypatch.setenv("CONTROL_PLANE", "cp-1 cp-2")
    # The example's first line asks for any python3; here it is this one.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    return tmp_path


def test_the_ssh_hook_switches_machines_and_sees_what_runs(machines: Path) -> None:
    hook = Hooks(str(EXAMPLES / "ssh.py"))

    async def run() -> None:
        before = await hook.observe(CONTROLLER)
        assert before == tuple(Replica(it, {"A": True, "B": False}) for it in ("cp-1", "cp-2"))
        await hook.switch(CONTROLLER, ON)
        after = await hook.observe(CONTROLLER)
        assert after == tuple(
            Replica(it, {"A": True, "CSIMigrationAWS": True}) for it in ("cp-1", "cp-2")
        )
        assert is_so(after, ON)
        await hook.switch(CONTROLLER, ON)

    asyncio.run(run())
    restarted = (machines / "cp-1" / "done").read_text()
    assert restarted == "restart kube-controller-manager\n", "asked again, it does nothing"


def test_the_ssh_hook_tells_a_machine_that_is_down_from_one_that_is_not_reached(
    machines: Path,
) -> None:
    hook = Hooks(str(EXAMPLES / "ssh.py"))
    (machines / "cp-2" / "cmdline").unlink()
    seen = asyncio.run(hook.observe(CONTROLLER))
    assert seen
    assert [it.ready for it in seen] == [True, False]
    with pytest.raises(Retryable, match="nowhere was not reached: no route to nowhere"):
        asyncio.run(hook.observe(Place(node="nowhere")))
    with pytest.raises(Final, match="switches gates, not flags"):
        asyncio.run(hook.switch(CONTROLLER, Wanted({}, {"a": "b"})))


@pytest.mark.parametrize(("code", "outcome"), [(0, None), (2, Final), (4, Retryable)])
def test_the_ansible_hook_runs_a_playbook_with_the_question(
    machines: Path, monkeypatch: pytest.MonkeyPatch, code: int, outcome: type[Exception] | None
) -> None:
    playbook = machines / "ansible-playbook"
    playbook.write_text(
        f'#!/bin/sh\necho "$1 $2"; cat "${{3#@}}" > {machines}/asked; exit {code}\n'
    )
    playbook.chmod(0o755)
    monkeypatch.setenv("PATH", str(machines), prepend=":")
    monkeypatch.setenv("PLAYBOOK", "switch.yaml")
    hook = Hooks(str(EXAMPLES / "ansible.sh"))
    if outcome:
        with pytest.raises(outcome, match=r"switch\.yaml --extra-vars"):
            asyncio.run(hook.switch(CONTROLLER, ON))
    else:
        asyncio.run(hook.switch(CONTROLLER, ON))
        assert asyncio.run(hook.observe(CONTROLLER))
    assert '"verb":"switch"' in (machines / "asked").read_text()
