"""Objects of built-in kinds that no API server takes, and changes that none makes.

Each request names what is wrong with it as its field manager: the record can be read by that.
Where messages show values in Go, or are told in any order, only what clients decide by is compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.sandbox.conformance import (
    BUDGETS,
    CLASSES,
    CMS,
    DEPLOYMENTS,
    MERGE,
    PODS,
    PVCS,
    PVS,
    Ask,
    Json,
    Story,
    claim,
    config_map,
    deployment,
    pod,
    volume,
)

_ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
_CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
_CSI_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
_SECRETS = "/api/v1/namespaces/NS/secrets"
_APPS = "/apis/apps/v1/namespaces/NS"
_BATCH = "/apis/batch/v1/namespaces/NS"


def _created(path: str, objects: dict[str, Json], compare: str = "all") -> Iterator[Ask]:
    """Attempts to create each, of which nothing may stay."""
    for what, obj in objects.items():
        yield Ask("POST", f"{path}?dryRun=All&fieldManager={what}", obj, compare=compare)


def _claim(**spec: Json) -> Json:
    good = claim("c")
    return {**good, "spec": {**good["spec"], **spec}}


def _asking(storage: Json) -> Json:
    return _claim(resources={"requests": {"storage": storage}})


def _of_source(source: str, said: Json = None, **spec: Json) -> Json:
    """A volume of another source than CSI."""
    made = volume("story-w", **{source: said or {}}, **spec)
    del made["spec"]["csi"]
    return made


_AFFINITY = "nodeSelectorTerms"
_CLAIMS = {
    "storage-negative": _asking("-1"),
    "storage-negative-in-gi": _asking("-5Gi"),
    "storage-none": _asking("0"),
    "storage-none-as-a-number": _asking(0),
    "storage-unsaid": _claim(resources={}),
    "modes-unsaid": _claim(accessModes=[]),
    "class-called-badly": _claim(storageClassName="Bad_Name"),
    "volume-mode": _claim(volumeMode="Foo"),
}
_GOOD_CLAIMS = {
    "taken": _asking("1.5Gi"),
    "taken-as-a-number": _asking(1000),
    "taken-in-scientific": _asking("1e3"),
    "taken-in-thousandths": _asking("1500m"),
}
"""Real servers write some of these in another way."""
_CLAIMS_IN_WORDS = {
    "storage-in-letters": _asking("x"),
    "storage-lots": _asking("lots"),
    "storage-empty": _asking(""),
    "storage-in-odd-units": _asking("1GiB"),
    "storage-true": _asking(True),
    "modes": _claim(accessModes=["Foo"]),
    "modes-of-which-one": _claim(accessModes=["ReadWriteOnce", "Foo"]),
    "all-wrong": _claim(accessModes=["Foo"], volumeMode="Bar", storageClassName="_", resources={}),
}
_VOLUMES = {
    "capacity-negative": volume("story-w", capacity={"storage": "-1"}),
    "capacity-none": volume("story-w", capacity={"storage": "0"}),
    "modes-unsaid": volume("story-w", accessModes=[]),
    "volume-mode": volume("story-w", volumeMode="Foo"),
    "reclaim-policy": volume("story-w", persistentVolumeReclaimPolicy="Foo"),
    "class-called-badly": volume("story-w", storageClassName="Bad_Name"),
    "two-sources": volume("story-w", awsElasticBlockStore={"volumeID": "v"}),
    "two-sources-of-which-one-is-empty": volume("story-w", cinder={}),
    "three-sources": volume("story-w", nfs={"server": "s", "path": "/"}, rbd={}),
    "no-source": _of_source("csi"),
    "csi-without-handle": volume("story-w", csi={"driver": "d.example.com"}),
    "csi-driver-called-badly": volume("story-w", csi={"driver": "a_b", "volumeHandle": "h"}),
    "csi-secret-without-a-name": volume("story-w", csi={
        "driver": "d.example.com", "volumeHandle": "h",
        "nodePublishSecretRef": {"namespace": "n"}}),
    "csi-secret-without-a-namespace": volume("story-w", csi={
        "driver": "d.example.com", "volumeHandle": "h",
        "controllerPublishSecretRef": {"name": "n"}}),
    "ebs-empty": _of_source("awsElasticBlockStore"),
    "ebs-partition": _of_source("awsElasticBlockStore", {"volumeID": "v", "partition": 256}),
    "gce-empty": _of_source("gcePersistentDisk"),
    "cinder-empty": _of_source("cinder"),
    "vsphere-empty": _of_source("vsphereVolume"),
    "portworx-empty": _of_source("portworxVolume"),
    "rbd-empty": _of_source("rbd"),
    "azure-file-empty": _of_source("azureFile"),
    "azure-disk-empty": _of_source("azureDisk"),
    "azure-disk-kind": _of_source("azureDisk", {
        "diskName": "d", "diskURI": "https://d", "kind": "Managed"}),
    "nfs-empty": _of_source("nfs"),
    "host-path-empty": _of_source("hostPath"),
    "host-path-back": _of_source("hostPath", {"path": "/a/../b"}),
    "host-path-recycled": _of_source("hostPath", {"path": "/"},
        persistentVolumeReclaimPolicy="Recycle"),
    "local-empty": _of_source("local"),
    "local-anywhere": _of_source("local", {"path": "/a"}),
    "affinity-empty": volume("story-w", nodeAffinity={}),
    "affinity-without-terms": volume("story-w", nodeAffinity={"required": {_AFFINITY: []}}),
    "affinity-operator": volume("story-w", nodeAffinity={"required": {_AFFINITY: [
        {"matchExpressions": [{"key": "k", "operator": "Foo"}]}]}}),
    "affinity-without-values": volume("story-w", nodeAffinity={"required": {_AFFINITY: [
        {"matchExpressions": [{"key": "k", "operator": "In"}]}]}}),
}  # fmt: skip
_VOLUMES_IN_WORDS = {
    "capacity-in-letters": volume("story-w", capacity={"storage": "x"}),
    "capacity-unsaid": volume("story-w", capacity={}),
    "capacity-of-another": volume("story-w", capacity={"storage": "1Gi", "cpu": "1"}),
    "modes": volume("story-w", accessModes=["Foo"]),
    "csi-empty": volume("story-w", csi={}),
    "csi-without-driver": volume("story-w", csi={"volumeHandle": "h"}),
}


def _class(**said: Json) -> Json:
    return {"metadata": {"name": "story-t"}, "provisioner": "a/b", **said}


_STORAGE_CLASSES = {
    "reclaim-policy": _class(reclaimPolicy="Foo"),
    "recycled": _class(reclaimPolicy="Recycle"),
    "binding-mode": _class(volumeBindingMode="Foo"),
    "provisioner-unsaid": {"metadata": {"name": "story-t"}},
    "provisioner-called-badly": _class(provisioner="a b"),
    "parameter-without-a-name": _class(parameters={"": "x"}),
    "topology-empty": _class(allowedTopologies=[{"matchLabelExpressions": [{"key": "k"}]}]),
}


def _attachment(**spec: Json) -> Json:
    good = {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    return {"metadata": {"name": "story-b"}, "spec": {**good, **spec}}


_INLINE = {"csi": {"driver": "d", "volumeHandle": "h"}, "accessModes": ["ReadWriteOnce"]}
_VOLUME_ATTACHMENTS = {
    "no-source": _attachment(source={}),
    "two-sources": _attachment(source={"persistentVolumeName": "v", "inlineVolumeSpec": _INLINE}),
    "attacher-called-badly": _attachment(attacher="a_b"),
    "volume-called-badly": _attachment(source={"persistentVolumeName": "V_"}),
    "node-called-badly": _attachment(nodeName="N_"),
}
_VOLUME_ATTACHMENTS_IN_WORDS = {
    "empty": {"metadata": {"name": "story-b"}, "spec": {}},
    "specless": {"metadata": {"name": "story-b"}},
}


def _csi_node(*drivers: Json) -> Json:
    return {"metadata": {"name": "story-m"}, "spec": {"drivers": list(drivers)}}


_DRIVER = {"name": "d.example.com", "nodeID": "i"}
_NODES_OF_DRIVERS = {
    "driver-twice": _csi_node(_DRIVER, _DRIVER),
    "driver-without-a-node": _csi_node({"name": "d.example.com"}),
    "driver-called-badly": _csi_node({**_DRIVER, "name": "a_b"}),
    "topology-key-twice": _csi_node({**_DRIVER, "topologyKeys": ["t", "t"]}),
    "limit-negative": _csi_node({**_DRIVER, "allocatable": {"count": -1}}),
}
_NODES_OF_DRIVERS_IN_WORDS = {"driver-without-a-name": _csi_node({"nodeID": "i"})}
_DRIVERS = {
    "lifecycle": {"metadata": {"name": "a.b"}, "spec": {"volumeLifecycleModes": ["Foo"]}},
    "group-policy": {"metadata": {"name": "a.b"}, "spec": {"fsGroupPolicy": "Foo"}},
}


def _resized(storage_class: str) -> Iterator[Ask]:
    """A claim of a class, asked for other sizes before it is bound and then."""
    name = f"of-{storage_class}"
    place = f"{PVCS}/{name}"
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    made = _claim(storageClassName=storage_class)
    yield Ask("POST", PVCS, {**made, "metadata": {"name": name}}, compare="code")
    yield _sized(place, "2Gi", "grown-unbound")
    yield _sized(place, "512Mi", "shrunk-unbound")
    yield Ask("PATCH", place, {"spec": {"volumeName": "v"}}, MERGE, compare="code")
    yield Ask("PATCH", f"{place}/status", {"status": bound}, MERGE, compare="code")
    yield _sized(place, "512Mi", "shrunk")
    yield _sized(place, "x", "sized-in-letters")
    # The same in other words, which a real server would write as before.
    yield _sized(place, "1024Mi", "said-otherwise&dryRun=All", "code")
    yield _sized(place, "2Gi", "grown", "all")


def _sized(place: str, storage: str, what: str, compare: str = "words") -> Ask:
    change = {"spec": {"resources": {"requests": {"storage": storage}}}}
    return Ask("PATCH", f"{place}?fieldManager={what}", change, MERGE, compare=compare)


REFUSED_STORAGE = Story(
    "refused-storage",
    [
        *_created(PVCS, _CLAIMS),
        *_created(PVCS, _CLAIMS_IN_WORDS, "words"),
        *_created(PVCS, _GOOD_CLAIMS, "code"),
        *_created(PVS, _VOLUMES),
        *_created(PVS, _VOLUMES_IN_WORDS, "words"),
        *_created(CLASSES, _STORAGE_CLASSES),
        *_created(_ATTACHMENTS, _VOLUME_ATTACHMENTS),
        *_created(_ATTACHMENTS, _VOLUME_ATTACHMENTS_IN_WORDS, "words"),
        *_created(_CSI_NODES, _NODES_OF_DRIVERS),
        *_created(_CSI_NODES, _NODES_OF_DRIVERS_IN_WORDS, "words"),
        *_created(_CSI_DRIVERS, _DRIVERS),
        # A claim grows once it is bound, if its class lets it; none shrinks.
        Ask("POST", CLASSES, {"metadata": {"name": "story-grows"}, "provisioner": "a/b",
            "allowVolumeExpansion": True}, compare="code"),
        Ask("POST", CLASSES, {"metadata": {"name": "story-stays"}, "provisioner": "a/b"},
            compare="code"),
        *(
            ask
            for name in ("story-grows", "story-stays", "none")
            for ask in _resized(name)
        ),
        Ask("DELETE", f"{CLASSES}/story-grows", compare="code"),
        Ask("DELETE", f"{CLASSES}/story-stays", compare="code"),
        Ask("POST", PVS, volume("story-w"), compare="code"),
        Ask("PATCH", f"{PVS}/story-w", {"spec": {"persistentVolumeReclaimPolicy": "Foo"}}, MERGE),
        Ask("PATCH", f"{PVS}/story-w", {"spec": {"capacity": {"storage": "x"}}}, MERGE,
            compare="words"),
        Ask("PATCH", f"{PVS}/story-w", {"spec": {"capacity": {"storage": "2Gi"}}}, MERGE),
        Ask("PATCH", f"{PVS}/story-w", {"metadata": {"finalizers": None}}, MERGE, compare="code"),
        Ask("DELETE", f"{PVS}/story-w", compare="code"),
    ],
)  # fmt: skip


def _container(**said: Json) -> Json:
    """A pod with one container."""
    return pod("p", containers=[{"name": "c", "image": "x", **said}])


_EMPTY = {"name": "v", "emptyDir": {}}


def _mounting(*mounts: Json, volumes: Json = (_EMPTY,)) -> Json:
    containers = [{"name": "c", "image": "x", "volumeMounts": list(mounts)}]
    return pod("p", containers=containers, volumes=list(volumes))


_ODD_PODS = {
    "container-without-a-name": pod("p", containers=[{"image": "x"}]),
    "container-without-an-image": pod("p", containers=[{"name": "c"}]),
    "container-called-badly": _container(name="A_b"),
    "container-twice": pod("p", containers=[{"name": "c", "image": "x"}] * 2),
    "containers-none": pod("p", containers=[]),
    "pull-policy": _container(imagePullPolicy="Foo"),
    "restart-policy": pod("p", restartPolicy="Foo"),
    "dns-policy": pod("p", dnsPolicy="Foo"),
    "node-called-badly": pod("p", nodeName="N_"),
    "mount-of-nothing": _mounting({"name": "w", "mountPath": "/a"}),
    "mount-nowhere": _mounting({"name": "v"}),
    "mounts-at-one-place": _mounting(
        {"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}),
    "device-of-nothing": _container(volumeDevices=[{"name": "w", "devicePath": "/a"}]),
    "volume-without-a-name": _mounting(volumes=[{"emptyDir": {}}]),
    "volume-called-badly": _mounting(volumes=[{"name": "A_b", "emptyDir": {}}]),
    "volume-twice": _mounting(volumes=[_EMPTY, _EMPTY]),
    "volume-of-two-sources": _mounting(volumes=[{**_EMPTY, "hostPath": {"path": "/a"}}]),
    "volume-of-no-claim": _mounting(volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
    "volume-of-an-empty-disk": _mounting(volumes=[{"name": "v", "awsElasticBlockStore": {}}]),
    "init-container-without-an-image": pod("p", initContainers=[{"name": "i"}]),
    "init-container-called-alike": pod("p", initContainers=[{"name": "c", "image": "x"}]),
    "request-above-limit": _container(resources={
        "requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    "env-without-a-name": _container(env=[{"value": "x"}]),
    "port-unsaid": _container(ports=[{}]),
}  # fmt: skip
_ODD_PODS_IN_WORDS = {
    "request-negative": _container(resources={"requests": {"cpu": "-1"}}),
    "request-in-letters": _container(resources={"requests": {"memory": "lots"}}),
    "toleration": pod("p", tolerations=[{"operator": "Foo", "key": "k"}]),
}


def _workload(name: str = "w", **spec: Json) -> Json:
    made = {**deployment(name, **spec)["spec"]}
    return {"metadata": {"name": name}, "spec": {k: v for k, v in made.items() if v is not None}}


def _of_template(labels: Json = None, **spec: Json) -> Json:
    pod_spec = {"containers": [{"name": "c", "image": "x:1"}], **spec}
    return _workload(template={"metadata": {"labels": labels or {"a": "b"}}, "spec": pod_spec})


_ODD_WORKLOADS = {
    "replicas-negative": _workload(replicas=-1),
    "restart-policy": _of_template(restartPolicy="Never"),
    "ready-seconds-negative": _workload(minReadySeconds=-1),
}
_ODD_WORKLOADS_IN_WORDS = {
    "selector-unsaid": _workload(selector=None),
    "selector-empty": _workload(selector={}),
    "selector-of-others": _of_template({"c": "d"}),
    "selector-operator": _workload(selector={"matchExpressions": [
        {"key": "a", "operator": "Foo"}]}),
}  # fmt: skip
_ODD_TEMPLATES = {
    "container-without-an-image": _of_template(containers=[{"name": "c"}]),
    "container-without-a-name": _of_template(containers=[{"image": "x"}]),
    "container-twice": _of_template(containers=[{"name": "c", "image": "x"}] * 2),
    "mount-of-nothing": _of_template(containers=[
        {"name": "c", "image": "x", "volumeMounts": [{"name": "w", "mountPath": "/a"}]}]),
}  # fmt: skip


def _applies(plural: str, what: str) -> bool:
    return plural != "daemonsets" or "replicas" not in what


def _budget(**spec: Json) -> Json:
    return {"metadata": {"name": "o"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, **spec}}


_LIMITS = {
    "minimum-negative": _budget(minAvailable=-1),
    "maximum-negative": _budget(maxUnavailable=-1),
}
_LIMITS_IN_WORDS = {
    "both-limits": _budget(minAvailable=1, maxUnavailable=1),
    "maximum-in-letters": _budget(maxUnavailable="x"),
    "minimum-above-all": _budget(minAvailable="101%"),
}
_MEBI = 1024 * 1024
_KEPT = {
    "key": config_map("k", {"a/b": "1"}),
    "key-of-dots": config_map("k", {"..": "1"}),
    "key-in-both": {**config_map("k", {"a": "1"}), "binaryData": {"a": "MQ=="}},
}
_KEPT_IN_WORDS = {
    "too-much": config_map("k", {"a": "x" * (_MEBI + 1)}),
    "binary-not-in-base64": {"metadata": {"name": "k"}, "binaryData": {"a": "?"}},
}
_HIDDEN = {
    "key": {"metadata": {"name": "k"}, "stringData": {"a/b": "1"}},
    "tls-without-keys": {"metadata": {"name": "k"}, "type": "kubernetes.io/tls"},
    "basic-auth-empty": {"metadata": {"name": "k"}, "type": "kubernetes.io/basic-auth"},
}
_HIDDEN_IN_WORDS = {
    "not-in-base64": {"metadata": {"name": "k"}, "data": {"a": "not base64!"}},
    "half-in-base64": {"metadata": {"name": "k"}, "data": {"a": "YQ"}},
    "too-much": {"metadata": {"name": "k"}, "stringData": {"a": "x" * (_MEBI + 1)}},
}
_RUN = {"containers": [{"name": "c", "image": "x:1"}]}
_ENDING = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {**_RUN}}}}

REFUSED_WORKLOADS = Story(
    "refused-workloads",
    [
        *_created(PODS, _ODD_PODS),
        *_created(PODS, _ODD_PODS_IN_WORDS, "words"),
        *(
            ask
            for plural in ("deployments", "statefulsets", "replicasets", "daemonsets")
            for objects, compare in ((_ODD_WORKLOADS, "all"), (_ODD_WORKLOADS_IN_WORDS, "words"))
            for ask in _created(f"{_APPS}/{plural}", {
                what: obj for what, obj in objects.items() if _applies(plural, what)}, compare)
        ),
        # Templates of StatefulSets are looked at only since, when their pods are made.
        *(
            ask
            for plural in ("deployments", "replicasets", "daemonsets")
            for ask in _created(f"{_APPS}/{plural}", _ODD_TEMPLATES)
        ),
        *_created(f"{_APPS}/statefulsets", {
            "management": _workload(podManagementPolicy="Foo")}),
        *_created(DEPLOYMENTS, {
            "history-negative": _workload(revisionHistoryLimit=-1),
            "deadline-too-soon": _workload(progressDeadlineSeconds=5, minReadySeconds=5)}),
        *_created(f"{_BATCH}/jobs", {"restart-policy": _ENDING}, "words"),
        *_created(BUDGETS, _LIMITS),
        *_created(BUDGETS, _LIMITS_IN_WORDS, "words"),
        *_created(CMS, _KEPT),
        *_created(CMS, _KEPT_IN_WORDS, "words"),
        *_created(_SECRETS, _HIDDEN),
        *_created(_SECRETS, _HIDDEN_IN_WORDS, "words"),
        Ask("POST", DEPLOYMENTS, deployment("w"), compare="code"),
        Ask("PATCH", f"{DEPLOYMENTS}/w/scale", {"spec": {"replicas": -1}}, MERGE),
        Ask("PATCH", f"{DEPLOYMENTS}/w", {"spec": {"replicas": -1}}, MERGE),
        Ask("PATCH", f"{DEPLOYMENTS}/w", {"spec": {"template": {"spec": {"containers": [
            {"name": "c"}]}}}}, MERGE),
        Ask("POST", f"{_APPS}/statefulsets", _workload(), compare="code"),
        Ask("PATCH", f"{_APPS}/statefulsets/w/scale", {"spec": {"replicas": -1}}, MERGE),
        Ask("PATCH", f"{_APPS}/statefulsets/w", {"spec": {"replicas": -1}}, MERGE),
        Ask("POST", CMS, {**config_map("fixed"), "immutable": True}, compare="code"),
        Ask("PATCH", f"{CMS}/fixed", {"data": {"b": "2"}}, MERGE),
        Ask("PATCH", f"{CMS}/fixed", {"immutable": False}, MERGE),
        Ask("DELETE", f"{DEPLOYMENTS}/w", compare="code"),
        Ask("DELETE", f"{_APPS}/statefulsets/w", compare="code"),
    ],
)  # fmt: skip

REFUSED = (REFUSED_STORAGE, REFUSED_WORKLOADS)
