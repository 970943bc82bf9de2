"""What is said of a driver that cannot be looked at, or not be written."""

from __future__ import annotations

from contextlib import suppress

import pytest

from replant.cluster.answers import Answer, Request
from replant.errors import Conflict, Forbidden, ReplantError, Unreachable
from replant.objects import Object
from replant.operator.drivers import TOLERATED
from tests.faults.injecting import Do, Process
from tests.operators.driving import EBS, MANILA, Operator, World, openshift, run
from tests.operators.test_drivers import (
    NAMESPACE,
    NODE,
    RESTS,
    WELL,
    lived,
    two_types,
    whole_secret,
)

STEP = 30
REFUSED = "PATCH daemonsets: denied by a policy"
FAILED = ("True", "Sync_SyncError")


class Policy:
    """Lets nobody write a DaemonSet, while it is in force."""

    def __init__(self, error: type[ReplantError], *, in_force: bool = True) -> None:
        self.error = error
        self.in_force = in_force
        self.tries = 0

    async def __call__(self, _process: Process, request: Request, do: Do) -> Answer:
        if self.in_force and "daemonsets" in request.path:
            self.tries += 1
            # As when a connection breaks: the port is another each time.
            raise self.error(f"{REFUSED} at :{self.tries}")
        return await do()


def kept(operator: Operator, seconds: float = STEP) -> None:
    """Whatever fails is tried again, and the cluster's status told, as the process has it."""

    async def main() -> None:
        end = operator.world.now() + seconds
        while operator.world.now() < end:
            for key in operator.keys:
                with suppress(ReplantError):
                    await operator.drivers.attend(key)
            await operator.status.tell()
            operator.world.cluster.run_for(STEP)

    run(main())


def test_a_write_that_is_refused_is_said_until_it_is_done() -> None:
    world, policy = World(openshift()), Policy(Forbidden)
    operator = Operator(world, at_write=policy, keys=(EBS,))
    kept(operator, 3 * STEP)
    said = world.conditions("AWSEBSDriver")
    refused = f"{REFUSED} at :1"
    # Credentials are there by now, so they are not waited for any more.
    assert said["Available"][:2] == ("False", "DriverNode_Deploying")
    assert said["SyncDegraded"] == ("True", "SyncError", refused)
    assert said["Degraded"] == (*FAILED, f"SyncDegraded: {refused}")
    assert world.clusterwide()["Degraded"] == RESTS
    kept(operator, 150)
    reason = "AWSEBSDriver_Sync_SyncError"
    assert world.clusterwide()["Degraded"][:2] == ("True", reason)
    # What is said already is not said again, though it is tried again.
    world.writes.clear()
    tries = policy.tries
    kept(operator, 10 * STEP)
    assert policy.tries > tries
    assert {it.path.split("/")[-2] for it in world.writes} == {"daemonsets"}
    policy.in_force = False
    kept(operator, 5 * STEP)
    said = world.conditions("AWSEBSDriver")
    assert "SyncDegraded" not in said
    assert (said["Available"], said["Degraded"]) == (WELL, RESTS)
    assert world.clusterwide()["Degraded"] == RESTS


def test_what_passes_by_itself_is_said_only_if_it_does_not() -> None:
    world, policy = World(openshift()), Policy(Conflict, in_force=False)
    operator = lived(world, at_write=policy)
    policy.in_force = True
    world.delete("DaemonSet", NODE, NAMESPACE)
    operator.keys = (EBS,)
    kept(operator, (TOLERATED - 1) * STEP)
    assert policy.tries == TOLERATED - 1
    assert world.conditions("AWSEBSDriver")["Degraded"] == RESTS
    kept(operator)
    assert world.conditions("AWSEBSDriver")["Degraded"][:2] == FAILED
    # It is counted in a row.
    policy.in_force = False
    kept(operator, 3 * STEP)
    assert world.conditions("AWSEBSDriver")["Degraded"] == RESTS
    policy.in_force = True
    world.delete("DaemonSet", NODE, NAMESPACE)
    kept(operator)
    assert world.conditions("AWSEBSDriver")["Degraded"] == RESTS


@pytest.mark.parametrize("state", ["Managed", "Unmanaged"])
def test_a_driver_that_cannot_be_looked_at(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(openshift())
    operator = lived(world)
    world.change("AWSEBSDriver", lambda it: it["spec"].update(managementState=state))
    run(operator.live(30))
    before = world.conditions("AWSEBSDriver")

    async def blind(*_given: object) -> Object:
        raise Forbidden("GET storageclasses: you may not")

    operator.keys = (EBS,)
    with monkeypatch.context() as patched:
        patched.setattr(operator.sight, "driver", blind)
        kept(operator)
        said = world.conditions("AWSEBSDriver")
        if state == "Unmanaged":
            assert said == before
            return
        sync = ("True", "SyncError", "GET storageclasses: you may not")
        degraded = (*FAILED, f"SyncDegraded: {sync[2]}")
        assert said == {**before, "SyncDegraded": sync, "Degraded": degraded}
    kept(operator)
    assert world.conditions("AWSEBSDriver") == before


class Keystone:
    """Tells share types, while it can be reached."""

    def __init__(self, *, up: bool) -> None:
        self.up = up

    async def __call__(self, secret: Object) -> tuple[str, ...]:
        if not self.up:
            raise Unreachable("POST http://keystone: ConnectError")
        return await two_types(secret)


def test_share_types_that_cannot_be_asked_for_keep_nothing_else_from_being_kept() -> None:
    world = World(openshift("OpenStack", classes=()), whole_secret(MANILA))
    keystone = Keystone(up=True)
    operator = lived(world, 180, shares=keystone, keys=(MANILA,))
    keystone.up = False
    node = "openstack-manila-csi-nodeplugin"
    namespace = "openshift-manila-csi-driver"
    for kind, name in (
        ("DaemonSet", node),
        ("Deployment", "openstack-manila-csi-controllerplugin"),
    ):
        world.delete(kind, name, namespace)
    classes = world.names("StorageClass")
    world.cluster.run_for(60)
    assert not world.registered(MANILA)
    run(operator.live(240))
    assert world.registered(MANILA) == world.names("Node")
    assert world.names("StorageClass") == classes
    assert len(classes) == 2
    said = world.conditions("ManilaDriver")
    untold = ("True", "ShareTypesUnknown", "POST http://keystone: ConnectError")
    assert said["ShareTypesDegraded"] == untold
    assert said["Degraded"][:2] == ("True", "ShareTypes_ShareTypesUnknown")
    assert said["Available"] == WELL
    assert world.clusterwide()["Degraded"][0] == "True"
    world.writes.clear()
    run(operator.live(600))
    assert world.writes == []
    keystone.up = True
    run(operator.live(120))
    assert "ShareTypesDegraded" not in world.conditions("ManilaDriver")
    assert world.clusterwide()["Degraded"] == RESTS


def test_a_cloud_that_does_not_tell_whether_it_has_manila_gets_no_driver_for_it_yet() -> None:
    world = World(openshift("OpenStack", classes=()), whole_secret(MANILA))
    keystone = Keystone(up=False)
    operator = lived(world, 180, shares=keystone, keys=(MANILA,))
    said = world.conditions("ManilaDriver")
    assert said["Degraded"] == ("True", "ShareTypesUnknown", "POST http://keystone: ConnectError")
    assert said["Available"][0] == "False"
    assert not world.all("DaemonSet")
    keystone.up = True
    run(operator.live(180))
    assert world.conditions("ManilaDriver")["Available"] == WELL
    assert world.registered(MANILA) == world.names("Node")
