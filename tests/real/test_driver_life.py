"""The operator of drivers on real Kubernetes: classes, a foreign driver, and one that leaves.

Nobody says in which cloud this cluster is, so drivers of several may be asked for. Nothing runs
there but the API server: what controllers would say of a rollout is said by the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replant.drivers import decisions
from replant.drivers.catalog import DRIVERS, Driver
from replant.drivers.classes import CHOSEN, DEFAULT, STOOD_BACK
from replant.drivers.decisions import FINALIZER
from replant.drivers.kinds import GROUP
from replant.drivers.sameness import HASH
from replant.objects import DEFAULT_CLASS
from replant.operator import driver_run
from replant.operator import drivers as operator_of_drivers
from tests.drivers.test_adoption import workload
from tests.real.ground.api import Object
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.processes import wait_for
from tests.real.test_drivers import (
    ask,
    asked_by,
    conditions,
    find,
    named,
    operating,
    rolled_out,
    taken_over,
    with_definitions,
)

BETA = DEFAULT_CLASS[1]
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
WELL, RESTS = ("True", "AsExpected"), ("False", "AsExpected")
ALL_WELL = {
    "Available": WELL,
    "Progressing": RESTS,
    "Degraded": RESTS,
    "Upgradeable": WELL,
    "PrereqsSatisfied": WELL,
}
SOON = 60.0


@pytest.fixture(scope="module", params=["old", "new"])
def plane(request: pytest.FixtureRequest, ground: Path) -> Iterator[ControlPlane]:
    """With an operator that has the roles which ship, and looks at everything every second."""
    with (
        with_definitions(request.param, ground / f"driver-life-{request.param}") as plane,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(operator_of_drivers, "RESYNC", 1.0)
        patched.setattr(driver_run, "RESYNC", 1.0)
        patched.setattr(decisions, "WAIT", 1.0)
        kubeconfig = plane.role_kubeconfig("drivers")
        plane.apply_role("drivers-adopt")
        with operating(kubeconfig) as notes:
            yield plane
    refused = [it for it in asked_by(plane) if it["responseStatus"]["code"] in (401, 403)]
    assert [(it["verb"], it["requestURI"]) for it in refused] == [], notes


@dataclass(frozen=True)
class Asked:
    """A driver that was asked for."""

    plane: ControlPlane
    driver: Driver

    @property
    def cr(self) -> str:
        return f"/apis/{GROUP}/v1/{self.driver.plural}/cluster"

    @property
    def workloads(self) -> tuple[str, str]:
        base = f"/apis/apps/v1/namespaces/{self.driver.namespace}"
        names = self.driver.controller_name, self.driver.node_name
        return f"{base}/deployments/{names[0]}", f"{base}/daemonsets/{names[1]}"

    def ask(self, **spec: Any) -> None:
        """Make its CR, or change it; the operator has seen it then."""
        if find(self.plane, self.cr):
            ask(self.plane, "PATCH", self.cr, {"spec": spec})
        else:
            cr = named(f"{GROUP}/v1", self.driver.kind, "cluster", spec=spec)
            ask(self.plane, "POST", self.cr.rpartition("/")[0], cr)

        def seen() -> bool:
            cr = find(self.plane, self.cr)
            status = cr.get("status") or {}
            return bool(status.get("observedGeneration") == cr["metadata"]["generation"])

        wait_for(seen, f"what {self.driver.kind} says of {spec}", SOON)

    def runs(self, *workloads: str) -> None:
        """Its workloads are rolled out, and all is well."""
        paths = workloads or self.workloads
        wait_for(lambda: all(find(self.plane, it) for it in paths), "its workloads", SOON)
        rolled_out(self.plane, *paths)
        self.says(ALL_WELL)

    def says(self, wanted: dict[str, tuple[str, str]]) -> None:
        def said() -> dict[str, tuple[str, str]]:
            found = conditions(self.plane, self.cr)
            return {key: it for key, it in found.items() if not key.startswith("DriverC")
                    and not key.startswith("DriverN")}  # fmt: skip

        wait_for(lambda: said() == wanted, f"that {self.driver.kind} says {wanted}", SOON)

    def message(self, kind: str) -> str:
        told = find(self.plane, self.cr)["status"]["conditions"]
        return next(str(it["message"]) for it in told if it["type"] == kind)


def noted(plane: ControlPlane, name: str) -> dict[str, str]:
    """A class's annotations, but for the digest of what was wanted."""
    found = (find(plane, f"{CLASSES}/{name}") or {"metadata": {}})["metadata"]
    return {key: it for key, it in (found.get("annotations") or {}).items() if key != HASH}


