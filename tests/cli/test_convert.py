"""``replant convert`` as a shell runs it: what is shown, what is done, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.sandbox.scenario import ControlPlane, Pool, Scenario, Spare, VolumeClass
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.cli.shell import replant
from tests.execute.living import small
from tests.sandbox.test_scenarios import read

DO = ("--dry-run=false", "--yes")
USAGE = 1
GIVEN = {"gates": {"CSIMigrationAWS": True}}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster that redirects everywhere already."""
    folder = tmp_path_factory.mktemp("cluster")
    made = small(2)
    made["controlPlane"] |= GIVEN
    made["pools"][0] |= GIVEN
    scenario = read(yaml.safe_dump(made), folder).scenario()
    with closing(open_port(0)) as listening, serving(Sandbox.of(scenario, speed=20), listening):
        write_kubeconfig(folder / "config", listening.getsockname()[1])
        yield str(folder / "config")


def convert(kubeconfig: str, *arguments: str) -> tuple[int, str, str]:
    return replant("convert", *arguments, "--kubeconfig", kubeconfig)


def plan_of(kubeconfig: str, *arguments: str) -> Any:
    code, out, said = convert(kubeconfig, *arguments, "-o", "json")
    assert code == 0, said
    return json.loads(out)


def volumes(kubeconfig: str) -> list[str]:
    plan = plan_of(kubeconfig)
    return [it["name"] for step in plan["steps"] for it in step["volumes"]]


def test_nothing_is_done_unless_it_is_said(kubeconfig: str) -> None:
    code, out, said = convert(kubeconfig)
    assert code == 0, said
    assert "Replace 5 volumes by native CSI ones" in out
    assert "Proof: safe" in out
    assert len(volumes(kubeconfig)) == 5


@pytest.mark.workflow("convert")
def test_one_goes_there_and_back_and_the_others_stay(kubeconfig: str) -> None:
    first, *others = volumes(kubeconfig)
    code, out, said = convert(kubeconfig, first, *DO)
    assert code == 0, said
    assert "1 volume replaced." in out
    assert volumes(kubeconfig) == others
    code, out, _said = convert(kubeconfig, first)
    assert "is native already" in out
    code, out, said = convert(kubeconfig, "--undo", *DO)
    assert code == 0, said
    assert sorted(volumes(kubeconfig)) == sorted([first, *others])
    code, _out, said = convert(kubeconfig, "--undo", *DO)
    assert code == 1
    assert "no volume is native by a conversion" in said
    code, _out, said = replant("apply", "--undo", "--yes", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "One that is done is taken back by its name: --undo --run ID." in said


def test_a_plan_in_a_file_is_proved_and_carried_out(kubeconfig: str, tmp_path: Path) -> None:
    _code, out, _said = convert(kubeconfig, "-o", "yaml")
    plan = tmp_path / "plan.yaml"
    plan.write_text(out)
    assert replant("verify", str(plan))[0] == 0
    code, _out, said = replant("apply", str(plan), "--yes", "--kubeconfig", kubeconfig)
    assert code == 0, said
    assert volumes(kubeconfig) == []
    # It was made for a cluster that is another one by now.
    code, _out, said = replant("apply", str(plan), "--yes", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "Make the plan anew" in said
    assert convert(kubeconfig, "--undo", *DO)[0] == 0


@pytest.fixture
def unsuited(tmp_path: Path) -> Iterator[str]:
    """A cluster with two volumes of which the driver copes with none that is native."""
    gates = {"CSIMigrationvSphere": True}
    drivers = ("csi.vsphere.vmware.com",)
    scenario = Scenario(
        api_version="replant.dev/v1alpha1",
        kind="Scenario",
        control_plane=ControlPlane(gates=gates),
        drivers=drivers,
        pools=(Pool(name="workers", gates=gates, drivers=drivers),),
        classes=(VolumeClass(name="thin", plugin="vsphere-volume"),),
        spares=(Spare(storage_class="thin", count=2),),
    )
    with closing(open_port(0)) as listening, serving(Sandbox.of(scenario, speed=20), listening):
        write_kubeconfig(tmp_path / "config", listening.getsockname()[1])
        yield str(tmp_path / "config")


def test_what_somebody_knows_better_about_is_carried_out_from_a_file(
    unsuited: str, tmp_path: Path
) -> None:
    for named in ((), ("pvc-00000000-default",)):
        code, out, _said = convert(unsuited, *named)
        assert code == (3 if named else 0)
        assert "stays as it is" in out
        assert "Steps: none. What is left cannot be done" in out
        assert "Everything is as it should be" not in out
    code, _out, said = convert(unsuited, *DO)
    assert code == 0
    assert "what is left cannot be done" in said
    assert "nothing to do" not in said

    code, out, said = convert(unsuited, "--accept-unsuited", "--accept-losses", "-o", "yaml")
    assert code == 0, said
    plan = tmp_path / "plan.yaml"
    plan.write_text(out)
    assert replant("verify", str(plan))[0] == 0
    code, out, said = replant("apply", str(plan), "--yes", "--kubeconfig", unsuited)
    assert code == 0, said
    assert "2 volumes replaced." in out
    code, out, _said = convert(unsuited)
    assert "Steps: none. Everything is as it should be." in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nope",), 1, "There is no PersistentVolume nope."),
        (("--undo", "nope", *DO), 1, "No journal has PersistentVolume nope"),
        (("-f", "x.yaml", "--dry-run=false"), USAGE, "files cannot be changed"),
        (("-f", "x.yaml", "--undo"), USAGE, "leave -f out"),
        (("--parallel", "0"), USAGE, "--parallel"),
        (("--dry-run=perhaps",), USAGE, "--dry-run"),
        (("-l", "=",), USAGE, "selector"),
        (("--plugin", "nfs"), USAGE, "no driver takes over from 'nfs'"),
        (("--dry-run=false",), 1, "say --yes"),
    ],
)  # fmt: skip
def test_bad_input(kubeconfig: str, arguments: tuple[str, ...], code: int, said: str) -> None:
    ended, _out, told = convert(kubeconfig, *arguments)
    assert (ended, said in told) == (code, True), told


