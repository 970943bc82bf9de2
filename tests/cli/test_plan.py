"""``replant plan`` and ``replant verify``, as a shell sees them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from replant.plan.model import Plan
from tests.cli.shell import REPLANT, replant
from tests.inventory.clusters import EVERY_KIND, Object, pv, storage_class
from tests.plan.clusters import Kubelet, objects_of

SERVER = ("--server-version", "1.22.17")
ONE = (Kubelet(),)


def dump(*extra: Object, **more: Any) -> Object:
    lists = [{"apiVersion": "v1", "kind": f"{kind}List", "items": []} for kind in EVERY_KIND]
    items = [*lists, *objects_of("kubernetes.io/aws-ebs", *extra, **{"kubelets": ONE, **more})]
    return {"apiVersion": "v1", "kind": "List", "items": items}


CLUSTER = dump()
ON = {"gates": {"CSIMigrationAWS": True}, "kubelets": (Kubelet(gates={"CSIMigrationAWS": True}),)}


def plan(*arguments: str, cluster: Object = CLUSTER) -> tuple[int, str, str]:
    goal, *rest = arguments or ("enable",)
    return replant("plan", goal, "-f", "-", *SERVER, *rest, stdin=cluster)


@pytest.fixture(scope="module")
def made() -> str:
    """A plan, as YAML."""
    code, out, _ = plan("enable", "-o", "yaml")
    assert code == 0
    return out


def test_yaml_and_json_are_the_same_plan_and_are_repeated_exactly(made: str) -> None:
    code, out, err = plan("enable", "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == yaml.safe_load(made)
    assert plan("enable", "-o", "yaml")[1] == made
    read = msgspec.convert(yaml.safe_load(made), Plan)
    assert read.proof is not None
    assert read.proof.safe


def test_a_plan_does_not_depend_on_the_order_of_sets() -> None:
    """In processes of their own, which hash texts in other ways."""
    arguments = ["plan", "enable", "-f", "-", *SERVER, "-o", "yaml"]
    plans = {
        subprocess.run(
            [REPLANT, *arguments],
            input=json.dumps(dump(kubelets=ONE * 6)).encode(),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(plans) == 1


@pytest.mark.workflow("plan")
def test_the_table_has_preflight_steps_and_proof_in_this_order() -> None:
    code, out, err = plan()
    assert (code, err) == (0, "")
    words = ("Enable kubernetes.io/aws-ebs", "Preflight", "Step 1, switch-control-plane",
             "Step 2, roll-nodes", "1. cordon", "6. uncordon", "Proof: safe.")  # fmt: skip
    places = [out.index(word) for word in words]
    assert places == sorted(places)
    assert max(map(len, out.splitlines())) <= 110


@pytest.mark.parametrize(
    ("arguments", "cluster", "code"),
    [
        (("enable",), CLUSTER, 0),
        (("enable",), dump(kubelets=(Kubelet(drivers=()),)), 3),
        (("disable",), dump(**ON), 0),
        (("complete",), dump(storage_class(), **ON), 0),
        (("complete",), CLUSTER, 1),
        (("enable", "--plugin", "nope"), CLUSTER, 1),
        (("enable", "--plugin", "portworx-volume"), CLUSTER, 1),
        (("enable", "--max-unavailable", "0"), CLUSTER, 1),
        (("enable", "--control-plane-gates", "CSIMigrationAWS"), CLUSTER, 1),
        (("nope",), CLUSTER, 1),
        (("enable",), {"apiVersion": "v1", "kind": "List", "items": []}, 1),
    ],
)
def test_exit_codes(arguments: tuple[str, ...], cluster: Object, code: int) -> None:
    got, out, err = plan(*arguments, cluster=cluster)
    assert got == code
    assert bool(out) is (code != 1)
    assert bool(err) is (code == 1)


def test_a_plugin_that_is_named_twice_is_planned_once() -> None:
    named = ("--plugin", "aws-ebs,kubernetes.io/aws-ebs", "--plugin", "aws-ebs")
    assert json.loads(plan("enable", "-o", "json", *named)[1])["plugins"] == [
        "kubernetes.io/aws-ebs"
    ]


def test_choices_reach_the_plan() -> None:
    chosen = ("--nodes", "replace", "--max-unavailable", "3", "--platform", "openshift")
    found = json.loads(plan("enable", "-o", "json", *chosen)[1])
    roll = found["steps"][-1]
    assert (roll["method"], roll["maxUnavailable"]) == ("replace", 3)
    assert (found["platform"], found["attachController"]) == ("openshift", "upstream")
    declared = json.loads(plan("enable", "-o", "json", *chosen, "--adc", "node-driven")[1])
    assert declared["attachController"] == "node-driven"


def test_without_a_version_there_is_no_plan() -> None:
    code, out, err = replant("plan", "enable", "-f", "-", stdin=CLUSTER)
    assert (code, out) == (1, "")
    assert "--server-version" in err


def test_no_plan_is_made_from_a_part(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "broken.yaml").write_text("kind: [")
    code, out, err = replant("plan", "enable", "-f", str(tmp_path), *SERVER)
    assert (code, out) == (1, "")
    assert "in part" in err


def test_a_plan_is_proved_again_from_a_file_and_from_standard_input(
    made: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(made)
    states = yaml.safe_load(made)["proof"]["states"]
    for code, out, err in (
        replant("verify", str(file), "-o", "json"),
        replant("verify", "-", "-o", "json", stdin=made.encode()),
    ):
        assert (code, err) == (0, "")
        assert json.loads(out) == {"safe": True, "badState": None, "states": states, "story": []}


def test_a_plan_in_the_wrong_order_is_found_out(made: str) -> None:
    wrong = yaml.safe_load(made)
    wrong["steps"] = [{**it, "after": []} for it in reversed(wrong["steps"])]
    code, out, _ = replant("verify", "-", stdin=wrong)
    assert code == 3
    assert out.startswith("Unsafe for kubernetes.io/aws-ebs.")


def test_a_plan_is_compared_with_the_cluster(made: str, tmp_path: Path) -> None:
    same, other = tmp_path / "same.json", tmp_path / "other.json"
    same.write_text(json.dumps(CLUSTER))
    other.write_text(json.dumps(dump(pv("new"))))
    code, out, err = replant("verify", "-", "-f", str(same), *SERVER, stdin=made.encode())
    assert (code, err) == (0, "")
    assert out.startswith("Safe")
    for file, more, reason in (
        (other, SERVER, "another cluster"),
        (same, ("--server-version", "1.22.16"), "another cluster"),
        (same, (), "--server-version"),
        (tmp_path / "none.json", SERVER, "none.json"),
    ):
        code, out, err = replant("verify", "-", "-f", str(file), *more, stdin=made.encode())
        assert (code, out) == (1, "")
        assert reason in err


def test_the_way_back_is_a_plan_that_verifies(made: str) -> None:
    code, out, err = replant(
        "plan", "undo", "-", "--done", "roll-nodes", "-o", "yaml", stdin=made.encode()
    )
    assert (code, err) == (0, "")
    undo = yaml.safe_load(out)
    assert [it["id"] for it in undo["steps"]] == ["undo-roll-nodes", "undo-switch-control-plane"]
    assert undo["goal"] == "undo"
    assert replant("verify", "-", stdin=out.encode())[0] == 0
    code, out, err = replant("plan", "undo", "-", "--done", "nope", stdin=made.encode())
    assert (code, out) == (1, "")
    assert "switch-control-plane, roll-nodes" in err


def test_a_way_back_that_is_not_safe_says_so_with_its_code(made: str) -> None:
    wrong = yaml.safe_load(made)
    wrong["steps"] = [{**it, "after": []} for it in reversed(wrong["steps"])]
    code, out, _ = replant("plan", "undo", "-", "--done", "switch-control-plane", stdin=wrong)
    assert code == 3
    assert "Proof: UNSAFE" in out


BROKEN: dict[str, tuple[Any, str]] = {
    "no plan at all": ("kind: MigrationPlan", "line 1"),
    "not YAML": ("kind: [", "line 2"),
    "not text": (b"\xc3\x28", "UTF-8"),
    "empty": ("", "line 1"),
    "a field too many": ("{made}surprise: 1\n", "line"),
    "another kind of goal": (("goal: enable", "goal: fly"), "goal"),
    "a plugin of nobody": (("- kubernetes.io/aws-ebs", "- kubernetes.io/glusterfs"), "plugins"),
    "no plugin": (("plugins:\n- kubernetes.io/aws-ebs", "plugins: []"), "plugins"),
    "no version": (("  version: 1.22.17", "  version: newest"), "version"),
    "no controller": (("attachController: upstream", "attachController: mine"), "attachController"),
    "a group of nobody": (("- group: all", "- group: some"), "there is no group some"),
    "no nodes": (("  nodes:\n  - n1", "  nodes: []"), "nodes"),
    "a step twice": (("id: roll-nodes", "id: switch-control-plane"), "two steps"),
    "a step after none": (("  - switch-control-plane", "  - nope"), "no step nope"),
    "no title": (("title: Give the kubelets", "title: ''\n  x: Give the kubelets"), "steps"),
    "the gate that never was": (
        ("CSIMigrationAWS: true", "CSIMigrationInTreeOff: true"), "CSIMigrationInTreeOff",
    ),
    "none at a time": (("maxUnavailable: 1", "maxUnavailable: 0"), "maxUnavailable"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_plan_that_is_broken_is_refused_where_it_is(made: str, name: str) -> None:
    change, says = BROKEN[name]
    match change:
        case (old, new):
            assert old in made
            text = made.replace(old, new, 1).encode()
        case str():
            text = change.replace("{made}", made).encode()
        case _:
            text = change
    code, out, err = replant("verify", "-", stdin=text)
    assert (code, out) == (1, "")
    assert says in err
    assert "line" in err or name == "not text"
    assert len(err.splitlines()) == 1


def test_the_line_is_that_of_the_value(made: str) -> None:
    text = made.replace("- group: all", "- group: some", 1)
    line = 1 + text.splitlines().index("  - group: some")
    assert f"line {line}," in replant("verify", "-", stdin=text.encode())[2]


@pytest.mark.parametrize("kind", ["class", "name"])
def test_classes_in_a_file_must_be_classes(kind: str) -> None:
    cluster = dump(storage_class(), **ON)
    found = json.loads(plan("complete", "-o", "json", cluster=cluster)[1])
    change = found["steps"][-1]["classes"][0]
    change["after"] = {} if kind == "class" else {**change["after"], "metadata": {"name": "x"}}
    code, out, err = replant("plan", "undo", "-", "--done", "replace-classes", stdin=found)
    assert (code, out) == (1, "")
    assert "class" in err


CSI_ESCAPE, BELL, BIDI = "\x1b[31m", "\x07", "\u202e"
HOSTILE = f'a{CSI_ESCAPE}{BELL}\x9b\u2028{BIDI}"]]>;`#<b>' + "n" * 900
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e]")


@pytest.mark.parametrize("output", ["table", "yaml", "json", "mermaid"])
@pytest.mark.parametrize("goal", ["enable", "complete"])
def test_no_name_reaches_a_terminal_raw(output: str, goal: str) -> None:
    more = ON if goal == "complete" else {"kubelets": (Kubelet(drivers=()),)}
    cluster = dump(
        storage_class(HOSTILE, metadata={"labels": {HOSTILE: HOSTILE}}),
        pv(HOSTILE, azureDisk={"diskName": HOSTILE, "diskURI": HOSTILE, "kind": HOSTILE}),
        **more,
    )
    for it in cluster["items"]:
        if it["kind"] in ("Node", "CSINode"):
            it["metadata"]["name"] = HOSTILE
    code, out, err = plan(goal, "-o", output, "--plugin", "aws-ebs", cluster=cluster)
    assert code in (0, 3)
    assert not RAW.search(out + err)
    if output in ("yaml", "json"):
        read = json.loads(out) if output == "json" else yaml.safe_load(out)
        classes = [it for step in read["steps"] for it in step.get("classes", ())]
        assert read["groups"][0]["nodes"] == [HOSTILE]
        assert [it["after"]["metadata"]["name"] for it in classes] == [HOSTILE] * len(classes)


@pytest.mark.parametrize("output", ["table", "yaml", "json", "mermaid"])
def test_nor_does_any_text_of_a_plan_in_a_file(made: str, output: str) -> None:
    found = yaml.safe_load(made)
    found["fingerprint"] = found["platform"] = HOSTILE
    found["groups"][0]["name"] = found["steps"][1]["changes"][0]["group"] = HOSTILE
    for step in found["steps"]:
        step |= dict.fromkeys(("title", "why", "doneWhen", "undo"), HOSTILE)
        step["after"] = []
        step["id"] += HOSTILE
        for component in step.get("components", ()):
            component |= {"name": HOSTILE, "why": HOSTILE, "removeFlags": {HOSTILE: HOSTILE}}
    found["steps"][1]["eachNode"] = [HOSTILE]
    last = found["steps"][1]["id"]
    code, out, err = replant("plan", "undo", "-", "--done", last, "-o", output, stdin=found)
    assert code in (0, 3), err
    assert not RAW.search(out + err)
    if output == "mermaid":
        well_formed(out)


NODE = re.compile(r'  (\w+)(\{\{"[^"]*"\}\}|\["[^"]*"\])')
EDGE = re.compile(r'  (\w+) (?:-->|-\. undo \.->) (\w+)(\("[^"]*"\)|\(\["[^"]*"\]\))?')


def well_formed(chart: str) -> None:
    """Every line is a node or an edge, every name is given once, and every edge leads somewhere."""
    head, *lines = chart.splitlines()
    assert head == "flowchart TD"
    named, used = [], set()
    for line in lines:
        if node := NODE.fullmatch(line):
            named.append(node[1])
            continue
        edge = EDGE.fullmatch(line)
        assert edge, line
        used |= {edge[1], edge[2]}
        if edge[3]:
            named.append(edge[2])
    assert len(named) == len(set(named))
    assert used == set(named)
    for label in re.findall(r'"([^"]*)"', chart):
        assert not re.search(r"[`<>]|#(?!\d+;)", label)


@pytest.mark.parametrize("goal", ["enable", "complete"])
def test_mermaid_is_well_formed(goal: str) -> None:
    cluster = dump(storage_class(HOSTILE), **ON) if goal == "complete" else CLUSTER
    code, out, _ = plan(goal, "-o", "mermaid", cluster=cluster)
    assert code == 0
    well_formed(out)
    assert "Proved safe" in out
    assert "no blocker" in out