def test_classes_and_the_default(plane: ControlPlane) -> None:
    in_tree = named("storage.k8s.io/v1", "StorageClass", "standard")
    in_tree["metadata"]["annotations"] = {BETA: "true"}
    ask(plane, "POST", CLASSES, {**in_tree, "provisioner": "kubernetes.io/gce-pd"})
    gce = Asked(plane, DRIVERS["pd.csi.storage.gke.io"])
    gce.ask(credentials="Node")
    gce.runs()
    apart = {DEFAULT: "false", CHOSEN: "in-tree:false"}
    wait_for(lambda: noted(plane, "ssd-csi") == apart, "the second class", SOON)
    assert noted(plane, "standard-csi") == apart
    # Phase 3, and back.
    gce.ask(defaultStorageClass="csi")
    back = {BETA: "false", STOOD_BACK: BETA}
    wait_for(lambda: noted(plane, "standard") == back, "that the in-tree class stands back", SOON)
    assert noted(plane, "standard-csi") == {DEFAULT: "true", CHOSEN: "csi:true"}
    gce.ask(defaultStorageClass="in-tree")
    wait_for(lambda: noted(plane, "standard-csi") == apart, "the other default", SOON)
    assert noted(plane, "standard") == {BETA: "true"}
    # Somebody makes one of ours anew, with what nobody could change of it.
    gce.ask(storageClassState="Unmanaged")
    ours = find(plane, f"{CLASSES}/ssd-csi")
    ask(plane, "DELETE", f"{CLASSES}/ssd-csi")
    meta = {it: ours["metadata"][it] for it in ("name", "labels", "annotations")}
    meta["annotations"][DEFAULT] = ""
    changed = {**ours, "metadata": meta, "parameters": {"type": "pd-extreme"}}
    uid = ask(plane, "POST", CLASSES, changed)["metadata"]["uid"]
    gce.ask(storageClassState="Managed")
    wait_for(lambda: _uid(plane, "ssd-csi") not in ("", uid), "a class of ours", SOON)
    assert find(plane, f"{CLASSES}/ssd-csi")["parameters"] == {"type": "pd-ssd"}
    assert noted(plane, "ssd-csi") == {DEFAULT: ""}
    wait_for(lambda: not find(plane, gce.cr)["metadata"].get("annotations"), "an end of it", SOON)
    gce.says(ALL_WELL)
    # None of ours.
    gce.ask(storageClassState="Removed")
    wait_for(
        lambda: [it["metadata"]["name"] for it in find(plane, CLASSES)["items"]
                 if it["provisioner"].endswith(("gce-pd", gce.driver.name))] == ["standard"],
        "that classes are gone", SOON,
    )  # fmt: skip
    gce.says(ALL_WELL)


def _uid(plane: ControlPlane, name: str) -> str:
    found = find(plane, f"{CLASSES}/{name}")
    return str(found["metadata"]["uid"]) if found else ""


