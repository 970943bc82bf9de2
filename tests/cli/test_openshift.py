"""An OpenShift is known by its APIs, and its plans are for its own actuator."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from replant.cluster.live import connect
from replant.cluster.ports import FEATURE_GATES
from replant.cluster.writing import LiveWriter
from replant.plan.courses import CONTROLLER
from replant.plan.model import Plan
from replant.platforms.openshift import CLUSTER, OPERATORS
from tests.cli.shell import replant
from tests.execute.living import sandbox_of, small
from tests.execute.test_openshift import NODE_DRIVEN, openshift

SHOWN = openshift((), NODE_DRIVEN)
SHOWN["controlPlane"]["gates"] = {"ADC_CSIMigrationAWS": True}


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (openshift(()), ("openshift", "upstream", ["switch-control-plane", "roll-nodes"])),
        (SHOWN, ("openshift", "node-driven", ["roll-nodes", "switch-control-plane"])),
        (small(), ("generic", "upstream", ["switch-control-plane", "roll-nodes"])),
    ],
    ids=["openshift", "openshift that shows its patch", "another"],
)
def test_the_platform_is_detected(
    scenario: dict[str, object], expected: tuple[str, str, list[str]], tmp_path: Path
) -> None:
    with sandbox_of(scenario, tmp_path) as kubeconfig:
        code, out, err = replant("plan", "enable", "--kubeconfig", str(kubeconfig), "-o", "json")
        assert code == 0, err
        plan = msgspec.convert(json.loads(out), Plan)
        steps = [it.id for it in plan.steps]
        assert (plan.platform, plan.attach_controller, steps) == expected


def test_what_is_for_ever_is_not_done_without_consent(tmp_path: Path) -> None:
    with sandbox_of(openshift(()), tmp_path) as kubeconfig:
        config = ("--kubeconfig", str(kubeconfig))
        _code, plan, _err = replant("plan", "enable", "-o", "yaml", *config)
        code, _out, err = replant("apply", "-", "--yes", *config, stdin=plan.encode())
        assert code == 1
        assert "Agree with --accept-no-upgrade" in err


def test_what_the_sets_would_turn_on_besides_is_not_begun(tmp_path: Path) -> None:
    """They turn on six plugins, and the driver of another one in use is missing."""
    classes = [{"name": "gp2", "plugin": "aws-ebs"}, {"name": "vs", "plugin": "vsphere-volume"}]
    workloads = [
        {"name": it, "replicas": 1, "storageClass": storage_class}
        for it, storage_class in (("images", "gp2"), ("metrics", "vs"))
    ]
    with sandbox_of(openshift(classes=classes, workloads=workloads), tmp_path) as kubeconfig:
        config = ("--kubeconfig", str(kubeconfig))
        code, plan, _err = replant("plan", "enable", "--plugin", "aws-ebs", "-o", "yaml", *config)
        assert code == 0
        said = "The feature sets turn on kubernetes.io/vsphere-volume as well"
        assert said in " ".join(plan.split())
        code, _out, err = replant("apply", "-", "--yes", *config, stdin=plan.encode())
        assert code == 1
        assert said in err
        assert "replant plan enable --plugin aws-ebs --plugin vsphere-volume" in err
        assert feature_set(kubeconfig) == ""
        code, out, _err = replant("plan", "enable", *config)
        assert code == 3
        assert "csi.vsphere.vmware.com is not installed" in out


def test_what_no_set_has_turned_on_is_not_begun_to_be_turned_off(tmp_path: Path) -> None:
    with sandbox_of(openshift(kubernetesVersion="1.23.17"), tmp_path) as kubeconfig:
        config = ("--kubeconfig", str(kubeconfig))
        code, plan, _err = replant("plan", "disable", "-o", "yaml", *config)
        assert code == 0
        assert "there is no set to take away" in " ".join(plan.split())
        code, _out, err = replant("apply", "-", "--yes", *config, stdin=plan.encode())
        assert code == 1
        assert "CSIMigrationAWS cannot be turned off: it is on by default" in err


def feature_set(kubeconfig: Path) -> str:
    async def ask() -> str:
        async with connect(str(kubeconfig)) as reader:
            spec = msgspec.json.decode(await reader.get(FEATURE_GATES, CLUSTER)).get("spec") or {}
            return str(spec.get("featureSet") or "")

    return asyncio.run(ask())


def test_such_a_plan_is_for_no_other_actuator(tmp_path: Path) -> None:
    with sandbox_of(openshift(), tmp_path) as kubeconfig:
        config = ("--kubeconfig", str(kubeconfig))
        _code, plan, _err = replant("plan", "enable", "-o", "yaml", *config)
        given = ("--yes", "--actuator", "sandbox", *config)
        code, _out, err = replant("apply", "-", *given, stdin=plan.encode())
        assert code == 1
        assert "--actuator openshift is for plans made with --nodes platform" in err


def test_gates_of_the_control_plane_are_what_its_operator_says(tmp_path: Path) -> None:
    told = {"extendedArguments": {"feature-gates": ["Other=false", "CSIMigrationAWS=true"]}}

    async def say(kubeconfig: str) -> None:
        async with connect(kubeconfig) as reader:
            patch = {"spec": {"observedConfig": told}}
            await LiveWriter(reader).patch(OPERATORS[CONTROLLER], CLUSTER, patch)

    with sandbox_of(openshift(), tmp_path) as kubeconfig:
        asyncio.run(say(str(kubeconfig)))
        given = ("plan", "enable", "--kubeconfig", str(kubeconfig), "-o", "json")
        _code, out, err = replant(*given)
        assert json.loads(out)["controlPlane"]["gates"] == {"CSIMigrationAWS": True}, err
        _code, out, _err = replant(*given, "--control-plane-gates", "CSIMigrationAWS=false")
        assert json.loads(out)["controlPlane"]["gates"] == {"CSIMigrationAWS": False}


def test_a_downgrade_is_planned_and_proved(tmp_path: Path) -> None:
    with sandbox_of(openshift(kubernetesVersion="1.23.17"), tmp_path) as kubeconfig:
        given = ("plan", "downgrade", "--to", "1.22", "--kubeconfig", str(kubeconfig))
        code, plan, err = replant(*given, "--adc", "upstream", "-o", "yaml")
        assert code == 0, err
        code, out, _err = replant("verify", "-", stdin=plan.encode())
        assert (code, out[:5]) == (0, "Safe:")
        code, out, _err = replant(*given)
        assert code == 0
        assert "ADC_CSIMigrationAWS is not seen" in out.replace("\n          ", " ")
        assert "Step 1, keep-control-plane:" in out
        code, out, _err = replant(*given, "--adc", "node-driven")
        assert code == 0
        assert "Step 1, downgrade: Downgrade the cluster to Kubernetes 1.22" in out
        code, _out, err = replant("plan", "downgrade", "--kubeconfig", str(kubeconfig))
        assert (code, "--to" in err) == (1, True)
    # Where nothing can be taken along it is said before anything is done.
    with sandbox_of(openshift((), kubernetesVersion="1.23.17"), tmp_path) as kubeconfig:
        config = ("--kubeconfig", str(kubeconfig))
        code, _out, err = replant("apply", "-", "--yes", *config, stdin=plan.encode())
        assert code == 1
        assert "Go back before the downgrade instead" in err


def test_at_the_end_of_the_gates_nothing_is_done_and_it_is_said(tmp_path: Path) -> None:
    said = "CSIMigrationAWS is on for good at Kubernetes 1.27"
    with sandbox_of(openshift(kubernetesVersion="1.28.15"), tmp_path) as kubeconfig:
        config = ("--kubeconfig", str(kubeconfig))
        code, plan, err = replant("plan", "enable", *config, "-o", "yaml")
        assert code == 0, err
        assert said.replace("1.27", "1.28") in plan.replace("\n    ", " ")
        code, out, err = replant("apply", "-", "--yes", *config, stdin=plan.encode())
        assert (code, out) == (0, "")
        assert "there is nothing to do" in err
        assert "no longer operational, and nothing is done" in err

        # A set that was left behind is found; on other clusters nobody looks for one.
        async def leave(kubeconfig: str) -> None:
            async with connect(kubeconfig) as reader:
                patch = {"spec": {"featureSet": "CSIMigrationNode"}}
                await LiveWriter(reader).patch(FEATURE_GATES, CLUSTER, patch)

        code, out, _err = replant("scan", *config, "-o", "json")
        assert "RP602" not in out
        asyncio.run(leave(str(kubeconfig)))
        code, out, _err = replant("scan", *config, "-o", "json")
        (found,) = [it for it in json.loads(out)["findings"] if it["id"] == "RP602"]
        assert (found["severity"], found["object"]["name"]) == ("warning", "cluster")
    with sandbox_of(small(), tmp_path) as kubeconfig:
        code, out, err = replant("scan", "--kubeconfig", str(kubeconfig), "-o", "json")
        assert "FeatureGate" not in out + err
