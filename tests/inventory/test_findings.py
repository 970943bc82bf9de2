"""Each finding, on a cluster that has it and on one that almost has it."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import pytest

from replant.cluster.files import FileReader
from replant.gardener.shoots import OVERRIDE
from replant.inventory.build import Builder
from replant.inventory.checks.catalogue import TITLES
from replant.inventory.findings import Severity
from tests.inventory.clusters import (
    AWS,
    EBS,
    Object,
    attachment,
    claim_ref,
    controller,
    csi_node,
    driver,
    found,
    node,
    obj,
    pod,
    pv,
    pvc,
    scanned,
    storage_class,
)

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
GA_ZONE = "topology.kubernetes.io/zone"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
SECRET_NAME = "openstorage.io/auth-secret-name"  # noqa: S105
SECRET_NAMESPACE = "openstorage.io/auth-secret-namespace"  # noqa: S105
CLUSTER_ID = hashlib.md5(b"m1,m2").hexdigest()  # noqa: S324 - as the driver has it
PORTWORX = "kubernetes.io/portworx-volume"


def container(image: str) -> Object:
    return {"name": "c", "image": image}


def affinity(key: str, *values: str) -> Object:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def annotated(**annotations: str) -> Object:
    return {"annotations": annotations}


def px_class(**parameters: str) -> Object:
    return storage_class("px", PORTWORX, parameters=parameters)


def px(name: str = "px", **annotations: str) -> Object:
    return pv(
        name,
        metadata=annotated(**annotations),
        portworxVolume={"volumeID": "1"},
        storageClassName="px",
        claimRef=claim_ref(),
    )


def stateful_set(class_name: str | None) -> Object:
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": class_name}}
    return obj("StatefulSet", "db", "shop", spec={"volumeClaimTemplates": [template]})


def deployment(volume: Object) -> Object:
    return obj("Deployment", "web", "shop", spec={"template": {"spec": {"volumes": [volume]}}})


def features(feature_set: str, *enabled: str) -> Object:
    spec = {"featureSet": feature_set, "customNoUpgrade": {"enabled": list(enabled)}}
    return obj("FeatureGate", "cluster", spec=spec)


def shoot(version: str, *pools: str | None, provider: str = "aws", **metadata: Any) -> Object:
    workers = [{"name": "w", "kubernetes": {"version": it} if it else {}} for it in pools]
    spec = {
        "kubernetes": {"version": version},
        "provider": {"type": provider, "workers": workers},
    }
    return obj("Shoot", "crazy", "garden-dev", spec=spec, metadata=metadata)


def in_seed(embedded: Object | None, **metadata: Any) -> Object:
    return obj("Cluster", "shoot--dev--crazy", spec={"shoot": embedded}, metadata=metadata)


DEFAULT = annotated(**{"storageclass.kubernetes.io/is-default-class": "true"})
ON_NODE = [pv(claimRef=claim_ref()), pod(claim="data", nodeName="n1"), node()]
SECURED = {SECRET_NAME: "token", SECRET_NAMESPACE: "portworx"}
RBD = {"image": "a", "monitors": ["m1", "m2"]}
EXPANDING = pvc(
    spec={"volumeName": "db", "resources": {"requests": {"storage": "20Gi"}}},
    status={"capacity": {"storage": "10Gi"}},
)
EXPANDED = pvc(
    spec={"volumeName": "db", "resources": {"requests": {"storage": "10Gi"}}},
    status={"capacity": {"storage": "10Gi"}},
)
GROUPED = pod(claim="data", securityContext={"fsGroup": 1000})


class Case(NamedTuple):
    id: str
    severity: Severity
    has: list[Object]
    almost: list[Object]
    subject: str
    says: str
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


INFO, WARNING, BLOCKER = Severity.INFO, Severity.WARNING, Severity.BLOCKER

CASES = [
    Case("RP101", INFO, [pv()], [pv(csi={"driver": EBS})], "PersistentVolume db", "phase 1"),
    Case("RP101", WARNING, [pv()], [], "PersistentVolume db", "phase 0", {"server": "1.22.3"}),
    Case("RP101", BLOCKER, [pv(rbd=RBD)], [pv(nfs={})], "PersistentVolume db", "at 1.31 nobody",
         {"server": "1.30.1"}),
    Case("RP102", BLOCKER, [pv(glusterfs={"path": "a"})], [pv(nfs={"path": "a"})],
         "PersistentVolume db", "removed in Kubernetes 1.26"),
    Case("RP103", BLOCKER, [pv(azureDisk={"diskURI": "https://a/vhds/b", "kind": "Dedicated"})],
         [pv(azureDisk={"diskURI": "/x", "kind": "Managed"})], "PersistentVolume db", "unmanaged"),
    Case("RP104", BLOCKER, [pv(awsElasticBlockStore={"volumeID": "aws://z/nothing"})],
         [pv(awsElasticBlockStore={"volumeID": "aws://z/vol-1"})], "PersistentVolume db",
         "spec.awsElasticBlockStore.volumeID"),
    Case("RP105", BLOCKER, [pv(azureFile={"secretName": "s", "shareName": "a"})],
         [pv(azureFile={"secretName": "s", "shareName": "a"}, claimRef=claim_ref())],
         "PersistentVolume db", "namespace"),
    Case("RP106", BLOCKER, [pv(vsphereVolume={"volumePath": "disk.vmdk"})],
         [pv(vsphereVolume={"volumePath": "[ds] a/disk.vmdk"})], "PersistentVolume db",
         "disk.vmdk"),
    Case("RP107", WARNING, [pv(rbd=RBD)], [pv(cinder={"volumeID": "a"})], "PersistentVolume db",
         CLUSTER_ID),
    Case("RP108", WARNING, [pv(nodeAffinity=affinity(BETA_ZONE, "a"))],
         [pv(nodeAffinity=affinity(GA_ZONE, "a"))], "PersistentVolume db", BETA_ZONE),
    Case("RP108", INFO, [pv(metadata={"labels": {BETA_ZONE: "a"}})],
         [pv(metadata={"labels": {GA_ZONE: "a"}})], "PersistentVolume db", BETA_ZONE),
    Case("RP109", BLOCKER, [pv(nodeAffinity=affinity(GA_ZONE, "us-east-1b")), node()],
         [pv(nodeAffinity=affinity(GA_ZONE, "us-east-1a")), node()], "PersistentVolume db",
         "us-east-1b"),
    Case("RP110", WARNING, [pv(metadata=annotated(**{PROVISIONED_BY: "kubernetes.io/cinder"}))],
         [pv(metadata=annotated(**{PROVISIONED_BY: AWS, MIGRATED_TO: EBS}))],
         "PersistentVolume db", "kubernetes.io/cinder"),
    Case("RP110", WARNING, [pv(metadata=annotated(**{PROVISIONED_BY: AWS, MIGRATED_TO: "x"}))],
         [pv()], "PersistentVolume db", "its driver is"),
    Case("RP110", WARNING, [pv(metadata=annotated(**{PROVISIONED_BY: AWS}))], [pv()],
         "PersistentVolume db", "has no pv.kubernetes.io/migrated-to"),
    Case("RP110", WARNING, [pv(metadata=annotated(**{PROVISIONED_BY: AWS, MIGRATED_TO: EBS}))],
         [pv(metadata=annotated(**{PROVISIONED_BY: AWS}))], "PersistentVolume db",
         "controllers do not redirect", {"server": "1.22.1"}),
    Case("RP111", WARNING, [pv(persistentVolumeReclaimPolicy="Delete")],
         [pv(persistentVolumeReclaimPolicy="Retain")], "PersistentVolume db",
         f"only {AWS} deletes its disk"),
    Case("RP111", WARNING,
         [pv(persistentVolumeReclaimPolicy="Delete"), controller("InTreePluginAWSUnregister=true")],
         [pv(persistentVolumeReclaimPolicy="Delete",
             metadata=annotated(**{PROVISIONED_BY: AWS, MIGRATED_TO: EBS}))],
         "PersistentVolume db", "nobody deletes its disk"),
    Case("RP111", INFO, [pv(persistentVolumeReclaimPolicy="Delete")],
         [pv(persistentVolumeReclaimPolicy="Delete", nfs={})], "PersistentVolume db",
         "once that is off or gone", {"server": "1.20.1"}),
    Case("RP112", WARNING, [pv(metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"})], [pv()],
         "PersistentVolume db", "being deleted"),
    Case("RP113", WARNING, [pv(), EXPANDING], [pv(), EXPANDED], "PersistentVolumeClaim shop/data",
         "being expanded"),
    Case("RP114", WARNING,
         [pv(cinder={"volumeID": "a"}, claimRef=claim_ref()), GROUPED],
         [pv(claimRef=claim_ref()), GROUPED], "PersistentVolume db", "fsGroup"),
    Case("RP115", INFO, [pv()], [pv(csi={"driver": EBS})], "PersistentVolume db", "snapshots"),
    Case("RP116", WARNING,
         [pv(), pod("reclaimer", containers=[container("quay.io/x/csi-reclaim-controller:v1")])],
         [pv(), pod("reclaimer", containers=[container("quay.io/x/my-csi-reclaim-controller:v1")])],
         "Pod shop/reclaimer", "csi-reclaim-controller"),
    Case("RP201", WARNING, [storage_class(metadata=DEFAULT)], [storage_class("gp3", EBS)],
         "StorageClass gp2", "the default class"),
    Case("RP202", WARNING,
         [storage_class("a", metadata=DEFAULT), storage_class("b", metadata=DEFAULT)],
         [storage_class("a", metadata=DEFAULT), storage_class("b")], "StorageClass a", "a, b"),
    Case("RP203", INFO, [storage_class(), storage_class("gp3", EBS)],
         [storage_class(), storage_class("pd", "pd.csi.storage.gke.io")], "StorageClass gp2",
         "gp3"),
    Case("RP204", WARNING, [stateful_set(None), storage_class(metadata=DEFAULT)],
         [stateful_set(None), storage_class()], "StatefulSet shop/db", "gp2"),
    Case("RP204", WARNING, [stateful_set("gp2"), storage_class()],
         [stateful_set("gp3"), storage_class(), storage_class("gp3", EBS)],
         "StatefulSet shop/db", "gp2"),
    Case("RP205", BLOCKER, [storage_class("g", "kubernetes.io/glusterfs")],
         [storage_class("l", "kubernetes.io/no-provisioner")], "StorageClass g", "1.26"),
    Case("RP206", WARNING,
         [storage_class("v", "kubernetes.io/vsphere-volume", parameters={"odd": "1"})],
         [storage_class("v", "kubernetes.io/vsphere-volume", parameters={"DiskFormat": "thin"})],
         "StorageClass v", "odd"),
    Case("RP207", BLOCKER,
         [storage_class(parameters={"zone": "a"},
                        allowedTopologies=[{"matchLabelExpressions": []}])],
         [storage_class(parameters={"zone": "a"})], "StorageClass gp2", "allowedTopologies"),
    Case("RP301", WARNING, [deployment({"name": "data", "cinder": {"volumeID": "a"}})],
         [deployment({"name": "data", "emptyDir": {}})], "Deployment shop/web", "data"),
    Case("RP302", BLOCKER, [deployment({"name": "data", "cephfs": {"monitors": []}})],
         [deployment({"name": "data", "nfs": {}})], "Deployment shop/web", "1.31"),
    Case("RP303", BLOCKER, [deployment({"name": "data", "cinder": {}})],
         [deployment({"name": "data", "cinder": {"volumeID": "a"}})], "Deployment shop/web",
         "cinder.volumeID"),
    Case("RP401", BLOCKER, [pv()], [pv(), driver()], f"CSIDriver {EBS}", "not installed"),
    Case("RP401", WARNING, [pv(portworxVolume={"volumeID": "1"})], [pv(nfs={})],
         "CSIDriver pxd.portworx.com", "not installed"),
    Case("RP402", BLOCKER, [*ON_NODE, driver(), csi_node("n1")],
         [*ON_NODE, driver(), csi_node("n1", EBS)], "Node n1", "not registered"),
    Case("RP403", BLOCKER, [*ON_NODE, csi_node("n1", migrated=f"{AWS},kubernetes.io/gce-pd")],
         [*ON_NODE, csi_node("n1", EBS, migrated=f"{AWS},kubernetes.io/gce-pd")], "Node n1", EBS),
    Case("RP403", WARNING, [pv(), csi_node("n1", migrated=AWS)],
         [pv(nfs={}), csi_node("n1", migrated=AWS)], "Node n1", EBS),
    Case("RP404", BLOCKER,
         [pv(), csi_node("n1", EBS, migrated=AWS), controller("CSIMigrationAWS=false")],
         [pv(), csi_node("n1", EBS, migrated=AWS), controller("CSIMigrationAWS=true")],
         "Node n1", "never start"),
    Case("RP405", WARNING, [pv()], [pv(nfs={})], f"Plugin {AWS}", "six minutes later",
         {"server": "1.24.11"}),
    Case("RP406", BLOCKER, [pv(cinder={"volumeID": "a"})], [pv()], "Plugin kubernetes.io/cinder",
         "while pods use it", {"server": "1.21.1"}),
    Case("RP501", WARNING, [attachment(), node()], [pv(), attachment(), node()],
         "VolumeAttachment csi-1", "volume db"),
    Case("RP501", WARNING, [pv(), attachment()], [pv(), attachment(), node()],
         "VolumeAttachment csi-1", "node n1"),
    Case("RP502", WARNING,
         [attachment(status={"attached": False, "attachError": {"message": "no such disk"}})],
         [attachment()], "VolumeAttachment csi-1", "no such disk"),
    Case("RP502", WARNING, [attachment(metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"})],
         [attachment()], "VolumeAttachment csi-1", "detached"),
    Case("RP503", BLOCKER, [pv(), attachment(), node(), csi_node("n1", EBS)],
         [pv(), attachment(), node(), csi_node("n1", EBS, migrated=AWS)],
         "VolumeAttachment csi-1", "no longer redirects"),
    Case("RP503", BLOCKER,
         [pv(), attachment(), node(), csi_node("n1", EBS, migrated="kubernetes.io/cinder")],
         [pv(), attachment(), node(), csi_node("n1", EBS, migrated=f"kubernetes.io/cinder,{AWS}")],
         "VolumeAttachment csi-1", "no longer redirects"),
    Case("RP503", BLOCKER,
         [pv(), attachment(), node(), csi_node("n1", EBS, migrated=AWS),
          controller("CSIMigrationAWS=false")],
         [pv(), attachment(), node(), csi_node("n1", EBS, migrated=AWS)],
         "VolumeAttachment csi-1", "controllers do not redirect"),
    Case("RP503", BLOCKER,
         [pv(), node(attached=[f"{AWS}/aws://us-east-1a/vol-1"]),
          csi_node("n1", EBS, migrated=AWS)],
         [pv(), node(attached=[f"kubernetes.io/csi/{EBS}^vol-1"]),
          csi_node("n1", EBS, migrated=AWS)], "Node n1", "at its next restart"),
    Case("RP601", BLOCKER, [pv(rbd=RBD)], [pv(nfs={})], "Plugin kubernetes.io/rbd",
         "stop working", {"target": "1.31"}),
    Case("RP601", BLOCKER, [pv()], [pv(nfs={})], f"Plugin {AWS}", "gone since 1.27",
         {"target": "1.31"}),
    Case("RP601", INFO, [pv(), driver()], [], f"Plugin {AWS}", "gone since 1.27",
         {"target": "1.31"}),
    Case("RP601", WARNING, [pv(), driver()], [], f"Plugin {AWS}", "CSI",
         {"target": "1.24", "server": "1.22.1"}),
    Case("RP602", WARNING, [features("CSIMigrationNode")], [features("")], "FeatureGate cluster",
         "since the release before 1.28", {"server": "1.28.2"}),
    Case("RP602", INFO, [features("CSIMigrationControlPlane")], [features("OKD")],
         "FeatureGate cluster", "does nothing at 1.27", {"server": "1.27.2"}),
    Case("RP602", WARNING, [features("CustomNoUpgrade", "Mine", "CSIMigrationAWS")],
         [features("CustomNoUpgrade", "Mine", "CSIMigrationvSphere")], "FeatureGate cluster",
         "It lists CSIMigrationAWS, which Kubernetes 1.27", {"server": "1.27.2"}),
    Case("RP701", BLOCKER, [px(), px_class(**SECURED)], [px(**SECURED), px_class(**SECURED)],
         "PersistentVolume px", SECRET_NAME),
    Case("RP702", BLOCKER,
         [px(), px_class(**SECURED), pod(claim="data", status={"containerStatuses": [
             {"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]})],
         [px(), px_class(**SECURED), pod(claim="data", status={"containerStatuses": [
             {"name": "c", "state": {"running": {}}}]})], "Pod shop/web-0", "ContainerCreating"),
    Case("RP801", WARNING, [shoot("1.17.9", "1.17.3")], [shoot("1.17.9", None)],
         "Shoot garden-dev/crazy",
         "spec.provider.workers[0].kubernetes.version: Forbidden: 1.17.3 is below 1.18"),
    Case("RP801", BLOCKER, [shoot("1.18.2", "1.18.0", "1.17.3")], [shoot("1.18.2", "1.18.0")],
         "Shoot garden-dev/crazy",
         "spec.provider.workers[1].kubernetes.version: Forbidden: 1.17.3 is below 1.18"),
    Case("RP801", BLOCKER, [shoot("1.20.2", "old")], [shoot("1.20.2", "v1.19.3")],
         "Shoot garden-dev/crazy", "spec.provider.workers[0].kubernetes.version: Invalid: 'old'"),
    Case("RP801", BLOCKER, [in_seed(shoot("1.18.2", "1.17.3"))],
         [in_seed(shoot("1.18.2", "1.17.3", provider="other"))],
         "Cluster shoot--dev--crazy", "Forbidden: 1.17.3 is below 1.18"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}-{case.severity}")
def test_the_cluster_that_has_it(case: Case) -> None:
    findings = found(scanned(*case.has, **case.options), case.id)
    matching = [it for it in findings if str(it.object) == case.subject and case.says in it.reason]
    assert [it.severity for it in matching] == [case.severity], findings


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}-{case.severity}")
def test_the_cluster_that_almost_has_it(case: Case) -> None:
    findings = found(scanned(*case.almost, **case.options), case.id)
    assert not [it for it in findings if case.says in it.reason and it.severity == case.severity]


def test_every_finding_of_the_cluster_has_a_case() -> None:
    about_reading = {"RP001", "RP002", "RP003"}
    assert {case.id for case in CASES} == set(TITLES) - about_reading


@pytest.mark.parametrize(
    ("server", "severities"),
    [("1.24.17", []), ("1.26.9", []), ("1.27.0", [INFO]), ("1.28.0", [WARNING])],
)
def test_a_feature_set_is_left_until_all_of_its_gates_are_on_for_good(
    server: str, severities: list[Severity]
) -> None:
    result = scanned(features("CSIMigrationNode"), server=server)
    assert [it.severity for it in found(result, "RP602")] == severities


def test_nobody_misses_the_feature_gate_of_a_cluster_that_is_not_openshift() -> None:
    reader = FileReader(Builder(), problem=print, note=print)
    assert "CSINode" in reader.unknown()
    assert "FeatureGate" not in reader.unknown()


def test_portworx_without_security_needs_no_annotations() -> None:
    assert found(scanned(px(), px_class(repl="3")), "RP701") == []


def test_the_patch_names_the_secret_that_the_class_names() -> None:
    parameters = {SECRET_NAME: "token", SECRET_NAMESPACE: "${pvc.namespace}"}
    (finding,) = found(scanned(px(), px_class(**parameters)), "RP701")
    assert finding.fix == (
        "kubectl annotate pv px --overwrite openstorage.io/auth-secret-name=token "
        "openstorage.io/auth-secret-namespace=shop"
    )


def test_a_shoot_and_its_copy_in_a_seed_are_one() -> None:
    bad = shoot("1.18.2", "1.17.3")
    [finding] = found(scanned(bad, in_seed(bad)), "RP801")
    assert str(finding.object) == "Shoot garden-dev/crazy"
    assert finding.fix == (
        "kubectl -n garden-dev edit shoot crazy in the garden cluster, and remove "
        "spec.provider.workers[0].kubernetes.version: the pool then has the control plane's "
        "version."
    )


@pytest.mark.parametrize(
    "objects",
    [
        [shoot("1.18.2", "1.17.3", annotations={OVERRIDE: "1.17"})],
        [shoot("1.18.2", "1.17.3", deletionTimestamp="now")],
        [in_seed(shoot("1.18.2", "1.17.3"), deletionTimestamp="now")],
        [in_seed(None)],
        [in_seed({"spec": {"provider": "aws"}})],
        [obj("Shoot", "bare")],
        [{**in_seed(shoot("1.18.2", "1.17.3")), "apiVersion": "cluster.x-k8s.io/v1beta1"}],
    ],
)
def test_shoots_of_which_nothing_is_to_be_said(objects: list[Object]) -> None:
    assert found(scanned(*objects), "RP801") == []


def test_shoots_of_one_namespace() -> None:
    bad = shoot("1.18.2", "1.17.3")
    elsewhere = {**bad, "metadata": {"name": "x", "namespace": "y"}}
    for objects, namespace, named in (
        ([bad, elsewhere], "garden-dev", ["Shoot garden-dev/crazy"]),
        ([in_seed(bad)], "shoot--dev--crazy", ["Cluster shoot--dev--crazy"]),
        ([in_seed(bad)], "garden-dev", []),
    ):
        result = scanned(*objects, namespace=namespace)
        assert [str(it.object) for it in found(result, "RP801")] == named


def test_where_there_is_no_gardener_nothing_is_missing() -> None:
    builder = Builder()
    reader = FileReader(builder, problem=print, note=print)
    assert {"Shoot", "Cluster"} & reader.unknown().keys() == set()


def test_a_managed_control_plane_is_judged_by_its_nodes() -> None:
    objects = [pv(), csi_node("n1", EBS, migrated=AWS), driver()]
    assert found(scanned(*objects, server="1.22.1"), "RP404") == []
    (finding,) = found(scanned(*objects, server="1.22.1"), "RP101")
    assert finding.severity is Severity.INFO


def test_names_in_commands_cannot_run_anything() -> None:
    evil = pv("$(reboot)", metadata={"deletionTimestamp": "now"})
    (finding,) = found(scanned(evil), "RP112")
    assert "'$(reboot)'" in finding.fix


def test_pods_whose_owner_is_not_there_are_reported_themselves() -> None:
    volume = {"name": "data", "cinder": {"volumeID": "a"}}
    owner = {"kind": "Special", "name": "web", "controller": True}
    owned = pod(metadata={"ownerReferences": [owner]}, volumes=[volume])
    (finding,) = found(scanned(owned), "RP301")
    assert str(finding.object) == "Pod shop/web-0"


def test_a_driver_that_always_sets_the_group_is_fine() -> None:
    sets = obj("CSIDriver", "cinder.csi.openstack.org", spec={"fsGroupPolicy": "File"})
    volume = pv(cinder={"volumeID": "a"}, claimRef=claim_ref())
    assert found(scanned(volume, GROUPED, sets), "RP114") == []


def test_beta_keys_are_not_taken_for_the_drivers() -> None:
    disk = {"diskURI": "/subscriptions/a/x", "kind": "Managed"}
    volume = pv(azureDisk=disk, nodeAffinity=affinity(BETA_ZONE, "us-east-1a"))
    assert found(scanned(volume, node()), "RP109")


def test_a_container_that_crashes_does_not_wait_for_a_token() -> None:
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    crashing = pod(claim="data", status={"containerStatuses": [{"name": "c", "state": state}]})
    assert found(scanned(px(), px_class(**SECURED), crashing), "RP702") == []


def test_owned_pods_are_not_reported_beside_their_template() -> None:
    volume = {"name": "data", "cinder": {"volumeID": "a"}}
    owner = {"kind": "ReplicaSet", "name": "web-5d4f8c7b9", "controller": True}
    owned = pod(metadata={"ownerReferences": [owner]}, volumes=[volume])
    findings = found(scanned(deployment(volume), owned), "RP301")
    assert [str(it.object) for it in findings] == ["Deployment shop/web"]
    assert found(scanned(pod(volumes=[volume])), "RP301")


def test_a_template_whose_owner_is_not_there_is_reported() -> None:
    template = deployment({"name": "data", "cinder": {"volumeID": "a"}})
    template["metadata"]["ownerReferences"] = [{"kind": "Kafka", "name": "k", "controller": True}]
    assert found(scanned(template), "RP301")


def test_pods_that_are_finished_use_nothing() -> None:
    done = pod(claim="data", nodeName="n1", status={"phase": "Succeeded"})
    objects = [pv(claimRef=claim_ref()), done, node(), driver(), csi_node("n1")]
    assert found(scanned(*objects), "RP402") == []


def test_ephemeral_claims_are_used_by_their_pod() -> None:
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}
    user = pod(nodeName="n1", volumes=[volume])
    bound = pv(claimRef=claim_ref("web-0-data"))
    assert found(scanned(bound, user, node(), driver(), csi_node("n1")), "RP402")


def test_an_external_provisioner_keeps_its_volumes() -> None:
    external = pv(rbd=RBD, metadata=annotated(**{PROVISIONED_BY: "ceph.com/rbd"}))
    assert found(scanned(external), "RP110") == []


def test_texts_agree_with_what_the_nodes_of_a_managed_control_plane_say() -> None:
    objects = [pv(), csi_node("n1", EBS, migrated=AWS)]
    result = scanned(*objects, server="1.21.5", target="1.22")
    assert "phase 1" in found(result, "RP101")[0].reason
    assert "in-tree elsewhere" in found(result, "RP601")[0].reason


def test_plugins_without_a_driver_are_counted_too() -> None:
    result = scanned(pv(glusterfs={"path": "a"}, capacity={"storage": "1Gi"}))
    assert result.plugins["kubernetes.io/glusterfs"].bytes == 2**30


ODD: list[Any] = [
    {"values": 5}, {"values": [1]}, {"values": [None]}, {"key": ["k"]}, {"key": None},
]  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [
        *({"required": {"nodeSelectorTerms": [{"matchExpressions": [it]}]}} for it in ODD),
        *(
            {"required": {"nodeSelectorTerms": [{"matchExpressions": it}]}}
            for it in (["s"], "s", 5)
        ),
        {"required": {"nodeSelectorTerms": ["a"]}},
        {"required": {"nodeSelectorTerms": 5}},
        {"required": 5},
        "s",
        [1],
    ],
)
def test_an_affinity_that_is_none_ends_no_scan(odd: Any) -> None:
    disk = {"diskURI": "/subscriptions/a/x", "kind": "Managed"}
    assert scanned(pv(azureDisk=disk, nodeAffinity=odd), node()).findings
