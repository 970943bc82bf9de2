"""Real kubectls, the old and the new, do to a sandbox what people do with them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from replant.sandbox.scenario import Pool, Scenario
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.real.ground import programs

WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]}
                ]
            },
        },
    },
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": "v1.24.17"},
    },
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gp2",
        "awsElasticBlockStore": {"volumeID": "vol-1"},
    },
    "status": {"phase": "Available"},
}


def pod(name: str, **owner: object) -> dict[str, object]:
    """It runs, and needs no time to end: there is no kubelet here to say that it has."""
    metadata: dict[str, object] = {"name": name, "labels": {"app": name}}
    if owner:
        metadata["ownerReferences"] = [{**owner, "name": "o", "uid": "u", "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": "node-1",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "x"}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


class Kubectl:
    """One kubectl, on one sandbox."""

    def __init__(self, program: Path, folder: Path, address: str) -> None:
        self.folder = folder
        self._program = program
        config = folder / "kubeconfig"
        write_kubeconfig(config, int(address.rpartition(":")[2]))
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "KUBECONFIG": str(config),
        }

    def tried(
        self, line: str, *, given: object = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        objects = given if isinstance(given, list) else [given]
        return subprocess.run(
            [self._program, *line.split()],
            input=yaml.safe_dump_all(objects) if given else None,
            env={**self._env, **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def __call__(self, line: str, *, given: object = None, **env: str) -> str:
        done = self.tried(line, given=given, **env)
        assert done.returncode == 0, f"kubectl {line}: {done.stdout}{done.stderr}"
        assert "warning: error calculating patch" not in done.stderr
        return done.stdout

    def started(self, line: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._program, *line.split()], env=self._env, stdout=subprocess.PIPE, text=True
        )


@pytest.fixture(params=[programs.OLD, programs.newest()])
def kubectl(request: pytest.FixtureRequest, ground: Path, tmp_path: Path) -> Iterator[Kubectl]:
    assert ground.is_dir()  # the programs are built
    with closing(open_port(0)) as listening, serving(Sandbox(), listening) as address:
        yield Kubectl(programs.program(request.param, "kubectl"), tmp_path, address)


@pytest.fixture(params=[programs.OLD, programs.newest()])
def living(request: pytest.FixtureRequest, ground: Path, tmp_path: Path) -> Iterator[Kubectl]:
    """A kubectl on a sandbox with a cluster behind it."""
    assert ground.is_dir()
    pool = Pool(name="workers", count=2)
    scenario = Scenario(api_version="replant.dev/v1alpha1", kind="Scenario", pools=(pool,))
    with closing(open_port(0)) as listening, serving(Sandbox.of(scenario), listening) as address:
        yield Kubectl(programs.program(request.param, "kubectl"), tmp_path, address)


def test_get_prints_what_people_expect(kubectl: Kubectl) -> None:
    kubectl("create -f -", given=[NODE, VOLUME, pod("one")])
    assert table(kubectl("get nodes")) == [
        ["NAME", "STATUS", "ROLES", "VERSION"],
        ["node-1", "Ready", "<none>", "v1.24.17"],
    ]
    volumes = kubectl("get pv").splitlines()
    assert volumes[0].split()[:6] == ["NAME", "CAPACITY", "ACCESS", "MODES", "RECLAIM", "POLICY"]
    assert volumes[1].split()[:6] == ["disk", "1Gi", "RWO", "Retain", "Pending", "gp2"]
    assert "node-1" in kubectl("get pods -o wide")
    assert yaml.safe_load(kubectl("get pv disk -o json"))["kind"] == "PersistentVolume"
    items = yaml.safe_load(kubectl("get pv,nodes -o yaml"))["items"]
    assert {it["kind"] for it in items} == {"PersistentVolume", "Node"}
    assert kubectl("get pods -l app=one -o name") == "pod/one\n"
    assert kubectl("get pods --field-selector spec.nodeName=node-1 -o name") == "pod/one\n"
    assert kubectl("get pods --field-selector spec.nodeName=other -o name") == ""
    assert 'pods "none" not found' in kubectl.tried("get pod none").stderr


def table(printed: str) -> list[list[str]]:
    """What was printed, without the column of ages."""
    lines = [line.split() for line in printed.splitlines()]
    age = lines[0].index("AGE")
    return [line[:age] + line[age + 1 :] for line in lines]


def test_describe(kubectl: Kubectl) -> None:
    kubectl("create -f -", given=[NODE, VOLUME, pod("one"), WEB])
    assert "one" in kubectl("describe node node-1")
    assert "vol-1" in kubectl("describe pv disk")
    assert "node-1" in kubectl("describe pod one")
    assert "2 desired" in kubectl("describe deployment web")


def test_client_side_apply(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply -f -", given=WEB)
    assert "unchanged" in kubectl("apply -f -", given=WEB)
    changed = changed_web("web:2", {"name": "B", "value": "2"})
    assert "server dry run" in kubectl("apply --dry-run=server -f -", given=changed)
    assert image(kubectl) == "web:1"
    assert "configured" in kubectl("apply -f -", given=changed)
    assert image(kubectl) == "web:2"
    env = kubectl("get deploy web -o jsonpath={.spec.template.spec.containers[0].env[*].name}")
    assert env == "B"


def test_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply --server-side -f -", given=WEB)
    kubectl("scale deployment web --replicas=5")
    refused = kubectl.tried("apply --server-side -f -", given=WEB)
    assert refused.returncode
    assert ".spec.replicas" in refused.stderr
    kubectl("apply --server-side --force-conflicts -f -", given=WEB)
    assert kubectl("get deploy web -o jsonpath={.spec.replicas}") == "2"
    kubectl("apply --server-side --field-manager=other -f -", given=WEB)


def test_client_side_apply_becomes_server_side(kubectl: Kubectl) -> None:
    kubectl("apply -f -", given=WEB)
    kubectl("apply --server-side -f -", given=changed_web("web:2", {"name": "A", "value": "1"}))
    assert image(kubectl) == "web:2"


def changed_web(image: str, env: dict[str, str]) -> dict[str, object]:
    changed = yaml.safe_load(yaml.safe_dump(WEB))
    changed["spec"]["template"]["spec"]["containers"] = [
        {"name": "web", "image": image, "env": [env]}
    ]
    found: dict[str, object] = changed
    return found


def image(kubectl: Kubectl) -> str:
    return kubectl("get deploy web -o jsonpath={.spec.template.spec.containers[0].image}")


def test_changing_one_thing(kubectl: Kubectl) -> None:
    kubectl("create configmap settings --from-literal=a=b")
    kubectl("label configmap settings x=y")
    assert "x=y" in kubectl("get configmap settings --show-labels")
    kubectl("label configmap settings x-")
    kubectl("annotate configmap settings note=hello")
    kubectl("edit configmap settings", EDITOR="sed -i s/hello/there/")
    assert kubectl("get configmap settings -o jsonpath={.metadata.annotations.note}") == "there"
    kubectl("""patch configmap settings -p {"data":{"c":"d"}}""")
    kubectl("""patch configmap settings --type=json -p [{"op":"remove","path":"/data/a"}]""")
    assert kubectl("get configmap settings -o jsonpath={.data}") == '{"c":"d"}'
    kubectl("apply -f -", given=WEB)
    kubectl("scale deployment web --replicas=7")
    kubectl("set image deployment/web web=web:3")
    kubectl("rollout restart deployment web")
    assert "0/7" in kubectl("get deployment web")
    assert image(kubectl) == "web:3"


def test_what_kubectl_makes_by_itself(kubectl: Kubectl) -> None:
    for what in (
        "namespace extra",
        "secret generic s --from-literal=a=b",
        "serviceaccount me",
        "deployment d --image=x --replicas=2 --port=80",
        "job j --image=x",
        "cronjob cj --image=x --schedule=@daily --restart=Never -- true",
        "poddisruptionbudget b --selector=a=b --max-unavailable=20%",
        "role r --verb=get,list --resource=pods",
        "clusterrole all --aggregation-rule=a=b",
        "clusterrolebinding rb --clusterrole=x --user=u",
        "service clusterip s --tcp=80:8080",
    ):
        kubectl(f"create {what}")
    assert kubectl("get secret s -o jsonpath={.data.a}") == "Yg=="
    assert kubectl("get pdb b -o jsonpath={.spec.maxUnavailable}") == "20%"
    assert kubectl("get cronjob cj -o jsonpath={.spec.schedule}") == "@daily"
    selected = "{.aggregationRule.clusterRoleSelectors[0].matchLabels.a}"
    assert kubectl(f"get clusterrole all -o jsonpath={selected}") == "b"
    assert kubectl("auth can-i delete pods") == "yes\n"


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    kubectl("create namespace extra")
    kubectl("create configmap c -n extra --from-literal=a=b")
    kubectl("delete namespace extra --timeout=20s")
    assert "not found" in kubectl.tried("get namespace extra").stderr
    kubectl("create namespace extra")
    assert kubectl("get configmaps -n extra -o name") == ""


def test_wait(kubectl: Kubectl) -> None:
    kubectl("create configmap one --from-literal=a=b")
    kubectl("create -f -", given=pod("p"))
    waiting = kubectl.started("wait --for=delete configmap/one --timeout=30s")
    ready = kubectl.started("wait --for=condition=Ready pod/p --timeout=30s")
    time.sleep(1)
    kubectl("delete configmap one")
    change = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    if kubectl.tried(f"patch pod p --subresource=status -p {change}").returncode:
        kubectl(f"replace --raw /api/v1/namespaces/default/pods/p/status -f {status_of(kubectl)}")
    for process in (waiting, ready):
        said, _nothing = process.communicate(timeout=30)
        assert "condition met" in said


def status_of(kubectl: Kubectl) -> Path:
    """A file with the pod, ready."""
    found = yaml.safe_load(kubectl("get pod p -o json"))
    found["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    path = kubectl.folder / "status.json"
    path.write_text(yaml.safe_dump(found, default_flow_style=True, width=10**6))
    return path


def test_watch(kubectl: Kubectl) -> None:
    kubectl("create configmap one --from-literal=a=b")
    watching = kubectl.started("get configmaps -w -o name")
    shown = kubectl.started("get configmaps -w")
    time.sleep(1)
    kubectl("create configmap two --from-literal=a=b")
    kubectl("delete configmap one")
    time.sleep(1)
    for process in (watching, shown):
        process.terminate()
    names, _nothing = watching.communicate(timeout=10)
    assert names.split() == ["configmap/one", "configmap/two", "configmap/one"]
    lines, _nothing = shown.communicate(timeout=10)
    assert [line.split()[:2] for line in lines.splitlines()] == [
        ["NAME", "DATA"],
        ["one", "1"],
        ["two", "1"],
        ["one", "1"],
    ]


def test_drain(kubectl: Kubectl) -> None:
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    kubectl("create -f -", given=[NODE, pod("lone"), pod("second"), pod("daemon", **daemon)])
    daemons = {**WEB, "kind": "DaemonSet", "metadata": {"name": "o"}}
    daemons["spec"] = {k: v for k, v in WEB["spec"].items() if k != "replicas"}  # type: ignore[attr-defined]
    kubectl("create -f -", given=daemons)
    refused = kubectl.tried("drain node-1 --ignore-daemonsets")
    assert "declare no controller" in refused.stderr
    kubectl("drain node-1 --force --ignore-daemonsets --timeout=30s")
    assert kubectl("get pods -o name") == "pod/daemon\n"
    assert "SchedulingDisabled" in kubectl("get nodes")
    kubectl("uncordon node-1")
    assert "SchedulingDisabled" not in kubectl("get nodes")


def test_delete(kubectl: Kubectl) -> None:
    kubectl("apply -f -", given=[WEB, VOLUME])
    kubectl("delete deployment web")
    refused = kubectl.tried("delete pv disk --timeout=1s")
    assert refused.returncode  # it is protected, and nobody is there to unprotect it
    assert "Terminating" in kubectl("get pv disk")
    kubectl("""patch pv disk -p {"metadata":{"finalizers":null}}""")
    assert "not found" in kubectl.tried("get pv disk").stderr


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_what_belongs_to_a_workload_goes_with_it_or_stays(living: Kubectl, cascade: str) -> None:
    living("apply -f -", given=quick_web())
    living("wait --for=jsonpath={.status.readyReplicas}=2 deployment/web --timeout=20s")
    living(f"delete deployment web --cascade={cascade} --timeout=30s")
    assert "not found" in living.tried("get deployment web").stderr
    if cascade == "orphan":
        owners = living("get rs -o jsonpath={.items[*].metadata.ownerReferences}")
        assert owners == ""
        assert len(living("get pods -o name").split()) == 2
        living("delete rs --all --cascade=foreground --timeout=30s")
    if cascade == "background":
        living("wait --for=delete rs -l app=web --timeout=20s")
        living("wait --for=delete pod -l app=web --timeout=20s")
    assert living("get rs,pods -o name") == ""


def test_rollouts(living: Kubectl) -> None:
    living("apply -f -", given=[quick_web(), quick_web("StatefulSet"), quick_web("DaemonSet")])
    for kind in ("deployment", "statefulset", "daemonset"):
        what = f"{kind}/web"
        living(f"rollout status {what} --timeout=30s")
        before = pod_uids(living, kind)
        assert len(before) == 2
        assert "restarted" in living(f"rollout restart {what}")
        living(f"rollout status {what} --timeout=30s")
        assert before.isdisjoint(pod_uids(living, kind))
        assert living(f"rollout history {what}").split()[-4:] == ["1", "<none>", "2", "<none>"]
        living(f"rollout undo {what}")
        living(f"rollout status {what} --timeout=30s")
        restarted = "jsonpath={.spec.template.metadata.annotations}"
        assert living(f"get {what} -o {restarted}") == ""


def test_a_rollout_can_be_paused(living: Kubectl) -> None:
    living("apply -f -", given=quick_web())
    living("rollout status deployment/web --timeout=30s")
    living("rollout pause deployment/web")
    living("set image deployment/web web=web:2")
    time.sleep(1)
    assert "0 out of 2" in living.tried("rollout status deployment/web --watch=false").stdout
    living("rollout resume deployment/web")
    assert "successfully rolled out" in living("rollout status deployment/web --timeout=30s")
    living("wait --for=condition=Available deployment/web --timeout=5s")


def pod_uids(kubectl: Kubectl, kind: str) -> set[str]:
    """The pods of the workload of a kind."""
    pods = yaml.safe_load(kubectl("get pods -o json"))["items"]
    made_by = {"deployment": "ReplicaSet", "statefulset": "StatefulSet", "daemonset": "DaemonSet"}
    return {
        it["metadata"]["uid"]
        for it in pods
        if it["metadata"]["ownerReferences"][0]["kind"] == made_by[kind]
        and "deletionTimestamp" not in it["metadata"]
    }


def quick_web(kind: str = "Deployment", **spec: object) -> dict[str, object]:
    """It needs no time to end."""
    web = yaml.safe_load(yaml.safe_dump(WEB))
    web["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    # Each kind has labels of its own, or they would take each other's pods.
    labels = {"app": "web", "kind": kind}
    web["spec"]["selector"]["matchLabels"] = labels
    web["spec"]["template"]["metadata"]["labels"] = labels
    if kind == "DaemonSet":
        del web["spec"]["replicas"]
    found: dict[str, object] = {**web, "kind": kind, "spec": {**web["spec"], **spec}}
    return found


def test_kinds_of_ones_own(kubectl: Kubectl) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {"size": {"type": "integer", "maximum": 9}},
                                }
                            },
                        }
                    },
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
                    ],
                }
            ],
        },
    }
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    kubectl("apply -f -", given=definition)
    kubectl("wait --for=condition=Established crd/widgets.example.com --timeout=20s")
    kubectl("apply -f -", given={**widget, "spec": {"size": 1}})
    kubectl("apply -f -", given={**widget, "spec": {"size": 2}})
    assert [line.split() for line in kubectl("get wd").splitlines()] == [
        ["NAME", "SIZE"],
        ["w", "2"],
    ]
    for validate in ("true", "false"):
        wrong = {**widget, "spec": {"size": 10}}
        refused = kubectl.tried(f"apply --validate={validate} -f -", given=wrong)
        assert "spec.size in body should be less than or equal to 9" in refused.stderr
    kubectl("delete crd widgets.example.com")
    assert "could not find the requested resource" in kubectl.tried("get wd").stderr
