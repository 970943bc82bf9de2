"""`replant convert` on the real thing: many volumes of all plugins, and one under a container."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.translate import driver_of, plugin_of
from tests.real import converting
from tests.real.attaching import GATE
from tests.real.converting import ACCEPT, Ground, all_bound, watched_claims
from tests.real.ground import programs
from tests.real.ground.api import Object
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ROLES, ControlPlane
from tests.real.ground.drivers import ControllerDriver, NodeDriver
from tests.real.ground.nodes import DRIVER, LightNode
from tests.real.ground.processes import Process, Stoppable, wait_for
from tests.real.ground.volumes import Volume, claim_object, new_volume, pod_object
from tests.real.test_node import WRITES, called, container, real_node, registered

MANY = 500
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
WRITES_A_VOLUME = 6
KEPT = 20.0
"""Seconds. Who deletes a disk does so within a few of them."""
LONGEST_GAP = 1.0
"""Seconds by which the container's writes may pause longer than those of a process beside it. A
volume that is unmounted and mounted again is away for longer; without load both pause for less
than 0.2 s."""
RECLAIM = "reclaim.example.com/storage"
FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"


@pytest.fixture(scope="module", params=["old", "new"])
def many(request: pytest.FixtureRequest, cloud: Cloud, ground: Path) -> Iterator[Ground]:
    version = {"old": programs.OLD, "new": programs.newest()}[request.param]
    with converting.ground(version, ground / f"convert-{request.param}", cloud, MANY) as made:
        yield made


def essence(volume: Object) -> Any:
    """What a person knows a volume by, and nobody but a person changes."""
    spec = {**volume["spec"]}
    spec["claimRef"] = {key: spec["claimRef"][key] for key in ("name", "namespace", "uid")}
    metadata = volume["metadata"]
    annotations = {k: v for k, v in metadata["annotations"].items() if k != MIGRATED_TO}
    return spec, metadata["labels"], annotations, sorted(metadata["finalizers"])


def test_many_volumes_become_native_and_go_back_killed_in_the_middle(many: Ground) -> None:
    before, uids = many.volumes(), many.uids()
    killed = many.replant("convert", "-l", "test=convert", *ACCEPT, "--dry-run=false", "--yes")
    wait_for(lambda: many.native() >= MANY // 5, "some volumes to be native", 240)
    killed.kill()
    killed.communicate()
    assert 0 < many.native() < MANY
    many.run("apply", "--resume", "--yes")
    assert many.native() == MANY
    assert many.uids() == uids
    assert all_bound(many)
    for name, volume in many.volumes().items():
        driver = driver_of(plugin_of(before[name]) or "")
        assert volume["spec"]["csi"]["driver"] == driver
        kept = {
            k: v for k, v in before[name]["metadata"]["annotations"].items() if k != MIGRATED_TO
        }
        assert volume["metadata"]["annotations"] == {**kept, PROVISIONED_BY: driver}
        assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        assert volume["status"]["phase"] == "Bound"

    killed = many.replant("convert", "--undo", "-l", "test=convert", "--dry-run=false", "--yes")
    wait_for(lambda: many.native() <= MANY - MANY // 5, "some to be back", 240)
    killed.kill()
    killed.communicate()
    many.run("apply", "--resume", "--yes")
    assert many.native() == 0
    assert many.uids() == uids
    assert all_bound(many)
    now = many.volumes()
    assert {name: essence(it) for name, it in now.items()} == {
        name: essence(it) for name, it in before.items()
    }


def test_one_volume_there_and_back_stays_bound_or_soon_is(many: Ground) -> None:
    name = "disk-0000"
    asked = ("convert", name, *ACCEPT, "--dry-run=false", "--yes")
    with watched_claims(many.api) as unbound:
        many.run(*asked)
    assert "csi" in many.volumes()[name]["spec"]
    assert len(unbound.seconds) <= 1
    many.run("convert", name, "--undo", "--dry-run=false", "--yes")
    assert "csi" not in many.volumes()[name]["spec"]
    assert all_bound(many)


def test_classes_and_inline_volumes_become_native_and_go_back(many: Ground) -> None:
    """Of a namespace of their own, so that the volumes of others stay as they are."""
    many.plane.apply_role("convert-workloads")
    many.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    kept = {"reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer"}
    many.api.create(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
         "metadata": {"name": "gp2", "annotations": default},
         "provisioner": "kubernetes.io/aws-ebs", "parameters": {"type": "gp2"}, **kept}
    )  # fmt: skip
    disk = {"volumeID": "aws://us-east-1a/vol-00000000000000abc", "fsType": "ext4"}
    labels = {"app": "web"}
    many.api.create(
        {"apiVersion": "apps/v1", "kind": "Deployment",
         "metadata": {"name": "web", "namespace": "shop"},
         # No pod: there is no machine here to run it. The template is what changes.
         "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
             "metadata": {"labels": labels},
             "spec": {"containers": [{"name": "web", "image": "web"}],
                      "volumes": [{"name": "data", "awsElasticBlockStore": disk}]}}}}
    )  # fmt: skip

    def template() -> Object:
        spec: Object = many.api.get("Deployment", "web", "shop")["spec"]["template"]["spec"]
        return spec

    class_before, template_before = many.api.get("StorageClass", "gp2"), template()
    said = many.run(
        "convert", "-n", "shop", *ACCEPT, "--storage-classes", "--inline",
        "--inline-capacity", "1Gi", "--dry-run=false", "--yes",
    )  # fmt: skip
    made = many.api.get("StorageClass", "gp2")
    assert (made["provisioner"], made["parameters"]) == ("ebs.csi.aws.com", {"type": "gp2"})
    assert made["metadata"]["annotations"].items() >= default.items()
    assert {key: made[key] for key in kept} == kept
    (volume,) = template()["volumes"]
    claim_name = volume["persistentVolumeClaim"]["claimName"]
    claim = many.api.get("PersistentVolumeClaim", claim_name, "shop")
    assert claim["status"]["phase"] == "Bound"
    native = many.api.get("PersistentVolume", claim["spec"]["volumeName"])["spec"]
    assert native["csi"]["volumeHandle"] == "vol-00000000000000abc"

    many.run("apply", "--undo", "--yes", "--run", said.split()[1].rstrip(":"))
    back = many.api.get("StorageClass", "gp2")
    assert {**back, "metadata": {}} == {**class_before, "metadata": {}}
    assert template() == template_before
    assert many.api.find("PersistentVolumeClaim", claim_name, "shop") is None
    many.api.delete("Deployment", "web", "shop")
    many.api.delete("StorageClass", "gp2")
    assert all_bound(many)


def test_a_volume_takes_six_writes_and_the_roles_that_we_ship(many: Ground) -> None:
    """Comes last: by now everything has been asked for."""
    asked = [it for it in many.plane.asked_by_roles() if "objectRef" in it]
    assert [it for it in asked if it["responseStatus"]["code"] == 403] == []
    writes = [
        it
        for it in asked
        if it["objectRef"]["resource"] in ("persistentvolumes", "persistentvolumeclaims")
        and it["verb"] in ("create", "patch", "delete", "update")
        and it["responseStatus"]["code"] < 400
    ]
    ways = 2 * MANY + 2
    # Two were killed on their way and looked at anew; each may have cost a few volumes one more.
    assert len(writes) <= WRITES_A_VOLUME * ways + 2 * 16
    used = {f"{it['verb']} {it['objectRef']['resource']}" for it in asked}
    allowed = {
        f"{verb} {resource}"
        for obj in yaml.safe_load_all((ROLES / "convert.yaml").read_text())
        for rule in obj.get("rules", [])
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert allowed <= used


def test_a_volume_under_a_container_while_the_gates_can_be_switched(
    old: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    old.start_controller_manager({GATE: True}, cloud)
    under_a_container(old, cloud, ground, {GATE: True})


def test_a_volume_under_a_container_when_the_gates_are_gone(
    new: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    new.start_controller_manager()
    under_a_container(new, cloud, ground, {})


def test_what_was_converted_or_put_back_is_reclaimed_while_the_gates_can_be_switched(
    old: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    old.start_controller_manager({GATE: True}, cloud)
    reclaimed(old, cloud, ground, {GATE: True})


def test_a_volume_made_by_hand_keeps_its_disk_if_nobody_would_delete_it(
    new: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    """Its policy is Delete and it names no provisioner: without in-tree plugins it only fails."""
    new.start_controller_manager()
    with reclaiming(new, cloud, ground, {}) as role:
        untouched, converted = (by_hand(new, cloud, f"by-hand-{number}") for number in (1, 2))
        replant(role, "convert", converted.name)
        assert "csi" in converted.pv["spec"]
        for volume in (untouched, converted):
            new.api.delete("PersistentVolumeClaim", volume.name, "default")
        phases = {"Failed": untouched, "Released": converted}
        for phase, volume in phases.items():
            wait_for(partial(has_phase, volume, phase), f"{volume.name} to be {phase}", 60)
        time.sleep(KEPT)
        assert [it.cloud.has(it.disk) for it in (untouched, converted)] == [True, True]


def test_a_volume_made_by_hand_is_reclaimed_if_it_would_have_been(
    old: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    """The in-tree plugin deletes such a disk, whatever is redirected."""
    old.start_controller_manager({GATE: True}, cloud)
    with reclaiming(old, cloud, ground, {GATE: True}) as role:
        untouched, converted = (by_hand(old, cloud, f"by-hand-{number}") for number in (1, 2))
        replant(role, "convert", converted.name)
        assert "csi" in converted.pv["spec"]
        for volume in (untouched, converted):
            old.api.delete("PersistentVolumeClaim", volume.name, "default")
        for volume in (untouched, converted):
            gone = f"the disk of {volume.name} to be deleted"
            wait_for(partial(lambda it: not it.cloud.has(it.disk), volume), gone, 60)


def test_what_was_converted_or_put_back_is_reclaimed_when_the_gates_are_gone(
    new: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    new.start_controller_manager()
    reclaimed(new, cloud, ground, {})


def test_a_finalizer_that_nobody_knows_stops_a_conversion(
    new: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    """Its controller may delete the disk when it sees that the volume is being deleted."""
    new.start_controller_manager()
    with reclaiming(new, cloud, ground, {}) as role:
        volume = new_volume(new.api, cloud, "reclaimed-by-another")
        held = {"metadata": {"finalizers": ["kubernetes.io/pv-protection", RECLAIM]}}
        new.api.patch("PersistentVolume", volume.name, held)
        before = volume.pv
        assert RECLAIM in replant(role, "convert", volume.name, code=3)
        assert volume.pv == before
        replant(role, "convert", volume.name, "--accept-finalizer", RECLAIM)
        assert "csi" in volume.pv["spec"]
        new.api.patch("PersistentVolume", volume.name, {"metadata": {"finalizers": None}})


def test_a_stateful_set_that_deletes_its_claims_is_not_scaled_down(
    new: ControlPlane, cloud: Cloud
) -> None:
    new.start_controller_manager()
    new.apply_role("convert")
    role = new.role_kubeconfig("apply")
    with (
        installed(new),
        # A kubelet that does not redirect the plugin, so the volume must not be in use.
        LightNode(new.api, cloud.instance(), programs.OLD, {GATE: False}, [DRIVER]) as node,
    ):
        volume = new_volume(new.api, cloud, "data-db-0")
        new.api.create(stateful_set(node.name))
        wait_for(lambda: new.api.find("Pod", "db-0", "default"), "the pod")
        uid = volume.claim["metadata"]["uid"]
        assert "whenScaled" in replant(role, "convert", volume.name, "--scale-down", code=3)
        time.sleep(KEPT / 4)
        assert volume.claim["metadata"]["uid"] == uid
        assert new.api.get("StatefulSet", "db", "default")["spec"]["replicas"] == 1
        new.api.delete("StatefulSet", "db", "default")


def stateful_set(node: str) -> Object:
    """A StatefulSet of one pod on a node, that deletes its claims when it is scaled down."""
    labels = {"app": "db"}
    pod = pod_object("db-0", node)
    claimed = claim_object("data", storageClassName="")
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
            "volumeClaimTemplates": [
                {"metadata": {"name": "data"}, "spec": claimed["spec"]},
            ],
        },
    }


@contextmanager
def reclaiming(
    plane: ControlPlane, cloud: Cloud, ground: Path, gates: dict[str, bool]
) -> Iterator[Path]:
    """A node and the driver with its provisioner; the kubeconfig of whoever converts."""
    plane.apply_role("convert")
    folder = ground / f"convert-reclaimed-{plane.version}-{time.monotonic_ns()}"
    with (
        installed(plane),
        LightNode(plane.api, cloud.instance(), plane.version, gates, [DRIVER]),
        ControllerDriver(plane, cloud, folder, provisions=True),
    ):
        yield plane.role_kubeconfig("apply")


def by_hand(plane: ControlPlane, cloud: Cloud, name: str) -> Volume:
    """A volume that names no provisioner, and whose disk is to be deleted with its claim."""
    volume = new_volume(plane.api, cloud, name)
    policy = {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}
    plane.api.patch("PersistentVolume", name, policy)
    return volume


def has_phase(volume: Volume, phase: str) -> bool:
    return bool(volume.pv["status"]["phase"] == phase)


def reclaimed(plane: ControlPlane, cloud: Cloud, ground: Path, gates: dict[str, bool]) -> None:
    with reclaiming(plane, cloud, ground, gates) as role:
        for name, back in (("reclaimed-native", False), ("reclaimed-in-tree", True)):
            reclaim(plane, new_volume(plane.api, cloud, name), role, back=back)


def reclaim(plane: ControlPlane, volume: Volume, role: Path, *, back: bool) -> None:
    """Convert a volume whose disk is to be deleted with its claim, and delete the claim."""

    def deletable() -> bool:
        """Whether the provisioner has given its finalizer to what it will delete."""
        return FINALIZER in volume.pv["metadata"]["finalizers"]

    wanted = {
        "metadata": {"annotations": {PROVISIONED_BY: "kubernetes.io/aws-ebs"}},
        "spec": {"persistentVolumeReclaimPolicy": "Delete"},
    }
    plane.api.patch("PersistentVolume", volume.name, wanted)
    wait_for(deletable, "the finalizer", 60)
    replant(role, "convert", volume.name)
    wait_for(deletable, "the finalizer", 60)
    if back:
        replant(role, "convert", volume.name, "--undo")
    assert ("csi" in volume.pv["spec"]) == (not back)
    assert volume.cloud.has(volume.disk)
    plane.api.delete("PersistentVolumeClaim", volume.name, "default")
    wait_for(lambda: not volume.cloud.has(volume.disk), "the disk to be deleted", 60)
    wait_for(lambda: not plane.api.find("PersistentVolume", volume.name), "the volume to go", 60)


@contextmanager
def installed(plane: ControlPlane) -> Iterator[None]:
    """The driver is installed for a while, as far as the API server knows."""
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "spec": {}}
    plane.api.create({**driver, "metadata": {"name": DRIVER}})
    try:
        yield
    finally:
        plane.api.delete("CSIDriver", DRIVER)


def under_a_container(
    plane: ControlPlane, cloud: Cloud, ground: Path, gates: dict[str, bool]
) -> None:
    role = plane.role_kubeconfig("apply")
    plane.apply_role("convert")
    with (
        installed(plane),
        ControllerDriver(plane, cloud, ground / f"convert-driver-{plane.version}") as controller,
        real_node(plane, cloud, ground, gates) as (machine, instance),
        Aside(ground / f"convert-aside-{plane.version}") as aside,
    ):
        driver = NodeDriver(machine, instance)
        wait_for(lambda: DRIVER in registered(plane, machine), "the driver to be registered")
        volume = new_volume(plane.api, cloud, f"converted-{instance.id}")
        plane.api.create(pod_object("writer", machine.name, volume.name, WRITES))
        lines = driver.disks / volume.disk / "lines"
        wait_for(lines.exists, "the container to write", 60)
        wait_for(lambda: volume.attachments[0]["status"]["attached"], "the attachment")
        wait_for(lambda: "containerID" in container(plane), "the kubelet to say so")
        untouched = seen(plane, volume)
        assert untouched["restarts"] == 0
        asked = called(driver, volume.disk)
        assert "ControllerPublishVolume" in called(controller, volume.disk)
        controlled = changing(controller)
        for native in (True, False, True, False, True):
            undo = () if native else ("--undo",)
            convert = partial(replant, role, "convert", volume.name, *undo)
            gap, others, said = longest_gaps(lines, aside.lines, convert)
            assert gap < others + LONGEST_GAP, said
            assert ("csi" in volume.pv["spec"]) == native, said
            assert seen(plane, volume) == untouched
            assert called(driver, volume.disk) == asked
            assert changing(controller) == controlled

        machine.restart_kubelet()
        plane.restart_controller_manager()
        before = lines.read_text()
        wait_for(lambda: lines.read_text() != before, "the container to write on")
        assert seen(plane, volume) == untouched
        plane.api.delete("Pod", "writer", "default")
        wait_for(lambda: not volume.attached_to, "the disk to be freed", 60)
        wait_for(lambda: not volume.attachments, "the attachment to go", 60)
        assert called(driver, volume.disk)[-2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
        written = [int(line) for line in lines.read_text().split()]
        assert written == list(range(1, len(written) + 1)), "a line was lost"


def changing(controller: ControllerDriver) -> list[str]:
    """What the driver's controller was asked to do to any disk so far."""
    return [
        it["call"]
        for it in controller.calls()
        if it["call"].startswith(("Create", "Delete", "ControllerPublish", "ControllerUnpublish"))
    ]


