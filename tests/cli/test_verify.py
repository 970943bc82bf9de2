"""``replant verify``, as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import replant

HEAD = """\
apiVersion: replant.dev/v1alpha1
kind: MigrationOrder
plugin: aws-ebs
"""
FROM_OFF = "from: {controlPlane: {CSIMigrationAWS: false}, nodes: {CSIMigrationAWS: false}}\n"
KEPT = "drain: true, restartControllers: true, restrictScheduling: true"
RIGHT = f"""{HEAD}kubernetesVersion: "1.24"
{FROM_OFF}steps:
- controlPlane: {{CSIMigrationAWS: true}}
- nodes: {{{KEPT}, gates: {{CSIMigrationAWS: true}}}}
"""
WRONG = RIGHT.replace(KEPT, "drain: false, restartControllers: true")


def verify(text: str | bytes, *options: str) -> tuple[int, str, str]:
    stdin = text if isinstance(text, bytes) else text.encode()
    return replant("verify", "-", *options, stdin=stdin)


def test_a_safe_order_says_how_much_was_looked_at() -> None:
    code, out, err = verify(RIGHT)
    assert (code, err) == (0, "")
    assert out.startswith("Safe: 9,")
    assert out.endswith(" states can be reached, and none of them is bad.\n")


@pytest.mark.workflow("verify")
def test_an_unsafe_order_tells_how_step_by_step() -> None:
    code, out, err = verify(WRONG)
    assert (code, err) == (3, "")
    head, *events, end = out.split("\n\n")
    assert head.startswith("Unsafe for kubernetes.io/aws-ebs. The shortest story, of ")
    numbers = [line.split(".")[0].strip() for line in events[0].splitlines()]
    assert numbers == [str(number) for number in range(1, 9)]
    assert end.startswith("Yanked: the in-tree plugin detaches the disk from node A")


@pytest.mark.parametrize(
    ("order", "code", "bad_state"), [(RIGHT, 0, None), (WRONG, 3, "yanked")], ids=["right", "wrong"]
)
def test_machines_get_the_same_as_json(order: str, code: int, bad_state: str | None) -> None:
    found_code, out, err = verify(order, "-o", "json")
    found = json.loads(out)
    assert (found_code, err) == (code, "")
    assert list(found) == ["safe", "badState", "states", "story"]
    assert (found["safe"], found["badState"]) == (bad_state is None, bad_state)
    assert isinstance(found["states"], int)
    assert bool(found["story"]) is (bad_state is not None)
    assert all(isinstance(sentence, str) for sentence in found["story"])


def test_an_order_may_be_in_a_file_or_written_as_json(tmp_path: Path) -> None:
    file = tmp_path / "order.yaml"
    file.write_text(RIGHT)
    assert replant("verify", str(file)) == verify(RIGHT)
    as_json: dict[str, Any] = {
        "apiVersion": "replant.dev/v1alpha1",
        "kind": "MigrationOrder",
        "plugin": "kubernetes.io/aws-ebs",
        "kubernetesVersion": "v1.24",
        "metadata": {"name": "anything"},
        "steps": [{"nodes": {"gates": {"CSIMigrationAWS": False}}}],
    }
    assert verify(json.dumps(as_json))[0] == 3


@pytest.mark.parametrize(
    ("version", "code"),
    [
        # Locked on in the first patches of 1.26, free to be off from 1.26.4.
        ('"1.26"', 0),
        ("1.26", 0),
        ("v1.26", 0),
        ("1.26.4", 0),
        ("1.26.3", 1),
        ('"1.26.0-gke.1"', 1),
        ('"1.26 "', 0),
    ],
)
def test_a_minor_alone_means_its_newest_patch(version: str, code: int) -> None:
    order = RIGHT.replace("AWS: true", "AWS: false").replace('"1.24"', version)
    vsphere = order.replace("aws-ebs", "vsphere-volume").replace("AWS", "vSphere")
    assert verify(vsphere)[0] == code


VERSION = 'kubernetesVersion: "1.24"\n'
ROWS = [
    # The field and the line that are named, and why it is wrong.
    ("", "line 1: is not a map"),
    ("[]", "line 1: is not a map"),
    ("text", "line 1: is not a map"),
    (HEAD, "line 1: has no kubernetesVersion"),
    (HEAD + VERSION, "line 1: has no steps"),
    (RIGHT.replace("v1alpha1", "v2"), "line 1, apiVersion: is not replant.dev/v1alpha1"),
    (RIGHT.replace("MigrationOrder", "Order"), "line 2, kind: is not MigrationOrder"),
    (
        RIGHT.replace("aws-ebs", "glusterfs"),
        "line 3, plugin: is no plugin that a driver takes over",
    ),
    (RIGHT.replace("aws-ebs", "7"), "line 3, plugin: is not text"),
    (RIGHT.replace('"1.24"', '"1.16"'), "line 4, kubernetesVersion: 1.16 is not known here"),
    (RIGHT.replace('"1.24"', '"1.37"'), "line 4, kubernetesVersion: 1.37 is not known here"),
    (
        RIGHT.replace('"1.24"', "1.3"),
        'line 4, kubernetesVersion: may have been 1.30: put it in quotes, as in "1.30"',
    ),
    (RIGHT.replace('"1.24"', "1.2"), "line 4, kubernetesVersion: may have been 1.20"),
    (RIGHT.replace('"1.24"', "1"), "line 4, kubernetesVersion: is not text"),
    (RIGHT.replace('"1.24"', "null"), "line 4, kubernetesVersion: is not text"),
    (
        RIGHT.replace('"1.24"', "newest"),
        "line 4, kubernetesVersion: 'newest' is not a Kubernetes version",
    ),
    (
        RIGHT.replace('"1.24"', "-1.24"),
        "line 4, kubernetesVersion: '-1.24' is not a Kubernetes version",
    ),
    (RIGHT.replace('"1.24"', ".inf"), "line 4"),
    (RIGHT + "step: []\n", "line 9, step: is not a field here; is it steps?"),
    (RIGHT + "adc: openshift\n", "line 9, adc: is neither upstream nor node-driven"),
    (RIGHT + "adc: [node-driven]\n", "line 9, adc: is not text"),
    (RIGHT + 'driverInstalled: "yes"\n', "line 9, driverInstalled: is neither true nor false"),
    (RIGHT + "oldNodesJoin: never\n", "line 9, oldNodesJoin: is none of true, false and tainted"),
    (RIGHT + "oldNodesJoin: 1\n", "line 9, oldNodesJoin: is none of true, false and tainted"),
    (HEAD + VERSION + "from: []\nsteps: []\n", "line 5, from: is not a map"),
    (
        HEAD + VERSION + "from:\n  scheduler: {}\nsteps: []\n",
        "line 6, from.scheduler: is not a field here",
    ),
    (HEAD + VERSION + "from:\n  nodes: on\nsteps: []\n", "line 6, from.nodes: is not a map"),
    (
        HEAD + VERSION + "from:\n  nodes:\n    kubernetesVersion: '1.25'\nsteps: []\n",
        "line 5, from: makes kubelets (1.25) newer than the API server (1.24)",
    ),
    (HEAD + VERSION + "steps: {}\n", "line 5, steps: is not a list"),
    (HEAD + VERSION + "steps:\n", "line 5, steps: is not a list"),
]
STEPS = [
    ("drain", "is not a map"),
    ("{}", "is not one of controlPlane and nodes"),
    ("{controlPlane: {CSIMigrationAWS: true}, nodes: {}}", "is not one of controlPlane and nodes"),
    ("{controlplane: {}}", ".controlplane: is not a field here; is it controlPlane?"),
    ("{controlPlane: }", ".controlPlane: is not a map"),
    ("{controlPlane: {}}", ".controlPlane: gives neither gates nor a kubernetesVersion"),
    (
        "{controlPlane: {CSIMigrationAWS: 1}}",
        ".controlPlane.CSIMigrationAWS: is neither true nor false",
    ),
    (
        "{controlPlane: {CSIMigrationAWS: 'true'}}",
        ".controlPlane.CSIMigrationAWS: is neither true nor false",
    ),
    (
        "{controlPlane: {CSIMigrationAws: true}}",
        ".controlPlane.CSIMigrationAws: is no gate of the migration; is it CSIMigrationAWS?",
    ),
    ("{controlPlane: {1: true}}", ".controlPlane.1: is no gate"),
    (
        "{controlPlane: {CSIMigrationAWSComplete: true}}",
        ".controlPlane.CSIMigrationAWSComplete: went with 1.21",
    ),
    (
        "{controlPlane: {CSIMigration: false, CSIMigrationAWS: true}}",
        ".controlPlane.CSIMigrationAWS: needs CSIMigration, which is off",
    ),
    (
        "{controlPlane: {kubernetesVersion: '1.25', CSIMigrationAWS: false}}",
        ".controlPlane.CSIMigrationAWS: is locked to true at 1.25",
    ),
    (
        "{controlPlane: {kubernetesVersion: '1.25', CSIMigration: false}}",
        ".controlPlane.CSIMigration: is locked to true at 1.25",
    ),
    (
        "{controlPlane: {kubernetesVersion: '1.23'}}",
        ".controlPlane: makes kubelets (1.24) newer than the API server (1.23)",
    ),
    ("{nodes: {drain: true}}", ".nodes: gives neither gates nor a kubernetesVersion"),
    ("{nodes: {drain: true, gates: []}}", ".nodes.gates: is not a map"),
    (
        "{nodes: {drain: later, gates: {CSIMigrationAWS: true}}}",
        ".nodes.drain: is neither true nor false",
    ),
    (
        "{nodes: {restartControllers: 1, gates: {CSIMigrationAWS: true}}}",
        ".nodes.restartControllers: is neither true nor false",
    ),
    (
        "{nodes: {CSIMigrationAWS: true}}",
        ".nodes.CSIMigrationAWS: is not a field here; there are drain, gates, restartControllers",
    ),
    (
        "{nodes: {kubernetesVersion: '1.25'}}",
        ".nodes: makes kubelets (1.25) newer than the API server (1.24)",
    ),
    ("{nodes: {kubernetesVersion: 1.3}}", ".nodes.kubernetesVersion: may have been 1.30"),
]


@pytest.mark.parametrize(("order", "said"), ROWS, ids=[said for _order, said in ROWS])
def test_a_malformed_order_is_refused_with_its_line(order: str, said: str) -> None:
    code, out, err = verify(order, "-o", "json")
    assert (code, out) == (1, "")
    assert err.startswith("error: standard input")
    assert said in err


@pytest.mark.parametrize(("step", "said"), STEPS, ids=[step for step, _said in STEPS])
def test_a_malformed_step_is_refused_with_its_line(step: str, said: str) -> None:
    first = "- controlPlane: {CSIMigrationAWS: true}\n\n"
    code, out, err = verify(f"{HEAD}{VERSION}steps:\n{first}- {step}\n")
    separator = "" if said.startswith(".") else ": "
    assert (code, out) == (1, "")
    assert err.startswith(f"error: standard input, line 8, steps[1]{separator}{said}")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (RIGHT + "  - [\n", "line 9"),
        (RIGHT + "---\n" + RIGHT, "line 9"),
        ("\tkind: x\n", "line 1"),
        (b"kind: \xff\n", "standard input"),
        (HEAD + "a: &a [*a]\n", "an alias in it refers to what it is part of"),
        ("[" * 5000, "nested deeper"),
    ],
    ids=["unfinished", "two documents", "tab", "not UTF-8", "endless", "deep"],
)
def test_what_is_no_yaml_is_refused(order: str | bytes, said: str) -> None:
    code, out, err = verify(order)
    assert (code, out) == (1, "")
    assert said in err


@pytest.mark.parametrize("version", ["1e300", "1.5e300"])
def test_a_version_that_is_a_large_number_is_refused(version: str) -> None:
    code, out, err = verify(RIGHT.replace('"1.24"', version))
    assert (code, out) == (1, "")
    assert "line 4, kubernetesVersion: " in err


def test_a_field_that_is_given_twice_is_refused_with_its_line() -> None:
    code, _out, err = verify(RIGHT + "plugin: gce-pd\n")
    assert code == 1
    assert "the key 'plugin' is given twice (line 9" in err


def test_a_version_is_no_gate() -> None:
    order = f"{HEAD}{VERSION}steps:\n- nodes: {{gates: {{kubernetesVersion: '1.23'}}}}\n"
    assert verify(order)[0] == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yaml"):
        code, out, err = replant("verify", str(path))
        assert (code, out) == (1, "")
        assert str(path) in err


def test_an_order_that_is_too_large_is_refused() -> None:
    code, out, err = verify(RIGHT + "#" * 2**21, "--max-size", "1")
    assert (code, out) == (1, "")
    assert "standard input" in err