def test_a_foreign_driver_is_left_alone_and_then_adopted(plane: ControlPlane) -> None:
    """Somebody has installed it whose objects Replant has never made."""
    azure = Asked(plane, DRIVERS["disk.csi.azure.com"])
    name = azure.driver.name
    csi: Object = named("storage.k8s.io/v1", "CSIDriver", name)
    csi["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    csi["spec"] = {"attachRequired": True, "podInfoOnMount": False}
    theirs = [ask(plane, "POST", CSI_DRIVERS, csi)]
    paths = []
    for kind, plural, called, sidecar in (
        ("Deployment", "deployments", "csi-azuredisk-controller", "csi-provisioner"),
        ("DaemonSet", "daemonsets", "csi-azuredisk-node", "node-driver-registrar"),
    ):
        where = f"/apis/apps/v1/namespaces/kube-system/{plural}"
        obj = workload(azure.driver, kind, called, "kube-system", sidecar, "theirs")
        del obj["metadata"]["uid"]
        theirs.append(ask(plane, "POST", where, {"apiVersion": "apps/v1", **obj}))
        paths.append(f"{where}/{called}")
    azure.ask(credentials="Node")
    foreign = "ForeignCSIDriver"
    azure.says(
        {
            "Available": ("Unknown", foreign),
            "Progressing": RESTS,
            "Degraded": ("True", foreign),
            "Upgradeable": WELL,
            "PrereqsSatisfied": ("False", foreign),
        }
    )
    assert (
        azure.message("Degraded")
        == azure.message("PrereqsSatisfied")
        == (
            f"CSIDriver {name} was installed by Helm, and is left alone; remove that driver, set "
            "adoption to Adopt, or managementState to Unmanaged"
        )
    )
    assert [find(plane, it) for it in (f"{CSI_DRIVERS}/{name}", *paths)] == theirs
    assert find(plane, f"/api/v1/namespaces/{azure.driver.namespace}") is None
    azure.ask(adoption="Adopt")
    wait_for(
        lambda: all("theirs" not in str(find(plane, it)["spec"]["template"]["spec"]["containers"])
                    for it in paths),
        "content of ours", SOON,
    )  # fmt: skip
    azure.runs(*paths)
    taken_over(plane, (*paths,), theirs[1:])
    found = find(plane, f"{CSI_DRIVERS}/{name}")
    assert found["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "replant"}
    assert found["spec"]["podInfoOnMount"] is True
    assert [find(plane, it) for it in azure.workloads] == [None, None]


def test_an_optional_driver_leaves_when_nothing_uses_it(plane: ControlPlane) -> None:
    vsphere = Asked(plane, DRIVERS["csi.vsphere.vmware.com"])
    name = vsphere.driver.name
    vsphere.ask(credentials="Node")
    vsphere.runs()
    assert find(plane, vsphere.cr)["metadata"]["finalizers"] == [FINALIZER]
    wait_for(lambda: find(plane, f"{CLASSES}/thin-csi"), "its class", SOON)
    volume = named("v1", "PersistentVolume", "used")
    volume["spec"] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": name, "volumeHandle": "h"},
    }
    ask(plane, "POST", "/api/v1/persistentvolumes", volume)
    ask(plane, "DELETE", vsphere.cr)
    removing = {
        "Available": WELL,
        "Progressing": ("True", "RemovingOperand"),
        "Degraded": RESTS,
        "Upgradeable": WELL,
    }
    vsphere.says(removing)
    used = f"{name} is still in use by 1 PersistentVolume (used)"
    assert vsphere.message("Progressing") == used
    assert find(plane, f"{CLASSES}/thin-csi")
    # Its controllers are lost meanwhile, without which nobody could delete that volume.
    ask(plane, "DELETE", vsphere.workloads[0])
    vsphere.says(removing | {"Available": ("False", "RemovingOperand")})
    wait_for(lambda: find(plane, vsphere.workloads[0]), "its controllers", SOON)
    rolled_out(plane, vsphere.workloads[0])
    vsphere.says(removing)
    # No controller is there that would take the finalizer of a volume away.
    ask(plane, "PATCH", "/api/v1/persistentvolumes/used", {"metadata": {"finalizers": None}})
    ask(plane, "DELETE", "/api/v1/persistentvolumes/used")
    wait_for(lambda: find(plane, vsphere.cr) is None, "that its CR goes", SOON)
    for path in (f"{CLASSES}/thin-csi", f"{CSI_DRIVERS}/{name}", *vsphere.workloads):
        assert find(plane, path) is None
    assert find(plane, f"/api/v1/namespaces/{vsphere.driver.namespace}")