def seen(plane: ControlPlane, volume: Volume) -> dict[str, Any]:
    """What must not be touched while a volume is replaced."""
    (attachment,) = volume.attachments
    status = container(plane)
    return {
        "attachment": attachment["metadata"]["uid"],
        "claim": volume.claim["metadata"]["uid"],
        "container": status["containerID"],
        "restarts": status["restartCount"],
        "attached to": volume.attached_to,
        "phase": volume.claim["status"]["phase"],
    }


def replant(role: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [converting.REPLANT, *arguments, "--dry-run=false", "--yes", "--kubeconfig", str(role)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


class Aside(Stoppable):
    """The container's loop as a process of the machine, which writes to no volume."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.lines = folder / "lines"
        self._process = Process("aside", ["sh", "-c", WRITES.replace("/data/", "")], folder)
        wait_for(self.lines.exists, "the process to write")

    def stop(self) -> None:
        self._process.kill()


def longest_gaps(lines: Path, aside: Path, do: Callable[[], Any]) -> tuple[float, float, Any]:
    """For how long nothing was written at most while something was done, in seconds.

    By the container, and by the process beside it: what both miss is the machine's doing.
    """
    stop = threading.Event()
    longest = dict.fromkeys((lines, aside), 0.0)

    def follow() -> None:
        sizes = {path: (path.stat().st_size, time.monotonic()) for path in longest}
        while not stop.wait(0.004):
            now = time.monotonic()
            for path, (size, since) in sizes.items():
                longest[path] = max(longest[path], now - since)
                if (grown := path.stat().st_size) != size:
                    sizes[path] = grown, now

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        outcome = do()
    finally:
        stop.set()
        thread.join()
    return longest[lines], longest[aside], outcome
