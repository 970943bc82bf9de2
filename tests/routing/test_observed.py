"""The model against what real components were seen to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replant.gates.versions import Version
from replant.routing import (
    NodeView,
    Process,
    Side,
    VolumeView,
    attach,
    delete,
    expand,
    marks,
    migrated_to,
    provision,
    provisioner_annotations,
    resizer,
)
from tests.routing.worlds import AWS, EBS, PLUGINS

OBSERVED = Path(__file__).parents[1] / "real" / "observed"


def stored(*, provisioned: bool) -> VolumeView:
    """The volume as it was made for the record."""
    annotations = {"annotations": {"pv.kubernetes.io/provisioned-by": AWS}} if provisioned else {}
    source = {"volumeID": "aws://us-east-1a/vol-0123456789abcdef0", "fsType": "ext4"}
    meta = {"name": "trial", **annotations}
    return VolumeView.of({"metadata": meta, "spec": {"awsElasticBlockStore": source}})


def rows(pattern: str, key: str = "rows") -> list[Any]:
    found = []
    for file in sorted(OBSERVED.glob(pattern)):
        document = json.loads(file.read_text())
        version = Version.parse(document["kubernetesVersion"])
        for number, row in enumerate(document[key]):
            found.append(pytest.param(version, row, id=f"{version}-{number}"))
    return found


@pytest.mark.parametrize(("version", "row"), rows("attach-*.json"))
def test_who_attaches(version: Version, row: dict[str, Any]) -> None:
    node = NodeView(
        csi_node=row["csiNode"],
        migrated=frozenset({AWS} if row["annotated"] else ()),
        drivers=frozenset({EBS} if row["driverListed"] else ()),
    )
    found = attach(stored(provisioned=False), Process(version, row["kcmGates"]), node)
    assert found.served_by == row["servedBy"]
    waiting = any(it.endswith("waiting") for it in row["seen"]["volumeAttachments"])
    assert ("it waits" in found.reason) is waiting


@pytest.mark.parametrize(("version", "row"), rows("claims/*.json"))
def test_who_serves_claims_and_what_is_written(version: Version, row: dict[str, Any]) -> None:
    controller = Process(version, row["kcmGates"])
    volume = stored(provisioned=row["volume"] != "made by hand")
    seen, served_by = row["seen"]["annotations"], row["servedBy"]
    mark = migrated_to(volume, controller)
    marked = {"pv.kubernetes.io/migrated-to": mark} if mark else {}
    written = marks(volume, controller)
    if row["operation"] in ("mark", "delete"):
        assert {key: it for key, it in written.items() if key.endswith("migrated-to")} == seen
    kind = "storage-resizer" if row["operation"] == "expand" else "storage-provisioner"
    if row["operation"] in ("provision", "expand"):
        assert {key: it for key, it in written.items() if key.endswith(kind)} == seen
    if row["volume"] == "made by hand":
        assert not any(key.endswith("storage-provisioner") for key in written)
    match row["operation"]:
        case "provision":
            assert provision(AWS, controller).served_by == served_by
            assert provisioner_annotations(AWS, controller) == seen
        case "delete":
            assert delete(volume, controller).served_by == served_by
            assert marked == seen
        case "expand":
            assert expand(volume, controller).served_by == served_by
            assert resizer(volume, controller) == seen.get(
                "volume.kubernetes.io/storage-resizer", ""
            )
        case "mark":
            assert (Side.CSI if mark else Side.NOBODY) == served_by
            assert marked == seen
        case other:
            pytest.fail(f"nothing is known here of {other}")


@pytest.mark.parametrize(("version", "row"), rows("kubelet/*.json", "kubeletStarts"))
def test_what_a_kubelet_announces(version: Version, row: dict[str, Any]) -> None:
    kubelet = Process(version, row["gates"])
    redirected = sorted(plugin for plugin in PLUGINS if kubelet.migrates(plugin))
    if row["gates"].get("CSIMigration") is False:
        # It leaves its CSINode alone, and what that listed before stays there.
        assert redirected == []
    else:
        assert row["migratedPlugins"] == ",".join(redirected)


def test_the_records_are_there() -> None:
    assert len(rows("attach-*.json")) >= 25
    assert len(rows("claims/*.json")) >= 25
    assert len(rows("kubelet/*.json", "kubeletStarts")) >= 5
