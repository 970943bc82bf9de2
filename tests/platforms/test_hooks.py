from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from replant.errors import Final, InputError, ReplantError, Retryable
from replant.execute.actuators import Place, Replica, Wanted
from replant.platforms import hooks
from replant.platforms.hooks import Hooks
from tests.waiting import wait_until

CONTROLLER = Place(component="kube-controller-manager")
KUBELET = Place(node="node-a")
ON = Wanted({"CSIMigrationAWS": True, "InTreePluginAWSUnregister": None})

Script = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """A hook that runs some lines of sh, as a command."""

    def write(lines: str) -> str:
        path = tmp_path / "a hook"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return f"'{path}'"

    return write


def observed(hook: Hooks, place: Place = CONTROLLER) -> tuple[Replica, ...] | None:
    return asyncio.run(hook.observe(place))


def test_a_hook_is_asked_for_a_component_and_answers_with_its_replicas(
    script: Script, tmp_path: Path
) -> None:
    answer = {
        "replicas": [
            {"name": "cp-1", "gates": {"A": True}, "flags": {"cloud-provider": "aws"}},
            {"name": "cp-2", "gates": {}, "ready": False},
        ]
    }
    hook = Hooks(script(f"cat > {tmp_path}/asked; echo '{json.dumps(answer)}'"))
    assert observed(hook) == (
        Replica("cp-1", {"A": True}, {"cloud-provider": "aws"}),
        Replica("cp-2", {}, ready=False),
    )
    asked = json.loads((tmp_path / "asked").read_text())
    assert asked == {"verb": "observe", "component": "kube-controller-manager"}


def test_a_hook_is_told_what_to_switch(script: Script, tmp_path: Path) -> None:
    hook = Hooks(script(f"cat > {tmp_path}/asked; echo whatever it prints is not read"))
    asyncio.run(hook.switch(KUBELET, ON))
    asked = json.loads((tmp_path / "asked").read_text())
    gates = {"CSIMigrationAWS": True, "InTreePluginAWSUnregister": None}
    assert asked == {"verb": "switch", "node": "node-a", "gates": gates}


def test_flags_are_told_only_where_a_step_has_some(script: Script, tmp_path: Path) -> None:
    hook = Hooks(script(f"cat > {tmp_path}/asked"))
    asyncio.run(hook.switch(CONTROLLER, Wanted({}, {"add": "1"}, {"remove": "2"})))
    assert json.loads((tmp_path / "asked").read_text()) == {
        "verb": "switch",
        "component": "kube-controller-manager",
        "gates": {},
        "addFlags": {"add": "1"},
        "removeFlags": {"remove": "2"},
    }


def test_words_are_split_as_a_shell_does_and_no_shell_runs(script: Script, tmp_path: Path) -> None:
    hook = Hooks(script(f'printf "%s\\n" "$@" > {tmp_path}/words') + " 'two words' '$HOME' ';id'")
    asyncio.run(hook.switch(KUBELET, ON))
    assert (tmp_path / "words").read_text().splitlines() == ["two words", "$HOME", ";id"]


