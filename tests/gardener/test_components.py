"""What components are told, stage by stage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replant.errors import InputError
from replant.gardener.commandline import CommandLine
from replant.gardener.components import (
    gates,
    told_deployment,
    told_kubelet_config,
    told_kubelet_flags,
)
from replant.gardener.decisions import DEPLOYMENTS
from replant.gardener.providers import PROVIDERS
from replant.gardener.shoots import NEEDS_COMPLETE, Stage, stage_of, stage_of_cluster
from replant.gates.settings import refusals
from replant.gates.versions import Version
from tests.gardener.objects import AWS, cluster, deployment, shoot

CONFIG = "--cloud-config=/etc/kubernetes/cloudprovider/cloudprovider.conf"
TWO = "--feature-gates=CSIMigration=true,CSIMigrationAWS=true"
THREE = f"{TWO},CSIMigrationAWSComplete=true"
NOT_USED, IN_PROGRESS, COMPLETE = Stage
V18 = Version(1, 18, 3)

TOLD: dict[tuple[str, Stage], list[str]] = {
    ("kube-apiserver", NOT_USED): [
        "--cloud-provider=aws",
        CONFIG,
        "--enable-admission-plugins=PersistentVolumeLabel",
    ],
    ("kube-apiserver", IN_PROGRESS): [
        "--cloud-provider=aws",
        CONFIG,
        "--enable-admission-plugins=PersistentVolumeLabel",
        TWO,
    ],
    ("kube-apiserver", COMPLETE): ["--disable-admission-plugins=PersistentVolumeLabel", THREE],
    ("kube-controller-manager", NOT_USED): [
        "--cloud-provider=external",
        CONFIG,
        "--external-cloud-volume-plugin=aws",
    ],
    ("kube-controller-manager", IN_PROGRESS): [
        "--cloud-provider=external",
        CONFIG,
        "--external-cloud-volume-plugin=aws",
        TWO,
    ],
    ("kube-controller-manager", COMPLETE): ["--cloud-provider=external", THREE],
    ("kube-scheduler", NOT_USED): [],
    ("kube-scheduler", IN_PROGRESS): [TWO],
    ("kube-scheduler", COMPLETE): [THREE],
}


def command_of(obj: dict[str, Any]) -> list[str]:
    words: list[str] = obj["spec"]["template"]["spec"]["containers"][1]["command"]
    return words


@pytest.mark.parametrize(("name", "stage"), TOLD)
def test_what_a_component_is_told(name: str, stage: Stage) -> None:
    bare = deployment(name)
    told = told_deployment(bare, AWS, stage, V18)
    assert command_of(told)[1:] == TOLD[name, stage]
    assert bare == deployment(name), "the input was changed"
    without = told_deployment(deployment(name, *TOLD[name, stage]), AWS, stage, V18)
    assert without == deployment(name, *TOLD[name, stage])


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_from_any_stage_to_any_other(name: str) -> None:
    for before in Stage:
        for after in Stage:
            start = told_deployment(deployment(name, "--v=2"), AWS, before, V18)
            ended = told_deployment(start, AWS, after, V18)
            direct = told_deployment(deployment(name, "--v=2"), AWS, after, V18)
            assert sorted(command_of(ended)) == sorted(command_of(direct)), (before, after)
            assert told_deployment(ended, AWS, after, V18) is ended


@pytest.mark.parametrize(
    ("version", "named"), [("1.30.14", True), ("1.31.0", False), ("1.36.3", False)]
)
@pytest.mark.parametrize("stage", Stage)
def test_an_admission_plugin_is_not_named_to_a_server_that_has_it_no_longer(
    version: str, named: bool, stage: Stage
) -> None:
    """One that it does not know keeps an API server from starting, also where it is to be off."""
    for flag in ("enable", "disable"):
        given = f"--{flag}-admission-plugins=PersistentVolumeLabel,Priority"
        bare = deployment("kube-apiserver", given)
        told = told_deployment(bare, AWS, stage, Version.parse(version))
        words = " ".join(command_of(told))
        assert ("PersistentVolumeLabel" in words) is named
        assert f"--{flag}-admission-plugins=Priority" in words or named
        assert told_deployment(told, AWS, stage, Version.parse(version)) is told


def test_what_else_there_is_stays_where_it_is() -> None:
    flags = (
        "--enable-admission-plugins=Priority,PersistentVolumeLabel,NodeRestriction",
        "--cloud-provider",
        "aws",
        "--feature-gates=Other=false,CSIMigrationAWS=false",
        "--disable-admission-plugins=",
        "--v=2",
        "--feature-gates=More=true",
    )
    told = told_deployment(deployment("kube-apiserver", *flags), AWS, COMPLETE, V18)
    assert command_of(told)[1:] == [
        "--enable-admission-plugins=Priority,NodeRestriction",
        (
            "--feature-gates="
            "Other=false,CSIMigrationAWS=true,More=true,CSIMigration=true,CSIMigrationAWSComplete=true"
        ),
        "--disable-admission-plugins=PersistentVolumeLabel",
        "--v=2",
    ]


def test_a_flag_takes_the_word_behind_it_and_is_there_once() -> None:
    line = CommandLine(["k", "--cloud-provider", "--v=2", "", "--cloud-provider=aws"], ["--x"])
    line.set("cloud-provider", "external")
    assert (line.command, line.args) == (["k", "--cloud-provider=external", ""], ["--x"])
    both = CommandLine(["k", "--cloud-provider=a"], ["--cloud-provider=b", "--cloud-config"])
    both.set("cloud-provider", "c")
    both.remove("cloud-config")
    assert (both.command, both.args) == (["k", "--cloud-provider=c"], [])


def test_flags_are_found_in_the_arguments() -> None:
    line = CommandLine(["kube-scheduler"], ["--v=2"])
    line.gates({"A": True})
    assert (line.command, line.args) == (["kube-scheduler"], ["--v=2", "--feature-gates=A=true"])


def test_other_deployments_are_not_ours() -> None:
    other = deployment("gardener-resource-manager")
    assert told_deployment(other, AWS, COMPLETE, V18) is other


def test_one_without_its_container_is_refused() -> None:
    bare = deployment("kube-apiserver")
    bare["spec"]["template"]["spec"]["containers"].pop()
    with pytest.raises(InputError, match=r"Deployment .*/kube-apiserver: it has no container"):
        told_deployment(bare, AWS, COMPLETE, V18)


@pytest.mark.parametrize(
    ("provider", "version", "expected"),
    [
        ("aws", "1.18", ["CSIMigration", "CSIMigrationAWS", "CSIMigrationAWSComplete"]),
        ("gcp", "1.20.15", ["CSIMigration", "CSIMigrationGCE", "CSIMigrationGCEComplete"]),
        ("gcp", "1.21.0", ["CSIMigration", "CSIMigrationGCE", "InTreePluginGCEUnregister"]),
        (
            "openstack",
            "1.22",
            ["CSIMigration", "CSIMigrationOpenStack", "InTreePluginOpenStackUnregister"],
        ),
        (
            "azure",
            "1.21",
            [
                "CSIMigration",
                "CSIMigrationAzureDisk",
                "CSIMigrationAzureFile",
                "InTreePluginAzureDiskUnregister",
                "InTreePluginAzureFileUnregister",
            ],
        ),
        ("aws", "1.28", ["InTreePluginAWSUnregister"]),
        ("aws", "1.31", []),
    ],
)
def test_the_gates_of_a_complete_migration(
    provider: str, version: str, expected: list[str]
) -> None:
    found = gates(PROVIDERS[provider], COMPLETE, Version.parse(version))
    assert [gate for gate, on in found.items() if on] == expected


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_component_of_any_version_is_kept_from_starting(provider: str) -> None:
    for minor in range(17, 37):
        for stage in Stage:
            version = Version(1, minor)
            told = gates(PROVIDERS[provider], stage, version)
            assert not refusals(version, {gate: on for gate, on in told.items() if on is not None})


def test_a_gate_of_an_older_version_goes() -> None:
    old = deployment("kube-scheduler", THREE)
    told = told_deployment(old, AWS, COMPLETE, Version(1, 21))
    assert command_of(told)[1:] == [f"{TWO},InTreePluginAWSUnregister=true"]


def test_a_kubelet_has_all_gates_or_none() -> None:
    given = {"kind": "KubeletConfiguration", "featureGates": {"Other": False}}
    gone = {"kind": "KubeletConfiguration"}
    three = {"CSIMigration": True, "CSIMigrationAWS": True, "CSIMigrationAWSComplete": True}
    assert told_kubelet_config(given, AWS, NOT_USED, V18) == given
    assert told_kubelet_config(gone, AWS, NOT_USED, V18) == gone
    for stage in (IN_PROGRESS, COMPLETE):
        told = told_kubelet_config(given, AWS, stage, V18)
        assert told == {**given, "featureGates": {"Other": False, **three}}
        assert told_kubelet_config(told, AWS, NOT_USED, V18) == given
        newer = told_kubelet_config(gone, AWS, stage, Version(1, 21, 5))["featureGates"]
        assert isinstance(newer, dict)
        assert list(newer)[2:] == ["InTreePluginAWSUnregister"]


def test_a_kubelet_s_cloud() -> None:
    gcp = PROVIDERS["gcp"]
    words = ["/usr/local/bin/kubelet", "--cloud-provider=x", "--v=2"]
    for stage, cloud in ((NOT_USED, "gce"), (IN_PROGRESS, "external"), (COMPLETE, "external")):
        told = told_kubelet_flags(words, gcp, stage)
        assert told == ["/usr/local/bin/kubelet", f"--cloud-provider={cloud}", "--v=2"]


@pytest.mark.parametrize(
    ("version", "annotated", "stage"),
    [
        ("1.17.9", False, NOT_USED),
        ("1.17.9", True, NOT_USED),
        ("1.18.0", False, IN_PROGRESS),
        ("v1.18.20-x", True, COMPLETE),
        ("1.19.0", False, COMPLETE),
        ("1.19.0", True, COMPLETE),
    ],
)
def test_the_stage_of_a_shoot(version: str, annotated: bool, stage: Stage) -> None:
    parsed = Version.parse(version)
    assert stage_of(parsed, Version(1, 18), needs_complete=annotated) is stage
    marks = [NEEDS_COMPLETE] if annotated else []
    assert stage_of_cluster(cluster(shoot(version), *marks), AWS) == (stage, parsed)


@pytest.mark.parametrize(
    ("provider", "version", "cloud", "two", "third"),
    [
        ("gcp", "1.18.4", "gce", ["CSIMigration", "CSIMigrationGCE"], ["CSIMigrationGCEComplete"]),
        (
            "openstack",
            "1.19.2",
            "openstack",
            ["CSIMigration", "CSIMigrationOpenStack"],
            ["CSIMigrationOpenStackComplete"],
        ),
        (
            "azure",
            "1.21.7",
            "azure",
            ["CSIMigration", "CSIMigrationAzureDisk", "CSIMigrationAzureFile"],
            ["InTreePluginAzureDiskUnregister", "InTreePluginAzureFileUnregister"],
        ),
    ],
)
def test_what_other_providers_control_planes_are_told(
    provider: str, version: str, cloud: str, two: list[str], third: list[str]
) -> None:
    def told(name: str, stage: Stage) -> list[str]:
        parsed = Version.parse(version)
        return command_of(told_deployment(deployment(name), PROVIDERS[provider], stage, parsed))[1:]

    def flag(names: list[str]) -> str:
        return "--feature-gates=" + ",".join(f"{it}=true" for it in names)

    label = "PersistentVolumeLabel"
    before = [f"--cloud-provider={cloud}", CONFIG, f"--enable-admission-plugins={label}"]
    assert told("kube-apiserver", NOT_USED) == before
    assert told("kube-apiserver", IN_PROGRESS) == [*before, flag(two)]
    assert told("kube-apiserver", COMPLETE) == [
        f"--disable-admission-plugins={label}",
        flag(two + third),
    ]
    external = "--cloud-provider=external"
    before = [external, CONFIG, f"--external-cloud-volume-plugin={cloud}"]
    assert told("kube-controller-manager", NOT_USED) == before
    assert told("kube-controller-manager", IN_PROGRESS) == [*before, flag(two)]
    assert told("kube-controller-manager", COMPLETE) == [external, flag(two + third)]
    stages = [told("kube-scheduler", it) for it in Stage]
    assert stages == [[], [flag(two)], [flag(two + third)]]


def test_providers() -> None:
    assert {name: (str(it.migration), it.cloud) for name, it in PROVIDERS.items()} == {
        "aws": ("1.18.0", "aws"),
        "gcp": ("1.18.0", "gce"),
        "openstack": ("1.19.0", "openstack"),
        "azure": ("1.21.0", "azure"),
    }
    assert PROVIDERS["azure"].classes == (
        ("default", "kubernetes.io/azure-disk"),
        ("managed-standard-hdd", "kubernetes.io/azure-disk"),
        ("managed-standard-ssd", "kubernetes.io/azure-disk"),
        ("managed-premium-ssd", "kubernetes.io/azure-disk"),
        ("files", "kubernetes.io/azure-file"),
    )
    for name, provisioner, classes in (
        ("aws", "kubernetes.io/aws-ebs", ("default", "gp2")),
        ("gcp", "kubernetes.io/gce-pd", ("default", "gce-sc-fast")),
        ("openstack", "kubernetes.io/cinder", ("default", "default-class")),
    ):
        assert PROVIDERS[name].classes == tuple((it, provisioner) for it in classes)


WORDS = st.lists(
    st.sampled_from(
        [
            "--cloud-provider=aws", "--cloud-provider", "aws", "--v=2", CONFIG, TWO, THREE, "",
            "--enable-admission-plugins=PersistentVolumeLabel,X", "--feature-gates=Odd",
            "--disable-admission-plugins=PersistentVolumeLabel", "--feature-gates=",
        ]
    )
)  # fmt: skip


@given(WORDS, st.sampled_from(DEPLOYMENTS), st.sampled_from(Stage), st.integers(17, 36))
def test_told_twice_nothing_changes(flags: list[str], name: str, stage: Stage, minor: int) -> None:
    version = Version(1, minor)
    once = told_deployment(deployment(name, *flags), AWS, stage, version)
    assert told_deployment(once, AWS, stage, version) == once
