"""``replant apply`` as a shell runs it: bad input, outcomes, signals, and what comes after them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.cli.shell import REPLANT, replant
from tests.execute.living import small
from tests.sandbox.test_scenarios import read

NAKED = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "naked", "namespace": "default"},
    "spec": {"nodeName": "workers-1", "containers": [{"name": "it", "image": "it"}]},
}
SPEED = 20


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Makes sandboxes whose seconds take a twentieth of one; gives their kubeconfigs."""
    with ExitStack() as stack:

        def made(speed: float = SPEED, **more: Any) -> str:
            scenario: Scenario = read(yaml.safe_dump(small(2, **more)), tmp_path).scenario()
            listening = stack.enter_context(closing(open_port(0)))
            config = tmp_path / f"config-{listening.getsockname()[1]}"
            stack.enter_context(serving(Sandbox.of(scenario, speed=speed), listening))
            write_kubeconfig(config, listening.getsockname()[1])
            return str(config)

        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One that nothing is done to."""
    folder = tmp_path_factory.mktemp("cluster")
    scenario = read(yaml.safe_dump(small(2)), folder).scenario()
    with (
        closing(open_port(0)) as listening,
        serving(Sandbox.of(scenario, speed=SPEED), listening),
    ):
        write_kubeconfig(folder / "config", listening.getsockname()[1])
        yield str(folder / "config")


def planned(config: str, goal: str = "enable", *more: str) -> dict[str, Any]:
    code, out, err = replant(
        "plan", goal, "--kubeconfig", config, "--plugin", "aws-ebs", "-o", "json", *more
    )
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture(scope="module")
def plan(cluster: str) -> dict[str, Any]:
    return planned(cluster)


def kept(plan: Any, folder: Path) -> str:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return str(path)


def apply(config: str, *arguments: str, stdin: Any = b"") -> tuple[int, str, str]:
    return replant("apply", "--kubeconfig", config, *arguments, stdin=stdin)


ON_SANDBOX = ("--yes", "--actuator", "sandbox")


# Bad input


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name the plan to carry out"),
        (("--resume", "--undo"), "choose one"),
        (("plan.yaml", "--resume"), "leave the plan out"),
        (("plan.yaml", "--run", "x"), "--run is for --resume and --undo"),
        (("plan.yaml", "--actuator", "observe", "--hook", "x"), "--hook is for --actuator hooks"),
        (
            ("plan.yaml", "--actuator", "observe", "--accept-no-upgrade"),
            "--accept-no-upgrade is for --actuator openshift",
        ),
        (("plan.yaml", "--parallel", "0"), "--parallel"),
        (("plan.yaml", "--actuator", "magic"), "magic"),
        (("nowhere.yaml",), "nowhere.yaml"),
        (("--resume",), "There is no unfinished run. The journal holds none."),
        (("--undo",), "There is no unfinished run. The journal holds none."),
        (("--resume", "--run", "x"), "There is no run x."),
        (("--resume", "--journal", "/"), "the journal cannot be read: Is a directory"),
        (("--resume", "--journal", __file__), "is no journal"),
        (("--resume", "--journal", "/nowhere/run"), "/nowhere/run: there is no such journal"),
    ],
    ids=str,
)
def test_what_is_asked_for_in_vain(arguments: tuple[str, ...], said: str, cluster: str) -> None:
    code, out, err = apply(cluster, *arguments)
    assert (code, out) == (1, "")
    assert said in err


def test_a_kubeconfig_that_is_not_there() -> None:
    code, _, err = apply("/nowhere/config", "--resume")
    assert (code, "there is no such file" in err) == (1, True)


Edit = Callable[[dict[str, Any]], Any]


def without_drain(plan: dict[str, Any]) -> None:
    plan["steps"][-1]["drain"] = False


def as_if_empty(plan: dict[str, Any]) -> None:
    plan["empty"] = True
    without_drain(plan)


def for_another(plan: dict[str, Any]) -> None:
    plan["fingerprint"] = "sha256:0"


def without_a_node(plan: dict[str, Any]) -> None:
    plan["groups"][0]["nodes"].pop()


def with_other_controllers(plan: dict[str, Any]) -> None:
    plan["controlPlane"]["gates"] = {"CSIMigrationAWS": True}


def as_undo(plan: dict[str, Any]) -> None:
    plan["goal"] = "undo"


def with_a_typo(plan: dict[str, Any]) -> None:
    plan["stepz"] = []


@pytest.mark.parametrize(
    ("edit", "code", "said"),
    [
        (without_drain, 3, "The plan is not safe"),
        (as_if_empty, 1, "What the plan says of volumes is not so"),
        (for_another, 1, "The plan was made for another cluster"),
        (without_a_node, 1, "What the plan says of nodes is not so"),
        (with_other_controllers, 1, "What the plan says of the control plane is not so"),
        (as_undo, 1, "replant apply --undo"),
        (with_a_typo, 1, "stepz"),
    ],
)
def test_a_plan_that_somebody_has_edited_is_not_carried_out(
    edit: Edit, code: int, said: str, cluster: str, plan: dict[str, Any]
) -> None:
    plan = json.loads(json.dumps(plan))
    edit(plan)
    got, out, err = apply(cluster, "-", *ON_SANDBOX, stdin=plan)
    assert (got, out) == (code, "")
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Nothing says how gates are switched on the platform generic"),
        (("--actuator", "hooks"), "--hook COMMAND"),
        (("--actuator", "hooks", "--hook", "/nope", "--yes"), "the hook: /nope is nothing"),
        (("--actuator", "kubeadm"), "--agent-image IMAGE"),
        (("--actuator", "sandbox", "--parallel", "2"), "The plan allows 1 node(s) at a time"),
        (("--actuator", "sandbox"), "Nobody is there to agree: say --yes."),
    ],
    ids=str,
)
def test_a_plan_that_nobody_has_said_enough_about(
    arguments: tuple[str, ...], said: str, cluster: str, plan: dict[str, Any]
) -> None:
    code, out, err = apply(cluster, "-", *arguments, stdin=plan)
    assert (code, out) == (1, "")
    assert said in err


def test_a_node_that_cannot_be_drained_is_a_blocker(
    serve: Callable[..., str], tmp_path: Path
) -> None:
    config = serve(objects=[NAKED])
    code, out, err = apply(config, kept(planned(config), tmp_path), *ON_SANDBOX)
    assert (code, out) == (3, "")
    assert "blocker: Nodes cannot be drained: pod default/naked on workers-1" in err
    assert apply(config, "--resume")[2].count("The journal holds none") == 1


# Runs


class Process:
    """The command at work, which can be spoken to by signals."""

    def __init__(self, config: str, *arguments: str) -> None:
        command = [str(REPLANT), "apply", "--kubeconfig", config, *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        self.said = ""

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def until(self, text: str) -> None:
        """Read on until it has said something."""
        assert self._process.stderr
        while text not in self.said:
            line = self._process.stderr.readline()
            assert line, f"it ended without {text!r}: {self.said}"
            self.said += line

    def signal(self, which: signal.Signals) -> None:
        os.kill(self._process.pid, which)

    def leave(self) -> None:
        """Read no more of what it says."""
        for stream in (self._process.stdout, self._process.stderr):
            assert stream
            stream.close()

    def end(self, seconds: float = 60) -> int:
        _, rest = self._process.communicate(timeout=seconds)
        self.said += rest
        assert "Traceback" not in self.said
        assert "should not have happened" not in self.said
        return self._process.returncode


def test_stopped_refused_resumed_and_taken_back(serve: Callable[..., str], tmp_path: Path) -> None:
    config = serve()
    path = kept(planned(config), tmp_path)
    with Process(config, path, *ON_SANDBOX) as at_work:
        at_work.until("1 of 2 nodes")
        at_work.signal(signal.SIGINT)
        assert at_work.end() == 4
    assert "stopped: It was interrupted." in at_work.said
    assert "Go on with: replant apply --resume. Go back with: replant apply --undo." in at_work.said

    code, out, _ = replant("status", "--kubeconfig", config)
    assert code == 0
    assert "stopped (going on when resumed): It was interrupted" in out
    # The cluster is no longer what the plan was made for, because a run is unfinished.
    code, _, err = apply(config, path, *ON_SANDBOX)
    assert (code, "is unfinished. Go on with it (--resume)" in err) == (1, True), err
    code, _, err = apply(config, "--resume")
    assert (code, "Nobody is there to agree: say --yes." in err) == (1, True)

    code, out, err = apply(config, "--resume", "--yes", "-o", "json")
    assert code == 0, err
    told = json.loads(out)
    assert told["state"] == "done"
    assert {it["outcome"] for it in told["checks"]} == {"passed"}

    named = ("--run", told["run"])
    code, _, err = apply(config, "--resume", "--yes", *named)
    assert (code, f"The run {told['run']} is done" in err) == (1, True)
    code, out, err = apply(config, "--undo", "--yes", *named)
    assert code == 0, err
    assert f"Run {told['run']}: undone" in out
    code, _, err = apply(config, "--undo", "--yes", *named)
    assert (code, "is undone: there is nothing left to do" in err) == (1, True)


def test_whoever_looks_on_may_go_away(serve: Callable[..., str], tmp_path: Path) -> None:
    config = serve()
    with Process(config, kept(planned(config), tmp_path), *ON_SANDBOX) as at_work:
        at_work.until("under way: workers-0")
        at_work.leave()
        at_work.signal(signal.SIGINT)
        assert at_work.end() == 4
    with Process(config, "--resume", "--yes", "--report", str(tmp_path / "page")) as at_work:
        at_work.until("step ")
        at_work.leave()
        assert at_work.end() == 0
    assert (tmp_path / "page").exists()
    assert "Run " not in replant("status", "--kubeconfig", config)[1]


def test_a_journal_in_a_file_knows_its_cluster_and_its_way_back(
    serve: Callable[..., str], tmp_path: Path
) -> None:
    config, other = serve(), serve()
    path = kept(planned(config), tmp_path)
    journal = ("--journal", str(tmp_path / "a journal"))
    with Process(config, path, *ON_SANDBOX, *journal) as at_work:
        at_work.until("under way: workers-0")
        at_work.signal(signal.SIGTERM)
        assert at_work.end() == 4
    assert f"replant apply --journal '{journal[1]}' --undo" in at_work.said

    # Who does not name the file is told of it, whatever they ask for.
    for asked in (("--resume",), ("--undo",), (path, *ON_SANDBOX)):
        code, _, err = apply(config, *asked)
        assert (code, f"{journal[1]} on " in err) == (1, True), err
    assert (
        f"unfinished (its journal is {journal[1]} on "
        in replant("status", "--kubeconfig", config)[1]
    )
    for way in ("--resume", "--undo"):
        code, _, err = apply(other, way, "--yes", *journal)
        assert (code, "belongs to another cluster" in err) == (1, True), err
    for option in ("--hook", "--agent-image"):
        code, _, err = apply(config, "--resume", "--yes", option, "x", *journal)
        assert (code, f"--actuator sandbox, to which {option} means nothing" in err) == (1, True)
    code, out, err = apply(config, "--undo", "--yes", *journal)
    assert (code, "undone in" in out) == (0, True), err


AT_WORK = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "replant-system"}},
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "replant-apply", "namespace": "replant-system"},
        "spec": {"holderIdentity": "another", "renewTime": "2026-01-01T00:00:00.000000Z"},
    },
]


def test_interrupted_before_it_began_there_is_nothing_to_resume(
    serve: Callable[..., str], tmp_path: Path
) -> None:
    config = serve(speed=1, objects=AT_WORK)
    with Process(config, kept(planned(config), tmp_path), *ON_SANDBOX) as it:
        it.until("Replant on another may be at work in this cluster")
        it.signal(signal.SIGINT)
        assert it.end(10) == 130
        assert "interrupted" in it.said
        assert "resume" not in it.said
    assert "The journal holds none" in apply(config, "--resume")[2]


HOOK = """\
#!/bin/sh
{}
"""


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("echo nonsense", "printed what is not an answer"),
        ("""echo '{"replicas": null}'""", "Nobody can see which gates kube-controller-manager has"),
    ],
)
def test_a_hook_that_does_not_tell_leaves_a_run_to_resume(
    hook: str, said: str, serve: Callable[..., str], tmp_path: Path
) -> None:
    config = serve()
    script = tmp_path / "hook"
    script.write_text(HOOK.format(hook))
    script.chmod(0o755)
    path = kept(planned(config), tmp_path)
    code, out, err = apply(config, path, "--yes", "--actuator", "hooks", "--hook", str(script))
    assert (code, out) == (4, "")
    assert said in err
    # Nor does another begin beside it, wherever that one would be written down.
    code, _, err = apply(config, path, *ON_SANDBOX, "--journal", str(tmp_path / "journal"))
    assert (code, "is unfinished. Go on with it" in err) == (1, True)
    assert apply(config, "--undo", "--yes", "--actuator", "sandbox")[0] == 0


@pytest.mark.workflow("apply")
def test_only_the_last_run_is_taken_back(serve: Callable[..., str], tmp_path: Path) -> None:
    config = serve()
    runs = []
    for goal in ("enable", "complete"):
        code, out, err = apply(
            config, kept(planned(config, goal), tmp_path), *ON_SANDBOX, "-o", "json"
        )
        assert code == 0, err
        runs.append(json.loads(out)["run"])
    code, _, err = apply(config, "--undo", "--yes", "--run", runs[0])
    assert code == 1
    assert f"After the run {runs[0]} came {runs[1]}: take back the last one first" in err
