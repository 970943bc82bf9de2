"""``replant translate``, as a shell sees it: what comes out, what is said, and the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

REPLANT = Path(sys.executable).with_name("replant")

AWS = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "db"},
    "spec": {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1", "fsType": "ext4"}},
}
SHARED = {
    "kind": "PersistentVolume",
    "metadata": {"name": "old"},
    "spec": {"azureDisk": {"diskURI": "http://a/vhds/b", "kind": "Shared"}},
}
CONFIG = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "yes"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "prod"},
    "spec": {"volumes": [{"name": "data", "cinder": {"volumeID": "c-1"}}]},
}


def replant(*arguments: str, stdin: Any = b"") -> tuple[int, str, str]:
    if not isinstance(stdin, bytes):
        stdin = json.dumps(stdin).encode()
    done = subprocess.run([REPLANT, *arguments], input=stdin, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def listed(*items: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items)}


def test_json_in_json_out() -> None:
    code, out, err = replant("translate", "-f", "-", stdin=listed(AWS, CONFIG))
    result = json.loads(out)
    assert code == 0
    assert result["items"][0]["spec"]["csi"]["volumeHandle"] == "vol-1"
    assert result["items"][1] == CONFIG
    assert result["kind"] == "List"
    assert "2 objects read: 1 translated, 1 need no change, 0 not translated; 0 objects" in err


def test_what_needs_no_change_keeps_its_text(tmp_path: Path) -> None:
    text = "# why this is here\nkind: ConfigMap\nmetadata: {name:   c}  # so\n"
    file = tmp_path / "a.yaml"
    file.write_text(text)
    assert replant("translate", "-f", str(file))[:2] == (0, text)
    listing = f"kind: List\nitems:\n- {json.dumps(CONFIG)} # kept\n"
    file.write_text(listing)
    assert replant("translate", "-f", str(file))[:2] == (0, listing)


def test_text_that_a_new_line_would_change_is_written_anew() -> None:
    _, out, _ = replant("translate", "-f", "-", stdin=b"kind: ConfigMap\ndata:\n  a: |\n    x")
    assert yaml.safe_load(out) == {"kind": "ConfigMap", "data": {"a": "x"}}
    assert replant("translate", "-f", "-", stdin=b"kind: C # here")[1] == "kind: C # here\n"


def test_comments_before_a_document_are_kept() -> None:
    text = "# License\n---\nkind: ConfigMap\n"
    assert replant("translate", "-f", "-", stdin=text.encode())[1] == text


@pytest.mark.parametrize("kind", ["", "List"])
def test_nothing_is_left_out_that_only_json_can_say(kind: str) -> None:
    odd = '{"kind": "Odd",\n "number": 1e999}'
    data = f'{{"kind": "List", "items": [{odd}]}}' if kind else odd
    code, out, _ = replant("translate", "-f", "-", "-o", "yaml", stdin=data.encode())
    found = yaml.safe_load(out)
    assert (found["items"][0] if kind else found)["kind"] == "Odd"
    assert code == 1


def test_an_empty_list_stays_one() -> None:
    empty = listed(kind="PersistentVolumeList")
    _, out, _ = replant("translate", "-f", "-", "-o", "yaml", stdin=empty)
    assert yaml.safe_load(out) == empty


def test_the_same_claim_is_written_once() -> None:
    pod = {**POD, "metadata": {"name": "web", "namespace": "default"}}
    bare = {**POD, "metadata": {"name": "web"}}
    _, out, err = replant("translate", "-f", "-", stdin=listed(pod, bare))
    assert [item["kind"] for item in json.loads(out)["items"]].count("PersistentVolumeClaim") == 1
    assert "2 objects added" in err


@pytest.mark.parametrize("redirect", [">&-", "<&-", "2>&-"])
def test_closed_streams_are_no_accident(redirect: str) -> None:
    command = f"'{REPLANT}' translate -f examples/cluster.yaml {redirect}"
    root = Path(__file__).parents[2]
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, cwd=root)
    assert b"should not have happened" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("output", ["yaml", "json"])
@pytest.mark.parametrize("source", ["yaml", "json"])
@pytest.mark.parametrize("kind", ["", "List"])
def test_every_format_gives_the_same_objects(source: str, output: str, kind: str) -> None:
    whole = listed(AWS, POD, CONFIG) if kind else AWS
    data = yaml.safe_dump(whole).encode() if source == "yaml" else json.dumps(whole).encode()
    code, out, _ = replant("translate", "-f", "-", "-o", output, stdin=data)
    assert code == 0
    found = json.loads(out) if output == "json" else yaml.safe_load(out)
    reference = json.loads(replant("translate", "-f", "-", stdin=whole)[1])
    assert found == reference


@pytest.mark.workflow("translate")
def test_there_and_back() -> None:
    cinder = {"kind": "PersistentVolume", "spec": {"cinder": {"volumeID": "c-1"}}}
    _, out, _ = replant("translate", "-f", "-", stdin=cinder)
    code, back, _ = replant("translate", "-f", "-", "--to", "in-tree", stdin=out.encode())
    assert (code, json.loads(back)) == (0, cinder)


def test_items_of_a_typed_list_need_not_say_their_kind() -> None:
    bare = {key: value for key, value in AWS.items() if key not in ("kind", "apiVersion")}
    volumes = listed(bare, kind="PersistentVolumeList")
    _, out, _ = replant("translate", "-f", "-", stdin=volumes)
    assert "csi" in json.loads(out)["items"][0]["spec"]


def test_what_is_added_stands_in_a_list_or_follows_it() -> None:
    _, out, err = replant("translate", "-f", "-", stdin=listed(POD, POD))
    kinds = [item["kind"] for item in json.loads(out)["items"]]
    assert kinds == ["PersistentVolume", "PersistentVolumeClaim", "Pod", "Pod"]
    assert "2 objects added" in err
    _, out, _ = replant("translate", "-f", "-", stdin=listed(POD, kind="PodList"))
    decoder, position, found = json.JSONDecoder(), 0, []
    while position < len(out):
        document, position = decoder.raw_decode(out, position)
        found.append(document["kind"])
        position += 1
    assert found == ["PodList", "PersistentVolume", "PersistentVolumeClaim"]


def test_what_cannot_be_translated_passes_and_is_named() -> None:
    code, out, err = replant("translate", "-f", "-", stdin=listed(SHARED, AWS))
    assert code == 1
    assert json.loads(out)["items"][0] == SHARED
    assert "csi" in json.loads(out)["items"][1]["spec"]
    assert "error: PersistentVolume old: spec.azureDisk.kind: is Shared" in err


def test_twenty_are_named_and_the_rest_counted() -> None:
    code, _, err = replant("translate", "-f", "-", stdin=listed(*[SHARED] * 30))
    assert code == 1
    assert err.count("error: PersistentVolume old") == 20
    assert "error: 10 more like these (--verbose)" in err
    _, _, err = replant("translate", "-f", "-", "--verbose", stdin=listed(*[SHARED] * 30))
    assert err.count("error: PersistentVolume old") == 30


def test_a_broken_document_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: [\n---\n" + json.dumps(AWS))
    (tmp_path / "b.json").write_text('{"kind": ')
    (tmp_path / "c.json").write_text(json.dumps(CONFIG))
    code, out, err = replant("translate", "-f", str(tmp_path), "-o", "json")
    assert code == 1
    assert [json.loads(line)["kind"] for line in out.splitlines()] == [
        "PersistentVolume", "ConfigMap",
    ]  # fmt: skip
    assert "a.yaml, document 1: is not valid YAML" in err
    assert "b.json, document 1: is not valid JSON" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate"],
        ["translate", "-f", "no-such-file"],
        ["translate", "-f", "-", "-o", "xml"],
        ["translate", "-f", "-", "--inline-capacity", "much"],
        ["translate", "-f", "-", "--inline-capacity", "0"],
        ["translate", "-f", "-", "-n", "Bad NS"],
        ["translate", "-f", ""],
        ["translate", "-f", "-", "--max-size", "0"],
        ["no-such-command"],
    ],
)
def test_usage_errors_and_missing_files_exit_with_1(arguments: list[str]) -> None:
    code, out, err = replant(*arguments)
    assert (code, out) == (1, "")
    assert err


def test_a_difference_shows_only_what_changed() -> None:
    code, out, _ = replant("translate", "-f", "-", "-o", "diff", stdin=listed(AWS, CONFIG, POD))
    assert code == 0
    assert out.startswith("--- before/PersistentVolume/db\n+++ after/PersistentVolume/db\n@@")
    assert "-  awsElasticBlockStore:" in out
    assert "+  csi:" in out
    assert "ConfigMap" not in out
    assert "+++ after/PersistentVolumeClaim/prod/cinder-c-1-" in out
    assert "\x1b" not in out


def test_control_characters_never_reach_the_terminal() -> None:
    evil = {**SHARED, "metadata": {"name": "\x1b[31mred"}}
    _, _, err = replant("translate", "-f", "-", stdin=evil)
    assert "\x1b" not in err
    assert r"\x1b[31mred" in err


def test_a_reader_that_has_seen_enough_is_no_error_message() -> None:
    command = f"'{REPLANT}' translate -f - -o yaml | head -n 1"
    data = json.dumps(listed(*[AWS] * 5000)).encode()
    done = subprocess.run(["bash", "-c", command], input=data, capture_output=True, check=True)
    assert done.stdout == b"apiVersion: v1\n"
    assert b"Traceback" not in done.stderr
    assert b"Broken" not in done.stderr


@pytest.mark.parametrize("name", ["replant", "kubectl-replant"])
def test_both_commands_are_installed_and_help_has_examples(name: str) -> None:
    command = str(REPLANT.with_name(name))
    done = subprocess.run([command, "--help"], capture_output=True, check=True, text=True)
    assert "Usage: " + name.replace("kubectl-", "kubectl ") in done.stdout
    assert "translate" in done.stdout
    done = subprocess.run([command, "translate", "-h"], capture_output=True, check=True, text=True)
    assert "Examples:" in done.stdout


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['replant', '--help']\n"
        "from replant.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: print(sorted(m for m in ('msgspec', 'yaml') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_a_terminal_gets_colours_unless_it_wants_none(no_colour: str) -> None:
    parent, child = os.openpty()
    environment = {**os.environ, "NO_COLOR": no_colour}
    data = json.dumps(AWS).encode()
    subprocess.run(
        [REPLANT, "translate", "-f", "-", "-o", "diff"],
        input=data, stdout=child, stderr=subprocess.DEVNULL, check=True, env=environment,
    )  # fmt: skip
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    assert ("\x1b[32m+" in shown) is (not no_colour)
    assert ("\x1b[31m-" in shown) is (not no_colour)


def on_one_processor() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@pytest.mark.parametrize("odd", [SHARED, POD], ids=["refused", "needs-a-claim"])
@pytest.mark.parametrize("kind", ["List", "PersistentVolumeList"])
def test_a_long_list_is_the_same_by_however_many_processors(
    tmp_path: Path, kind: str, odd: dict[str, Any]
) -> None:
    items = [{**AWS, "metadata": {"name": f"pv-{n}"}} for n in range(20_500)]
    items[20_000] = items[3] = odd
    items[20_001] = {"kind": "ConfigMap", "odd": "1.5"}
    file = tmp_path / "volumes.json"
    file.write_text(json.dumps(listed(*items, kind=kind)))
    shared, alone = (
        subprocess.run(
            [REPLANT, "translate", "-f", file], capture_output=True, check=False, preexec_fn=limit
        )
        for limit in (None, on_one_processor)
    )
    assert shared.stdout == alone.stdout
    assert shared.stderr == alone.stderr
    assert shared.returncode == alone.returncode == (1 if odd is SHARED else 0)
    assert b"20500 objects read" in shared.stderr


def test_a_child_that_dies_costs_nothing() -> None:
    script = (
        "import sys, io, os\n"
        "from replant.cli import shares\n"
        "def die(out): os.abort()\n"
        "share = shares.Share(die)\n"
        "print(share.finish(io.BytesIO())); share.close()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"None\n"