def test_the_environment_is_passed_on(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVENTORY", "hosts.ini")
    asyncio.run(Hooks(script(f"echo $INVENTORY > {tmp_path}/seen")).switch(KUBELET, ON))
    assert (tmp_path / "seen").read_text() == "hosts.ini\n"


def test_a_hook_may_say_that_it_cannot_tell(script: Script) -> None:
    assert observed(Hooks(script("""echo '{"replicas": null}'"""))) is None


def test_a_component_may_be_down(script: Script) -> None:
    assert observed(Hooks(script("""echo '{"replicas": []}'"""))) == ()


def test_a_hook_that_does_not_read_its_question_does_no_harm(script: Script) -> None:
    asyncio.run(Hooks(script("exec 0<&-")).switch(KUBELET, ON))


NOT_ANSWERS = [
    ("", "printed nothing"),
    ("echo", "printed nothing"),
    ("echo fine", "malformed"),
    ("echo '[]'", "Expected `object`"),
    ("echo '{}'", "missing required field `replicas`"),
    ("""echo '{"replicas": {}}'""", "Expected `array | null`"),
    ("""echo '{"replicas": [], "more": 1}'""", "unknown field `more`"),
    ("""echo '{"replicas": [{"gates": {}}]}'""", "missing required field `name`"),
    ("""echo '{"replicas": [{"name": "", "gates": {}}]}'""", "length >= 1"),
    ("""echo '{"replicas": [{"name": "a"}]}'""", "missing required field `gates`"),
    ("""echo '{"replicas": [{"name": "a", "gates": {"X": "true"}}]}'""", "Expected `bool`"),
    ("""echo '{"replicas": [{"name": "a", "gates": {"X": null}}]}'""", "Expected `bool`"),
    ("""echo '{"replicas": [{"name": "a", "gates": {}, "flags": {"v": 2}}]}'""", "Expected `str`"),
    ("""echo '{"replicas": [{"name": "a", "gates": {}, "ready": 1}]}'""", "Expected `bool`"),
    ("""echo '{"replicas": []} {"replicas": []}'""", "trailing"),
    ("""printf '{"replicas": [{"name": "\\377", "gates": {}}]}'""", "not an answer"),
    ("yes '[' | tr -d '\\n' | head -c 1000000", "not an answer"),
]


@pytest.mark.parametrize(("lines", "why"), NOT_ANSWERS)
def test_what_is_not_an_answer_is_refused_with_what_was_expected(
    script: Script, lines: str, why: str
) -> None:
    with pytest.raises(Final) as refused:
        observed(Hooks(script(lines)))
    said = str(refused.value)
    assert why in said
    assert '{"replicas": [' in said
    assert "asked to observe kube-controller-manager" in said
    assert said.isprintable()


FAILURES: list[tuple[str, type[ReplantError], str]] = [
    ("exit 75", Retryable, "wants to be asked again and said nothing"),
    ("echo the machine reboots >&2; exit 75", Retryable, "again: the machine reboots"),
    ("exit 1", Final, "ended with 1 and said nothing"),
    ("echo no such host >&2; echo bye >&2; exit 4", Final, "ended with 4: no such host | bye"),
    ("printf 'a\\033[31mb\\377' >&2; exit 1", Final, "a\\x1b[31mb\ufffd"),
    ("seq 100 >&2; exit 1", Final, ": 96 | 97 | 98 | 99 | 100"),
    ("kill -9 $$", Final, "ended by signal 9"),
]


@pytest.mark.parametrize(("lines", "kind", "said"), FAILURES)
@pytest.mark.parametrize("verb", ["observe", "switch"])
def test_a_failure_says_how_it_ended_and_what_was_said_last(
    script: Script, verb: str, lines: str, kind: type[ReplantError], said: str
) -> None:
    hook = Hooks(script(lines))
    asked = hook.observe(KUBELET) if verb == "observe" else hook.switch(KUBELET, ON)
    with pytest.raises(kind) as failed:
        asyncio.run(asked)
    assert said in str(failed.value)
    assert f"asked to {verb} the kubelet of node-a" in str(failed.value)
    assert str(failed.value).isprintable()


def test_last_words_have_a_bound(script: Script) -> None:
    with pytest.raises(Final) as failed:
        observed(Hooks(script("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")))
    assert len(str(failed.value)) < 1000


def test_a_command_that_is_no_longer_there(script: Script, tmp_path: Path) -> None:
    hook = Hooks(script("exit 0"))
    (tmp_path / "a hook").unlink()
    with pytest.raises(Final, match="is not there"):
        observed(hook)


def test_a_command_that_may_no_longer_be_executed(script: Script, tmp_path: Path) -> None:
    hook = Hooks(script("exit 0"))
    (tmp_path / "a hook").chmod(0o644)
    with pytest.raises(Final, match="may not be executed"):
        observed(hook)


@pytest.mark.parametrize("name", ["nothing", "text", "."])
def test_what_cannot_be_executed_is_refused_at_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    with pytest.raises(InputError, match=r"the hook: .* is nothing that can be executed"):
        Hooks(str(tmp_path / name))


def test_a_command_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no first line that says which shell\n")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(Final, match="cannot be started: Exec format error"):
        observed(Hooks(str(tmp_path / "text")))


@pytest.mark.parametrize("command", ["", "  ", "''", "'unbalanced", "nul\0byte"])
def test_what_is_no_command_is_refused_at_once(command: str) -> None:
    with pytest.raises(InputError, match="the hook"):
        Hooks(command)


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_command_that_writes_without_end_is_stopped(script: Script, stream: str) -> None:
    with pytest.raises(Final, match="wrote more than 16 MiB"):
        observed(Hooks(script(f"exec yes >&{stream}")))


def test_a_command_that_wrote_too_much_before_anybody_looked(script: Script) -> None:
    with pytest.raises(Final, match="wrote more than 16 MiB"):
        observed(Hooks(script("head -c 20000000 /dev/zero")))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pid_in(path: Path) -> int:
    """The process that a script has written to a file."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"a process in {path}")
    return int(path.read_text())


def test_after_its_time_a_command_ends_with_all_that_it_started(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    has_begun = False

    def now() -> float:
        """The time, which is over once the command has started something, however late."""
        nonlocal has_begun
        over = has_begun and child.exists() and child.read_text() != ""
        has_begun = True
        return 3.0 if over else 0.0

    monkeypatch.setattr(hooks, "time", SimpleNamespace(monotonic=now))
    # What it has started does not end when it is asked to.
    lines = f"""sh -c 'trap "" TERM; echo $$ > {child}; exec sleep 60' & wait"""
    hook = Hooks(script(lines), timeout=2.5)
    with pytest.raises(Retryable, match=r"had not ended after 2\.5 s and was stopped"):
        asyncio.run(hook.switch(KUBELET, ON))
    pid = pid_in(child)
    wait_until(lambda: not is_alive(pid), "the end of what the hook has started", timeout=30)


def test_what_a_hook_leaves_running_keeps_nobody_waiting(script: Script, tmp_path: Path) -> None:
    hook = Hooks(script(f"""sleep 30 & echo $! > {tmp_path}/child; echo '{{"replicas": []}}'"""))
    assert observed(hook) == ()
    child = pid_in(tmp_path / "child")
    assert is_alive(child)
    os.kill(child, signal.SIGKILL)


INTERRUPTED = """
import asyncio, sys
from replant.execute.actuators import Place, Wanted
from replant.platforms.hooks import Hooks
asyncio.run(Hooks(sys.argv[1]).switch(Place(node="node-a"), Wanted({})))
"""


def test_an_interrupt_ends_replant_and_not_what_a_hook_has_begun(
    script: Script, tmp_path: Path
) -> None:
    command = script(
        f"echo $$ > {tmp_path}/pid; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; "
        f"echo to nobody; echo >&2; touch {tmp_path}/finished"
    )
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, command],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as replant:
        try:
            wait_until((tmp_path / "pid").exists, "the start of the hook")
            os.killpg(replant.pid, signal.SIGINT)  # as a terminal does with Ctrl-C
            assert replant.wait(60) != 0
        finally:
            replant.kill()
    assert not (tmp_path / "finished").exists()
    (tmp_path / "go").touch()
    wait_until((tmp_path / "finished").exists, "the end of the hook", timeout=30)
