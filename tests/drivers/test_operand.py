"""What each driver consists of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replant.drivers.catalog import DRIVERS, Driver
from replant.drivers.credentials import CREDENTIALS
from replant.drivers.kinds import KINDS, key_of
from replant.drivers.naming import names_of
from replant.drivers.operand import Facts, Part, Split, operand, part_in
from replant.drivers.programs import PROGRAMS
from replant.drivers.sameness import covers, is_as_wanted, marked
from replant.drivers.settings import Settings
from replant.drivers.values import IMAGES, Values
from replant.objects import Object
from tests.drivers.world import EBS, INSTALLED, MANILA, VSPHERE, shipped

each = pytest.mark.parametrize("driver", INSTALLED, ids=lambda it: it.backend)


def facts(driver: Driver, **given: Any) -> Facts:
    given = {"credentials": "c1", "snapshots": True, **given}
    split = given.get("split")
    return Facts(names_of(driver, None, {}, split.namespace if split else ""), **given)


def made(driver: Driver, settings: Settings | None = None, **given: Any) -> list[Object]:
    return list(operand(driver, settings or Settings(), shipped(), facts(driver, **given)))


def only(objects: list[Object], kind: str) -> Object:
    (found,) = (it for it in objects if it["kind"] == kind)
    return found


def pods(objects: list[Object], kind: str) -> Object:
    spec: Object = only(objects, kind)["spec"]["template"]["spec"]
    return spec


def containers(objects: list[Object], kind: str) -> dict[str, Object]:
    return {it["name"]: it for it in pods(objects, kind)["containers"]}


@each
def test_what_the_facts_ask_for(driver: Driver) -> None:
    objects = made(driver)
    controller, node = containers(objects, "Deployment"), containers(objects, "DaemonSet")
    wanted = {"csi-driver", "csi-provisioner", "csi-resizer", "csi-snapshotter"}
    wanted |= {"csi-liveness-probe"} | ({"csi-attacher"} if driver.attach else set())
    assert set(controller) - {"vsphere-syncer"} == wanted
    assert set(node) - {"csi-driver-nfs"} == {
        "csi-driver", "csi-node-driver-registrar", "csi-liveness-probe",
    }  # fmt: skip
    assert only(objects, "CSIDriver")["spec"] == {
        "attachRequired": driver.attach,
        "podInfoOnMount": driver.pod_info,
        "fsGroupPolicy": driver.fs_group,
    }
    daemons = only(objects, "DaemonSet")["spec"]
    assert daemons["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert daemons["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "10%"}
    assert only(objects, "Deployment")["spec"]["replicas"] == 2
    assert only(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert only(objects, "VolumeSnapshotClass")["driver"] == driver.name
    kinds = [it["kind"] for it in objects]
    assert kinds.index("CSIDriver") < kinds.index("ServiceAccount") < kinds.index("Deployment")


@each
def test_every_object_is_one_of_a_kind_and_has_its_place(driver: Driver) -> None:
    objects = made(driver, asks=True, openshift=True)
    assert len({key_of(it) for it in objects}) == len(objects)
    for it in objects:
        kind = KINDS[it["kind"]]
        assert it["apiVersion"] == kind.api_version
        assert ("namespace" in it["metadata"]) == kind.namespaced
    bound = [it for it in objects if it["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    roles = {(it["kind"], it["metadata"]["name"]) for it in objects}
    accounts = {it["metadata"]["name"] for it in objects if it["kind"] == "ServiceAccount"}
    assert all((it["roleRef"]["kind"], it["roleRef"]["name"]) in roles for it in bound)
    assert {it["subjects"][0]["name"] for it in bound} == accounts
    assert pods(objects, "Deployment")["serviceAccountName"] in accounts
    assert pods(objects, "DaemonSet")["serviceAccountName"] in accounts


@each
def test_pods_mount_only_what_they_have(driver: Driver) -> None:
    split = Split("shoot--x", "kubeconfig")
    for objects in (made(driver), made(driver, credentials=""), made(driver, split=split)):
        for kind in ("Deployment", "DaemonSet"):
            spec = pods(objects, kind)
            volumes = {it["name"] for it in spec["volumes"]}
            mounted = {m["name"] for it in spec["containers"] for m in it["volumeMounts"]}
            assert mounted <= volumes
            assert volumes <= mounted
            paths = [[m["mountPath"] for m in it["volumeMounts"]] for it in spec["containers"]]
            assert all(len(set(it)) == len(it) for it in paths)


@each
def test_selectors_find_the_pods(driver: Driver) -> None:
    for it in made(driver):
        if it["kind"] in ("Deployment", "DaemonSet"):
            labels = it["spec"]["template"]["metadata"]["labels"]
            assert it["spec"]["selector"]["matchLabels"].items() <= labels.items()
    budget = only(made(driver), "PodDisruptionBudget")["spec"]["selector"]
    assert budget == only(made(driver), "Deployment")["spec"]["selector"]


@each
def test_the_log_level_reaches_every_container(driver: Driver) -> None:
    for kind in ("Deployment", "DaemonSet"):
        for name, it in containers(made(driver, Settings(verbosity=6)), kind).items():
            if driver is VSPHERE and name in ("csi-driver", "vsphere-syncer"):
                levels = [var["value"] for var in it["env"] if var["name"] == "LOGGER_LEVEL"]
                assert levels == ["DEVELOPMENT"]
            else:
                assert "--v=6" in it["args"]


@each
def test_the_registrar_says_where_the_socket_is(driver: Driver) -> None:
    objects = made(driver)
    path = f"/var/lib/kubelet/plugins/{driver.name}"
    registrar = containers(objects, "DaemonSet")["csi-node-driver-registrar"]
    assert f"--kubelet-registration-path={path}/csi.sock" in registrar["args"]
    volumes = {it["name"]: it for it in pods(objects, "DaemonSet")["volumes"]}
    assert volumes["socket-dir"]["hostPath"]["path"] == path


def test_drivers_do_not_take_each_others_port_on_a_node() -> None:
    ports = []
    for driver in INSTALLED:
        containers_ = containers(made(driver), "DaemonSet")
        (port,) = (it["containerPort"] for it in containers_["csi-driver"]["ports"])
        assert f"--health-port={port}" in containers_["csi-liveness-probe"]["args"]
        ports.append(port)
    assert len(set(ports)) == len(ports)


def test_every_image_of_the_values_is_used_and_no_other() -> None:
    values = Values({it: f"registry.example/{it}:v1" for it in IMAGES}, "mirror.example")
    used = set()
    for driver in INSTALLED:
        for it in operand(driver, Settings(), values, facts(driver)):
            if it["kind"] in ("Deployment", "DaemonSet"):
                used |= {c["image"] for c in it["spec"]["template"]["spec"]["containers"]}
    assert used == {f"mirror.example/{it}:v1" for it in IMAGES}


@each
def test_without_snapshots_nothing_watches_for_them(driver: Driver) -> None:
    objects = made(driver, snapshots=False)
    assert not [it for it in objects if it["kind"] == "VolumeSnapshotClass"]
    assert "csi-snapshotter" not in containers(objects, "Deployment")
    assert not [it for it in objects if "snapshotter" in it["metadata"]["name"]]


def test_one_node_alone_has_one_controller_and_no_budget() -> None:
    objects = made(EBS, replicas=1)
    assert only(objects, "Deployment")["spec"]["replicas"] == 1
    assert not [it for it in objects if it["kind"] == "PodDisruptionBudget"]


@each
def test_changed_credentials_change_the_pods(driver: Driver) -> None:
    for kind in ("Deployment", "DaemonSet"):
        one, two = (only(made(driver, credentials=it), kind) for it in ("c1", "c2"))
        template = one["spec"]["template"]
        if driver.secret not in str(template["spec"]):
            assert one == two  # a thousand nodes need not start it anew for nothing
            continue
        assert template != two["spec"]["template"]
        assert template["metadata"]["annotations"] == {CREDENTIALS: "c1"}


def test_whose_pods_have_credentials() -> None:
    having = {
        driver.backend: [
            kind
            for kind in ("Deployment", "DaemonSet")
            if CREDENTIALS in str(only(made(driver), kind)["spec"]["template"]["metadata"])
        ]
        for driver in INSTALLED
    }
    both, controller = ["Deployment", "DaemonSet"], ["Deployment"]
    assert having == {
        "aws-ebs": controller, "gcp-pd": controller, "openstack-cinder": both, "manila": [],
        "azure-disk": both, "azure-file": both, "vmware-vsphere": controller,
    }  # fmt: skip


@each
def test_rights_of_the_machine_need_no_secret(driver: Driver) -> None:
    for kind in ("Deployment", "DaemonSet"):
        template = only(made(driver, credentials=""), kind)["spec"]["template"]
        assert "annotations" not in template["metadata"]
        assert driver.secret not in str(template)


def test_the_region_is_told_where_it_is_known() -> None:
    for region, told in (("eu-west-1", ["eu-west-1"]), ("", [])):
        driver = containers(made(EBS, region=region), "Deployment")["csi-driver"]
        assert [it["value"] for it in driver["env"] if it["name"] == "AWS_REGION"] == told


def test_openshift_lets_pods_be_privileged_by_a_role_of_its_own() -> None:
    for openshift in (True, False):
        roles = [
            it for it in made(EBS, openshift=openshift) if "privileged" in str(it.get("rules"))
        ]
        assert len(roles) == openshift


def test_manila_has_its_secret_told_with_every_request() -> None:
    assert only(made(MANILA), "VolumeSnapshotClass")["parameters"] == {
        "csi.storage.k8s.io/snapshotter-secret-name": "manila-cloud-credentials",
        "csi.storage.k8s.io/snapshotter-secret-namespace": "openshift-manila-csi-driver",
    }
    assert "cloud-credentials" not in str(pods(made(MANILA), "Deployment")["volumes"])


@each
def test_sidecars_do_not_give_up_on_a_slow_cloud(driver: Driver) -> None:
    found = containers(made(driver), "Deployment")
    for name in ("csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"):
        assert name not in found or "--timeout=300s" in found[name]["args"]
    flags = found["csi-provisioner"]["args"]
    assert ("--default-fstype=ext4" in flags) == driver.attach
    assert ("--extra-create-metadata" in flags) == (driver.cloud in ("AWS", "GCP", "Azure"))


def test_pd_finds_disks_as_udev_calls_them() -> None:
    driver = containers(made(DRIVERS["pd.csi.storage.gke.io"]), "DaemonSet")["csi-driver"]
    paths = {it["mountPath"] for it in driver["volumeMounts"]}
    assert paths >= {"/dev", "/sys", "/etc/udev", "/lib/udev", "/run/udev"}


def test_each_half_of_manila_serves_its_own() -> None:
    for kind, other in (("Deployment", "node"), ("DaemonSet", "controller")):
        driver = containers(made(MANILA), kind)["csi-driver"]
        assert [it for it in driver["args"] if "provide" in it] == [
            f"--provide-{other}-service=false"
        ]


def test_ebs_knows_its_node_and_may_find_its_rights_elsewhere() -> None:
    env = {it["name"]: it for it in containers(made(EBS), "Deployment")["csi-driver"]["env"]}
    assert env["CSI_NODE_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert env["AWS_ACCESS_KEY_ID"]["valueFrom"]["secretKeyRef"]["optional"] is True


@each
def test_what_registers_may_do_so_with_selinux(driver: Driver) -> None:
    registrar = containers(made(driver), "DaemonSet")["csi-node-driver-registrar"]
    assert registrar["securityContext"] == {"privileged": True}


@each
def test_gardeners_split(driver: Driver) -> None:
    split = Split("shoot--x", "shoot-access")
    parts: dict[Part, list[Object]] = {it: [] for it in Part}
    for it in made(driver, split=split):
        place = it["metadata"].get("namespace", "")
        parts[part_in(it["kind"], place, split)].append(it)
    seed, shoot = parts[Part.CONTROLLER], parts[Part.NODE]
    assert {it["kind"] for it in seed} - {"ConfigMap"} == {"Deployment", "PodDisruptionBudget"}
    assert {it["metadata"]["namespace"] for it in seed} == {"shoot--x"}
    assert {it["metadata"].get("namespace", driver.namespace) for it in shoot} == {driver.namespace}
    spec = pods(seed, "Deployment")
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    for name, it in containers(seed, "Deployment").items():
        if name in ("csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"):
            assert "--kubeconfig=/var/run/nodes-cluster/kubeconfig" in it["args"]
            assert f"--leader-election-namespace={driver.namespace}" in it["args"]
        if name != "csi-liveness-probe":
            assert "/var/run/nodes-cluster/kubeconfig" in str(it.get("env")) + str(it["args"])
            assert "nodes-cluster" in [mount["name"] for mount in it["volumeMounts"]]
    assert "shoot-access" not in str(pods(shoot, "DaemonSet"))
    assert "shoot--x" not in str(shoot)
    # What pods mount is on their side.
    for side, kind in ((seed, "Deployment"), (shoot, "DaemonSet")):
        there = {it["metadata"]["name"] for it in side if it["kind"] == "ConfigMap"}
        volumes = pods(side, kind)["volumes"]
        assert {it["configMap"]["name"] for it in volumes if "configMap" in it} <= there


def test_every_driver_that_is_installed_here_says_what_its_secret_holds() -> None:
    assert set(PROGRAMS) == {it.name for it in INSTALLED}
    assert all(it.secret_keys for it in PROGRAMS.values())
    assert DRIVERS.keys() - PROGRAMS.keys() == {"pxd.portworx.com"}


# Whether an object is as it is wanted

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda it: st.lists(it, max_size=3) | st.dictionaries(st.text(max_size=3), it, max_size=3),
    max_leaves=10,
)


@given(json)
def test_everything_covers_itself(value: object) -> None:
    assert covers(value, value)


@each
def test_what_the_api_adds_is_no_drift(driver: Driver) -> None:
    for it in made(driver):
        wanted = marked(it)
        found = _defaulted(wanted)
        assert found != wanted
        assert is_as_wanted(found, wanted)


def _defaulted(value: Any) -> Any:
    """The value with fields in every object that nobody has asked for."""
    if isinstance(value, dict):
        return {key: _defaulted(it) for key, it in value.items()} | {"added": "by the API"}
    if isinstance(value, list):
        return [_defaulted(it) for it in value]
    return value


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ({}, {"a": False, "b": "", "c": {}, "d": [], "e": 0}, True),
        ({"a": True}, {"a": False}, False),
        ({"args": ["x", "y"]}, {"args": ["x"]}, False),
        ({"args": ["y", "x"]}, {"args": ["x", "y"]}, False),
        ({"containers": [{"name": "b"}, {"name": "a"}]}, {"containers": [{"name": "a"}]}, True),
        ({"containers": [{"name": "b"}]}, {"containers": [{"name": "a"}]}, False),
        (
            {
                "volumeMounts": [
                    {"mountPath": "/ca", "name": "x"},
                    {"mountPath": "/csi", "name": "s"},
                ]
            },
            {"volumeMounts": [{"mountPath": "/csi", "name": "s"}]},
            True,
        ),
        ({"volumeMounts": [{"mountPath": "/x"}]}, {"volumeMounts": [{"mountPath": "/y"}]}, False),
        ({"subjects": [{"name": "a"}, {"name": "b"}]}, {"subjects": [{"name": "a"}]}, False),
        ({"rules": [{"verbs": ["*"]}]}, {"rules": [{"verbs": ["get"]}]}, False),
        (None, {"a": {"b": 1}}, False),
    ],
)
def test_what_is_drift(found: object, wanted: object, same: bool) -> None:
    assert covers(found, wanted) is same
