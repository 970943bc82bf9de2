"""``replant route``, as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import replant
from tests.inventory.clusters import obj, pv

EXAMPLE = ["-f", "examples/cluster.yaml", "--server-version", "1.24.17"]
ORDERS = "pvc-7f2c1a50-orders-db"
AWS, EBS = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
LISTED = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": AWS}}
UNREGISTER = ("CSIMigrationAWS=true", "InTreePluginAWSUnregister=true")
COLUMNS = 3


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])


def cluster(*extra: dict[str, Any], listed: bool = True, attached: str = "") -> dict[str, Any]:
    """A volume, and node-a with the driver, redirecting or not."""
    status: dict[str, Any] = {"nodeInfo": {"kubeletVersion": "v1.24.17"}}
    if attached:
        status["volumesAttached"] = [{"name": attached, "devicePath": ""}]
    items = [
        pv("db", metadata={"annotations": {"pv.kubernetes.io/provisioned-by": AWS}}),
        obj("Node", "node-a", status=status),
        obj(
            "CSINode",
            "node-a",
            metadata=LISTED if listed else {},
            spec={"drivers": [{"name": EBS, "nodeID": "a"}]},
        ),
        *extra,
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def control_plane(component: str, gates: str) -> dict[str, Any]:
    return obj(
        "Pod",
        f"{component}-cp",
        "kube-system",
        metadata={"labels": {"component": component}},
        spec={"containers": [{"command": [component, f"--feature-gates={gates}"]}]},
    )


def sides(*arguments: str, stdin: dict[str, Any]) -> tuple[dict[str, str], str]:
    given = ["-f", "-", "--server-version", "1.24.17", "--node", "node-a", "-o", "json"]
    code, out, err = replant("route", "db", *given, *arguments, stdin=stdin)
    assert code == 0, err
    return {it["operation"]: it["servedBy"] for it in json.loads(out)}, err


def gates(*settings: str) -> list[str]:
    return ["--gates", ",".join(settings)]


def test_machines_get_who_serves_why_and_by_which_rule() -> None:
    code, out, _err = replant("route", ORDERS, *EXAMPLE, "-o", "json")
    found = json.loads(out)
    assert code == 0
    assert [it["operation"] for it in found] == [
        "provision", "delete", "attach", "detach", "mount", "unmount", "expand", "limit counting",
    ]  # fmt: skip
    assert found[4] == {
        "operation": "mount",
        "servedBy": "nobody",
        "reason": f"The kubelet redirects {AWS} to {EBS}, which the node does not have: the mount "
        "fails, and there is no way back to in-tree.",
        "rule": "mount.redirected-driver-absent",
    }
    provisioner = "storage-provisioner"
    assert {it["operation"]: it["annotations"] for it in found if "annotations" in it} == {
        "provision": {
            f"volume.beta.kubernetes.io/{provisioner}": EBS,
            f"volume.kubernetes.io/{provisioner}": EBS,
        },
        "delete": {"pv.kubernetes.io/migrated-to": EBS},
        "expand": {"volume.kubernetes.io/storage-resizer": EBS},
    }


@pytest.mark.workflow("route")
def test_people_get_a_plain_table() -> None:
    code, out, err = replant("route", f"pv/{ORDERS}", "--node", "node-a", *EXAMPLE)
    assert code == 0
    assert out.startswith(f"{ORDERS} on node-a: {AWS} ({EBS})\n")
    rows = [line.split(maxsplit=COLUMNS - 1) for line in out.splitlines()]
    assert ["attach", "csi"] in [row[:2] for row in rows]
    assert "[attach.node-migrated-driver-absent]" in out
    assert "pv.kubernetes.io/migrated-to: ebs.csi.aws.com" in out
    assert "\x1b" not in out
    assert "the gates of kube-scheduler are not to be seen" in err
    assert "the gates of kube-controller-manager" not in err


@pytest.mark.parametrize("name", ["shop/data-orders-db-0", "pvc/shop/data-orders-db-0"])
def test_a_volume_is_found_by_its_claim(name: str) -> None:
    code, out, _err = replant("route", name, *EXAMPLE)
    assert (code, out.split()[0]) == (0, ORDERS)


def test_what_needs_no_attach_says_so() -> None:
    code, out, _err = replant("route", "px-sessions", "--node", "node-a", *EXAMPLE)
    assert code == 0
    assert "\n  attach" not in out
    assert "Volumes of pxd.portworx.com are neither attached nor detached." in out


def test_the_controller_s_gates_are_taken_from_its_flags_and_the_kubelet_s_from_its_node() -> None:
    off = [
        control_plane(name, "CSIMigrationAWS=false,ServerSideApply=true")
        for name in ("kube-controller-manager", "kube-scheduler")
    ]
    found, err = sides(stdin=cluster(*off))
    assert (found["attach"], found["mount"], found["limit counting"]) == (
        "in-tree", "csi", "in-tree",
    )  # fmt: skip
    assert "attach and mount do not meet" in err
    assert "not to be seen" not in err
    found, _err = sides(stdin=cluster(listed=False))
    assert (found["attach"], found["mount"], found["provision"]) == ("in-tree", "in-tree", "csi")


def test_gates_can_be_supposed_for_all_components_or_one() -> None:
    found, _err = sides(*gates("CSIMigrationAWS=false"), stdin=cluster())
    assert set(found.values()) == {"in-tree"}
    found, _err = sides(*gates("kubelet:CSIMigrationAWS=false"), stdin=cluster())
    assert (found["attach"], found["mount"]) == ("csi", "in-tree")
    supposed = gates("kube-controller-manager:CSIMigrationAWS=false")
    found, _err = sides(*supposed, stdin=cluster())
    assert (found["attach"], found["mount"]) == ("in-tree", "csi")
    found, _err = sides(*supposed, "--adc", "node-driven", stdin=cluster())
    assert (found["attach"], found["provision"]) == ("csi", "in-tree")


def test_what_is_attached_already_decides_who_detaches() -> None:
    stranded = cluster(attached=f"{AWS}/vol-1")
    found, _err = sides(*gates(*UNREGISTER), stdin=stranded)
    assert (found["attach"], found["detach"]) == ("csi", "nobody")
    attachment = obj(
        "VolumeAttachment",
        "csi-1",
        spec={"attacher": EBS, "nodeName": "node-a", "source": {"persistentVolumeName": "db"}},
    )
    found, _err = sides(*gates("CSIMigrationAWS=false"), stdin=cluster(attachment))
    assert (found["attach"], found["detach"]) == ("in-tree", "csi")


def test_a_native_volume_is_told_apart() -> None:
    native = cluster()
    native["items"][0] = pv("db", csi={"driver": EBS, "volumeHandle": "vol-1"})
    found, _err = sides(*gates("CSIMigrationAWS=false"), stdin=native)
    assert "in-tree" not in found.values()
    code, out, _err = replant(
        "route", "db", "--node", "node-a", "-f", "-", "--server-version", "1.36", stdin=native
    )
    assert (code, out.splitlines()[0]) == (0, f"db on node-a: native, of {EBS}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["orders-db", "--node", "node-a"], f"there is no such object; is it {ORDERS}?"),
        (["shop/data", "--node", "node-a"], "is it shop/data-orders-db-0?"),
        (
            [ORDERS, "--node", "node-c"],
            "Node node-c: there is no such object; is it node-b or node-a?",
        ),
        (["reports-share"], "is used on no node: say which node to ask about, with --node"),
        (["home-nfs", "--node", "node-a"], "is not a CSI volume, nor one that a CSI driver took"),
        ([ORDERS, "--gates", "CSIMigrationAWS=on"], "is not GATE=true or GATE=false"),
        ([ORDERS, "--gates", "etcd:CSIMigrationAWS=true"], "'etcd' is not a component"),
        ([ORDERS, "--gates", "CSIMigrationAws=true"], "is it CSIMigrationAWS?"),
        ([ORDERS, "--gates", "CSIMigrationOpenStack=false"], "is locked to true at 1.24"),
        (
            [ORDERS, "--gates", "CSIMigration=false,CSIMigrationAWS=true"],
            "kube-controller-manager 1.24.17: CSIMigrationAWS needs CSIMigration, which is off",
        ),
        ([ORDERS, "--server-version", "1.50"], "1.50 is not known here, only 1.17 to 1.36"),
        ([ORDERS, "--adc", "other"], "Invalid value for '--adc'"),
    ],
)
def test_bad_input_fails_and_says_why(arguments: list[str], said: str) -> None:
    code, out, err = replant("route", *EXAMPLE, *arguments)
    assert (code, out) == (1, "")
    assert said in err


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([obj("Node", "node-a")], "PersistentVolume: "),
        ([pv("db"), obj("Node", "node-a")], "CSINode: "),
        (
            [pv("db", glusterfs={"endpoints": "e", "path": "p"}), obj("CSINode", "node-a")],
            "is of glusterfs, which left the tree without a CSI driver",
        ),
    ],
)
def test_what_cannot_be_told_is_not_guessed(items: list[dict[str, Any]], said: str) -> None:
    given = ["--node", "node-a", "-f", "-", "--server-version", "1.24"]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    code, out, err = replant("route", "db", *given, stdin=listed)
    assert (code, out) == (1, "")
    assert said in err


def test_without_a_version_nothing_is_told() -> None:
    code, out, err = replant("route", ORDERS, "-f", "examples/cluster.yaml")
    assert (code, out) == (1, "")
    assert "say it with --server-version" in err


def test_the_help_has_examples() -> None:
    code, out, _err = replant("route", "--help")
    assert code == 0
    assert "replant route pv/db-1" in out
