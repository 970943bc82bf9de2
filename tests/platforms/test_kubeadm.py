"""The actuator for kubeadm's clusters, with agents whose scripts run for real on folders."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from replant.errors import Conflict, Final, InputError, Refused, ReplantError, Retryable
from replant.execute.actuators import Place, Replica, Wanted, is_so
from replant.execute.namespace import NAMESPACE
from replant.objects import Object
from replant.platforms import agent, kubeadm
from replant.platforms.agent_pods import LABEL, SECURITY, agent_pod, surroundings
from replant.platforms.kubeadm import Kubeadm
from tests.platforms.cluster import CONFIG, MANIFESTS, FakeCluster
from tests.platforms.test_kubeadm_edit import CONFIG as KUBELET_CONFIG
from tests.platforms.test_kubeadm_edit import MANIFEST

CONTROLLER = Place(component="kube-controller-manager")
MANIFEST_FILE = f"{MANIFESTS}/kube-controller-manager.yaml"
KUBELET = Place(node="node-a")
ON = Wanted({"CSIMigrationAWS": True})


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    found = FakeCluster(tmp_path)
    for node in ("cp-1", "cp-2"):
        found.node(node)
        found.file(node, MANIFEST_FILE).write_text(MANIFEST)
    found.node("node-a")
    found.file("node-a", CONFIG).write_text(KUBELET_CONFIG)
    return found


def switched(cluster: FakeCluster, place: Place, wanted: Wanted, **options: str) -> list[str]:
    """Switch as an engine would; returns what was told."""
    told: list[str] = []
    commands = {"restart_command": "true", "check_command": "true", **options}

    async def run() -> None:
        actuator = Kubeadm(cluster, cluster, "busybox", tell=told.append, pause=0.01, **commands)
        try:
            await actuator.switch(place, wanted)
        finally:
            await actuator.aclose()

    asyncio.run(run())
    return told


def observed(cluster: FakeCluster, place: Place) -> tuple[Replica, ...] | None:
    return asyncio.run(Kubeadm(cluster, cluster, "busybox").observe(place))


def state(cluster: FakeCluster, node: str) -> Path:
    return cluster.folder / node / "var/lib/replant"


def copies(cluster: FakeCluster, node: str) -> list[Path]:
    return sorted((state(cluster, node) / "backup").glob("*"))


def test_a_component_is_switched_node_by_node(cluster: FakeCluster) -> None:
    cluster.file("cp-1", MANIFEST_FILE).chmod(0o600)
    told = switched(cluster, CONTROLLER, ON)
    verbs = [
        f"{verb} {node} {MANIFEST_FILE}" for node in ("cp-1", "cp-2") for verb in ("read", "write")
    ]
    assert cluster.happened == verbs
    assert is_so(observed(cluster, CONTROLLER) or (), ON)
    for node in ("cp-1", "cp-2"):
        [copy] = copies(cluster, node)
        assert copy.read_text() == MANIFEST
        folder = cluster.file(node, MANIFESTS)
        assert [it.name for it in folder.iterdir()] == ["kube-controller-manager.yaml"]
        assert [it.name for it in folder.parent.iterdir()] == ["manifests"]
    assert [it.partition("; what it was is in /var/lib/replant/backup/")[0] for it in told] == [
        f"node {node}: {MANIFEST_FILE} was changed" for node in ("cp-1", "cp-2")
    ]
    mode = cluster.file("cp-1", MANIFEST_FILE).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert cluster.agents() == []


def test_what_is_so_already_is_not_written(cluster: FakeCluster) -> None:
    switched(cluster, CONTROLLER, ON)
    cluster.happened.clear()
    assert switched(cluster, CONTROLLER, ON) == []
    assert cluster.happened == [f"read {node} {MANIFEST_FILE}" for node in ("cp-1", "cp-2")]


def test_no_second_replica_is_taken_down_before_the_first_is_back(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeadm, "PATIENCE", 0.1)
    cluster.not_ready = {"cp-1"}
    with pytest.raises(Retryable, match=r"on cp-1 has not come back .*: as wanted, not ready"):
        switched(cluster, CONTROLLER, ON)
    assert cluster.file("cp-2", MANIFEST_FILE).read_text() == MANIFEST


def test_a_component_without_pods_cannot_be_switched(cluster: FakeCluster) -> None:
    with pytest.raises(Retryable, match="no pod of kube-scheduler is in kube-system"):
        switched(cluster, Place(component="kube-scheduler"), ON)
    assert observed(cluster, Place(component="kube-scheduler")) == ()


def test_a_kubelet_is_switched_and_restarted(cluster: FakeCluster) -> None:
    restarts = cluster.folder / "restarts"
    told = switched(cluster, KUBELET, ON, restart_command=f"echo $((1 + 1)) >> {restarts}")
    assert restarts.read_text() == "2\n"
    assert is_so(observed(cluster, KUBELET) or (), ON)
    assert len(told) == len(copies(cluster, "node-a")) == 1
    assert not (state(cluster, "node-a") / "restart-due").exists()
    switched(cluster, KUBELET, ON, restart_command=f"echo 3 >> {restarts}")
    assert restarts.read_text() == "2\n", "it was so already"


def test_a_restart_that_a_killed_agent_still_owed_is_made_up_for(cluster: FakeCluster) -> None:
    switched(cluster, KUBELET, ON)
    (state(cluster, "node-a") / "restart-due").write_text("/var/lib/replant/backup/it\n")
    restarts = cluster.folder / "restarts"
    switched(cluster, KUBELET, ON, restart_command=f"echo >> {restarts}")
    assert restarts.exists()
    assert not (state(cluster, "node-a") / "restart-due").exists()


def test_a_kubelet_that_does_not_stay_up_has_its_file_back(cluster: FakeCluster) -> None:
    config = cluster.file("node-a", CONFIG)
    with pytest.raises(Final, match="does not stay up with it; the file is as it was"):
        switched(cluster, KUBELET, ON, check_command=f"grep -q 'AWS: false' {config}")
    assert config.read_text() == KUBELET_CONFIG
    assert not (state(cluster, "node-a") / "restart-due").exists()


def test_a_kubelet_that_cannot_be_restarted_has_its_file_back(cluster: FakeCluster) -> None:
    with pytest.raises(Final, match="does not stay up with it; the file is as it was"):
        switched(cluster, KUBELET, ON, restart_command="false")
    assert cluster.file("node-a", CONFIG).read_text() == KUBELET_CONFIG


def test_a_kubelet_that_never_stays_up_is_told_as_such(cluster: FakeCluster) -> None:
    with pytest.raises(Final, match="not even with the file as it was"):
        switched(cluster, KUBELET, ON, check_command="false")
    assert cluster.file("node-a", CONFIG).read_text() == KUBELET_CONFIG


def test_after_several_changes_the_last_file_that_ran_is_put_back(cluster: FakeCluster) -> None:
    config = cluster.file("node-a", CONFIG)
    switched(cluster, KUBELET, ON)
    [good] = copies(cluster, "node-a")
    due = state(cluster, "node-a") / "restart-due"
    due.write_text(f"/var/lib/replant/backup/{good.name}\n")  # as one that was killed leaves it
    check = f"grep -q 'AWS: false' {config}"
    with pytest.raises(Final, match="the file is as it was"):
        switched(cluster, KUBELET, Wanted({"B": True}), check_command=check)
    assert config.read_text() == KUBELET_CONFIG


def test_flags_of_a_kubelet_are_refused(cluster: FakeCluster) -> None:
    with pytest.raises(Refused, match="not its flags"):
        switched(cluster, KUBELET, Wanted({}, {"a": "b"}))


def running_kubelet(cluster: FakeCluster, *arguments: str) -> None:
    process = cluster.folder / "node-a/proc/42"
    process.mkdir(parents=True)
    (process / "comm").write_text("kubelet\n")
    (process / "cmdline").write_bytes("\0".join(["/usr/bin/kubelet", *arguments, ""]).encode())


def test_a_kubelet_that_is_told_by_its_file(cluster: FakeCluster) -> None:
    running_kubelet(cluster, f"--config={CONFIG}", "--feature-gates=CSIMigrationAWS=true,B=false")
    switched(cluster, KUBELET, ON)
    assert is_so(observed(cluster, KUBELET) or (), ON)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--config=/etc/other.yaml"], "has its configuration from /etc/other.yaml"),
        (["--v=2"], "has its configuration from flags"),
        (
            [f"--config={CONFIG}", "--feature-gates", "CSIMigrationAWS=false"],
            "is given CSIMigrationAWS by its flag",
        ),
    ],
)
def test_a_kubelet_that_would_not_obey_its_file_is_refused(
    cluster: FakeCluster, arguments: list[str], why: str
) -> None:
    running_kubelet(cluster, *arguments)
    with pytest.raises(Final, match=why):
        switched(cluster, KUBELET, ON)
    assert cluster.file("node-a", CONFIG).read_text() == KUBELET_CONFIG


def test_a_file_that_is_not_there(cluster: FakeCluster) -> None:
    cluster.file("node-a", CONFIG).unlink()
    with pytest.raises(Final, match=f"node node-a: {CONFIG}: there is no such file"):
        switched(cluster, KUBELET, ON)


def test_a_file_that_is_a_link(cluster: FakeCluster) -> None:
    config = cluster.file("node-a", CONFIG)
    config.rename(config.with_name("elsewhere"))
    config.symlink_to("elsewhere")
    with pytest.raises(Final, match="is not a regular file"):
        switched(cluster, KUBELET, ON)


@pytest.mark.parametrize("content", [b"kind: {", b"kind: Pod", b"\xff\xfe"])
def test_a_file_that_cannot_be_edited_is_not_written(cluster: FakeCluster, content: bytes) -> None:
    cluster.file("node-a", CONFIG).write_bytes(content)
    with pytest.raises(InputError, match=f"node node-a: {CONFIG}: "):
        switched(cluster, KUBELET, ON)
    assert cluster.file("node-a", CONFIG).read_bytes() == content
    assert not copies(cluster, "node-a")


def test_a_file_that_grew_too_large(cluster: FakeCluster) -> None:
    cluster.file("node-a", CONFIG).write_text(KUBELET_CONFIG + "# more\n" * 20000)
    with pytest.raises(Final, match="too large to be written"):
        switched(cluster, KUBELET, ON)


def test_what_somebody_changed_meanwhile_is_not_overwritten(cluster: FakeCluster) -> None:
    config = cluster.file("node-a", CONFIG)

    def change(_node: str, env: Mapping[str, str]) -> None:
        if "NEW" in env:
            config.write_text(KUBELET_CONFIG + "# by hand\n")

    cluster.before_agent = change
    with pytest.raises(Conflict, match="somebody has changed it meanwhile"):
        switched(cluster, KUBELET, ON)
    assert config.read_text() == KUBELET_CONFIG + "# by hand\n"


def test_what_came_damaged_is_not_put_in_place(cluster: FakeCluster) -> None:
    def damage(_node: str, env: Mapping[str, str]) -> None:
        if "NEW" in env:
            assert isinstance(env, dict)
            env["CONTENT"] = env["CONTENT"][:40]

    cluster.before_agent = damage
    with pytest.raises(Final, match="could not be written whole, and is as it was"):
        switched(cluster, KUBELET, ON)
    assert cluster.file("node-a", CONFIG).read_text() == KUBELET_CONFIG
    assert [it.name for it in cluster.file("node-a", CONFIG).parent.iterdir()] == ["config.yaml"]


def test_a_log_that_is_not_whole_is_no_file(cluster: FakeCluster) -> None:
    def cut(pod: Object) -> None:
        name = pod["metadata"]["name"]
        cluster.logs[name] = cluster.logs[name][:100]

    cluster.after_agent = cut
    with pytest.raises(Retryable, match="is not whole"):
        switched(cluster, KUBELET, ON)


def test_an_agent_that_breaks_down_says_why(cluster: FakeCluster) -> None:
    def breaks(_node: str, env: Mapping[str, str]) -> None:
        assert isinstance(env, dict)
        env.pop("STATE")

    cluster.before_agent = breaks
    with pytest.raises(Final, match=r"STATE: .*\(the agent ended with"):
        switched(cluster, KUBELET, ON)
    assert cluster.agents() == []


STUCK: list[tuple[Object, type[ReplantError], str]] = [
    ({"phase": "Pending"}, Retryable, "has not ended after .*: Pending"),
    (
        {"phase": "Failed", "reason": "OutOfpods", "message": "full"},
        Retryable,
        "was not run: Failed: OutOfpods: full",
    ),
    (
        {
            "containerStatuses": [
                {"state": {"waiting": {"reason": "InvalidImageName", "message": "?"}}}
            ]
        },
        Final,
        r"the image busybox cannot be had: \?",
    ),
    (
        {
            "containerStatuses": [
                {"state": {"waiting": {"reason": "ErrImagePull", "message": "401"}}}
            ]
        },
        Retryable,
        "the image busybox cannot be had: 401",
    ),
]


@pytest.mark.parametrize(("status", "kind", "why"), STUCK)
def test_an_agent_that_does_not_run_is_told_and_removed(
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    status: Object,
    kind: type[ReplantError],
    why: str,
) -> None:
    monkeypatch.setattr(agent, "PATIENCE", 0.2)
    monkeypatch.setattr(agent, "PULLING", 0.05)
    cluster.after_agent = lambda pod: pod.update(status=status)
    with pytest.raises(kind, match=f"^node node-a: .*{why}"):
        switched(cluster, KUBELET, ON)
    assert cluster.agents() == []


def test_an_interrupted_switch_leaves_no_agent(cluster: FakeCluster) -> None:
    async def interrupted() -> None:
        runs = asyncio.Event()

        def run_on(pod: Object) -> None:
            pod["status"] = {"phase": "Running"}
            runs.set()

        cluster.after_agent = run_on
        actuator = Kubeadm(cluster, cluster, "busybox", pause=0.01)
        switch = asyncio.create_task(actuator.switch(KUBELET, ON))
        await runs.wait()
        assert cluster.agents()
        switch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await switch
        assert cluster.agents() == []

    asyncio.run(interrupted())


def test_what_an_earlier_run_left_is_removed_first(cluster: FakeCluster) -> None:
    left = agent_pod("left", "node-b", "busybox", "true", {"FILE": "/"}, writes=False)
    left["metadata"] |= {"uid": "1", "resourceVersion": "1"}
    cluster.objects["pods", NAMESPACE, "left"] = left
    switched(cluster, KUBELET, ON)
    assert cluster.agents() == []


@pytest.mark.parametrize(
    ("labels", "becomes"),
    [(None, "privileged"), ({"a": "b"}, "privileged"), ({SECURITY: "baseline"}, "baseline")],
)
def test_a_namespace_that_is_there_is_labelled_unless_somebody_has(
    cluster: FakeCluster, labels: dict[str, str] | None, becomes: str
) -> None:
    cluster.objects["namespaces", "", NAMESPACE] = {
        "metadata": {"labels": labels} if labels else {}
    }
    switched(cluster, KUBELET, ON)
    namespace = cluster.objects["namespaces", "", NAMESPACE]
    assert namespace["metadata"]["labels"] == {**(labels or {}), SECURITY: becomes}


def test_the_namespace_lets_agents_be_privileged(cluster: FakeCluster) -> None:
    switched(cluster, KUBELET, ON)
    namespace = cluster.objects["namespaces", "", NAMESPACE]
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    account = cluster.objects["serviceaccounts", NAMESPACE, "replant-agent"]
    assert account["automountServiceAccountToken"] is False


def test_an_agent_is_pinned_and_has_no_token() -> None:
    pod = agent_pod("a", "node-a", "image", "echo $(id)", {"FILE": "/$(x)"}, writes=True)
    spec = pod["spec"]
    assert pod["metadata"]["labels"][LABEL] == "true"
    assert spec["nodeName"] == "node-a"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["automountServiceAccountToken"] is False
    [container] = spec["containers"]
    assert container["command"][-1] == "echo $$(id)"
    assert {"name": "FILE", "value": "/$$(x)"} in container["env"]
    assert container["imagePullPolicy"] == "IfNotPresent"


def test_the_role_that_is_shipped_fits_what_is_made() -> None:
    file = Path(__file__).parents[2] / "deploy" / "rbac" / "kubeadm.yaml"
    shipped = {it["kind"]: it for it in yaml.safe_load_all(file.read_text())}
    for _, obj in surroundings():
        assert shipped[obj["kind"]] == obj
    granted = {
        (resource, verb)
        for rule in shipped["Role"]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert shipped["Role"]["metadata"]["namespace"] == NAMESPACE
    assert granted == {
        ("pods", "create"),
        ("pods", "delete"),
        ("pods", "get"),
        ("pods", "list"),
        ("pods/log", "get"),
        ("serviceaccounts", "get"),
    }
