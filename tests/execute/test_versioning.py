"""A platform that goes to another version: every kubelet is waited for, and nobody leads on."""

from __future__ import annotations

from replant.execute.acts import LookAtLeader, RestartLeader
from replant.execute.leading import Leader
from replant.execute.patience import Patience
from replant.execute.versioning import Versioning
from replant.plan.model import ChangeVersion
from tests.execute.nodes import ENABLE, Nodes, only


def stage(restart: int = 0) -> Versioning:
    step = ChangeVersion(
        id="downgrade", title="Down", why="", done_when="", undo="", version="1.22", before="1.23",
        restart_controllers_seconds=restart,
    )  # fmt: skip
    return Versioning(step, ENABLE, Patience())


def nodes(*versions: str) -> Nodes:
    found = Nodes()
    for number, version in enumerate(versions):
        found.node(f"n{number}", nodeInfo={"kubeletVersion": version})
    return found


def test_every_kubelet_is_waited_for() -> None:
    it = stage()
    waiting = it.decide(nodes("v1.23.17", "v1.22.3", "", "v1.23.1", "v1.23.1").world, 0)
    assert not waiting.done
    assert waiting.acts == []
    assert waiting.progress.told == "1 of 5 nodes"
    (wait,) = waiting.waits
    assert wait.what.startswith(
        "n0, n2, n3 and 1 more to run Kubernetes 1.22: n0 runs 1.23.17. Unless that is under way"
    )
    # Each node that comes along is another wait: the whole takes hours.
    (other,) = it.decide(nodes("v1.23.17", "v1.22.3").world, 1).waits
    assert other.key != wait.key
    assert it.decide(nodes("v1.22.17", "v1.22.3").world, 2).done


def test_nobody_leads_to_the_end_under_whom_the_platform_moved_pods() -> None:
    it = stage(restart=1200)
    look = only(it.decide(nodes("v1.23.17", "v1.23.17").world, 0))
    assert isinstance(look, LookAtLeader)
    it.learn(look, Leader("a", "1"), 1)
    assert isinstance(only(it.decide(nodes("v1.23.17").world, 1)), RestartLeader)
    it.learn(look, Leader("b", "2"), 3)
    half = nodes("v1.22.17", "v1.23.17").world
    assert it.decide(half, 4).acts == []
    assert it.leaves_detaches
    assert isinstance(only(it.decide(half, 1205)), LookAtLeader)
    it.learn(look, Leader("b", "2"), 1206)
    assert isinstance(only(it.decide(half, 1206)), RestartLeader)
    it.learn(look, Leader("c", "3"), 1208)
    it.decide(half, 1208)
    it.decide(half, 1209)
    ending = it.decide(nodes("v1.22.17", "v1.22.17").world, 1300)
    assert not ending.done
    it.learn(only(ending), Leader("c", "3"), 1301)
    assert isinstance(only(it.decide(nodes("v1.22.17").world, 1301)), RestartLeader)
    it.learn(look, Leader("d", "4"), 1303)
    assert it.decide(nodes("v1.22.17").world, 1303).done
    assert not it.leaves_detaches