def test_a_dump_is_enough_to_see_what_can_be_native() -> None:
    dump = Path(__file__).parents[2] / "examples" / "cluster.yaml"
    code, out, said = replant("convert", "-f", str(dump), "--server-version", "1.24.17")
    assert code == 0, said
    assert "stays as it is" in out


PATCHED = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "db"},
            "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "gp2"},
            "provisioner": "kubernetes.io/aws-ebs",
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "template": {
                    "spec": {
                        "volumes": [{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-2"}}]
                    }
                }
            },
        },
    ],
}


def test_a_repository_is_told_what_to_say_from_a_dump_alone(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(PATCHED))
    options = ("--storage-classes", "--inline", "--inline-capacity", "5Gi", "-o", "patch")
    code, out, said = replant("convert", "-f", str(dump), *options)
    assert code == 0, said
    kinds = [it["kind"] for it in yaml.safe_load_all(out) if it]
    claim = ["PersistentVolume", "PersistentVolumeClaim"]
    assert kinds == ["PersistentVolume", *claim, "Deployment", "StorageClass"]
    assert "storage: 5Gi" in out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-o", "patch", "--dry-run=false"), "-o patch changes nothing"),
        (("-o", "patch", "--undo"), "-o patch changes nothing"),
        (("--undo", "--inline"), "replant apply --undo"),
        (("--undo", "--storage-classes"), "replant apply --undo"),
        (("--class-suffix", "_CSI"), "No class can have a name that ends with"),
    ],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], why: str) -> None:
    code, _, said = replant("convert", *arguments)
    assert code == USAGE
    assert why in said.replace("\n", " ")


def test_classes_are_made_beside_from_a_shell(kubeconfig: str) -> None:
    plan = plan_of(kubeconfig, "--class-suffix=-csi")
    assert plan["steps"][-1]["kind"] == "CreateObjects"
    plan = plan_of(kubeconfig, "--storage-classes")
    assert plan["steps"][-1]["kind"] == "ReplaceClasses"
