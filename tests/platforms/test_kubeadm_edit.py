"""What becomes of files on a node, as texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from replant.errors import InputError
from replant.execute.actuators import Replica, Wanted, differences
from replant.inventory import pod_records
from replant.inventory.controlplane import control_plane_pod
from replant.manifests import yamltext
from replant.platforms.command_lines import flag_value, given_by_flags, word_changes
from replant.platforms.nodefiles import edit_kubelet_config, edit_manifest

COMPONENT = "kube-controller-manager"

MANIFEST = """\
# written by kubeadm, kept by hand
apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  labels:
    component: kube-controller-manager
  name: kube-controller-manager
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-controller-manager
    - --cloud-provider=aws   # until the migration is complete
    - --feature-gates=RotateKubeletServerCertificate=true
    # keep this one last
    - --use-service-account-credentials=true
    image: registry.example/kube-controller-manager:v1.24.17
    name: kube-controller-manager
  hostNetwork: true
status: {}
"""

CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
cgroupDriver: systemd
featureGates:
  # of ours
  GracefulNodeShutdown: true
  CSIMigrationAWS: false  # not yet
kind: KubeletConfiguration
"""


def edited(text: str, wanted: Wanted, component: str = COMPONENT) -> str:
    return edit_manifest(text, component, wanted, source="the file")


def configured(text: str, **gates: bool | None) -> str:
    return edit_kubelet_config(text, gates, source="the file")


def test_a_gate_joins_those_that_are_there() -> None:
    old, new = "Certificate=true\n", "Certificate=true,CSIMigrationAWS=true\n"
    assert edited(MANIFEST, Wanted({"CSIMigrationAWS": True})) == MANIFEST.replace(old, new)


def test_a_gate_that_is_so_already_changes_nothing() -> None:
    assert edited(MANIFEST, Wanted({"RotateKubeletServerCertificate": True, "A": None})) is MANIFEST


def test_the_last_gate_takes_its_flag_along() -> None:
    line = "    - --feature-gates=RotateKubeletServerCertificate=true\n"
    assert edited(MANIFEST, Wanted({"RotateKubeletServerCertificate": None})) == MANIFEST.replace(
        line, ""
    )


def test_flags_come_and_go() -> None:
    line = "    - --cloud-provider=aws   # until the migration is complete\n"
    last = "    - --use-service-account-credentials=true\n"
    wanted = Wanted({}, {"cloud-config": "/etc/aws: it"}, {"cloud-provider": "aws"})
    assert edited(MANIFEST, wanted) == MANIFEST.replace(line, "").replace(
        last, f"{last}    - '--cloud-config=/etc/aws: it'\n"
    )


def test_what_is_done_can_be_undone() -> None:
    done = edited(MANIFEST, Wanted({"A": True}, remove_flags={"cloud-provider": "aws"}))
    undone = edited(done, Wanted({"A": None}, add_flags={"cloud-provider": "aws"}))
    flags = yamltext.load(undone)["spec"]["containers"][0]["command"]
    assert sorted(flags) == sorted(yamltext.load(MANIFEST)["spec"]["containers"][0]["command"])


WORDS: list[tuple[list[str], Wanted, list[str]]] = [
    ([], Wanted({"A": True}), ["--feature-gates=A=true"]),
    ([], Wanted({"A": None}), []),
    (["--feature-gates=A=True"], Wanted({"A": True}), ["--feature-gates=A=True"]),
    (["--feature-gates=A=1"], Wanted({"A": True}), ["--feature-gates=A=true"]),
    (["--feature-gates", "A=false"], Wanted({"A": True}), ["--feature-gates", "A=true"]),
    (["--feature-gates", "A=false", "--v=2"], Wanted({"A": None}), ["--v=2"]),
    (["--feature_gates=A=false"], Wanted({"A": True}), ["--feature_gates=A=true"]),
    (
        ["--feature-gates=A=true,B=true", "--v=2", "--feature-gates=A=false"],
        Wanted({"A": None, "C": False}),
        ["--feature-gates=B=true", "--v=2", "--feature-gates=C=false"],
    ),
    (["--feature-gates=A=true"], Wanted({"A": None, "B": True}), ["--feature-gates=B=true"]),
    (["--feature-gates="], Wanted({"B": True}), ["--feature-gates=B=true"]),
    (["--profiling", "--feature-gates=A=true"], Wanted({"A": None}), ["--profiling"]),
    (["--a=1"], Wanted({}, {"a": "2"}), ["--a=2"]),
    (["--a=1"], Wanted({}, {}, {"a": "other"}), []),
    (["--a", "1", "--b"], Wanted({}, {}, {"a": "1"}), ["--b"]),
    (["--a="], Wanted({}, {}, {"a": ""}), []),
    (
        ["--enable-admission-plugins=NodeRestriction,PersistentVolumeLabel"],
        Wanted({}, {}, {"enable-admission-plugins": "PersistentVolumeLabel"}),
        ["--enable-admission-plugins=NodeRestriction"],
    ),
    (
        ["--enable-admission-plugins=NodeRestriction"],
        Wanted({}, {"enable-admission-plugins": "PersistentVolumeLabel"}),
        ["--enable-admission-plugins=NodeRestriction,PersistentVolumeLabel"],
    ),
    (
        ["--enable-admission-plugins=PersistentVolumeLabel", "--v=2"],
        Wanted({}, {}, {"enable-admission-plugins": "PersistentVolumeLabel"}),
        ["--v=2"],
    ),
]


@pytest.mark.parametrize(("words", "wanted", "become"), WORDS)
def test_command_lines(words: list[str], wanted: Wanted, become: list[str]) -> None:
    assert word_changes(words, wanted).apply(words) == become
    assert word_changes(become, wanted).apply(become) == become


def pod(container: str, more: str = "") -> str:
    return f"kind: Pod\nspec:\n  containers:\n{container}{more}"


LAYOUTS = [
    "  - name: x\n    command:\n    - kube-scheduler\n    - --v=2\n",
    "    - name: x\n      command:\n        - kube-scheduler\n        - --v=2",
    "  - name: x\n    command: [kube-scheduler]\n    args: [--v=2]\n",
    '  - {name: x, command: ["kube-scheduler", "--v=2"]}\n',
    "  - name: x\n    args:\n    - --v=2\n",
    "  - name: x\n    command:\n    - /usr/bin/kube-scheduler\n    args:\n    - '--v=2'\n",
    "  - name: x\n    command:\r\n    - kube-scheduler\r\n    - --v=2\r\n",
    "  - name: x\n    command:\n    - log-runner\n    - --v=2\n    - kube-scheduler\n    - --v=2\n",
    "  - name: x\n    command: &c\n    - kube-scheduler\n    - --v=2\n  - name: y\n",
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_flag_finds_its_place_in_any_layout(layout: str) -> None:
    text = pod(layout.replace("name: x", "name: kube-scheduler"))
    added = edited(text, Wanted({"A": True}), "kube-scheduler")
    container = yamltext.load(added)["spec"]["containers"][0]
    words = [*container.get("command", []), *container.get("args", [])]
    assert words[-2:] == ["--v=2", "--feature-gates=A=true"]
    taken = edited(added, Wanted({"A": None}), "kube-scheduler")
    assert yamltext.load(taken) == yamltext.load(text)


REFUSED = [
    ("", "not a pod"),
    ("[]", "not a pod"),
    ("kind: Pod\nspec: {containers: 1}", "not a pod"),
    ("kind: Job\nspec: {containers: [{name: x, command: [kube-scheduler]}]}", "not a pod"),
    (pod("  - {name: x, command: [a]}\n  - {name: y, command: [b]}\n"), "has no container"),
    (pod("  - {name: x, command: kube-scheduler}\n"), "not a list of texts"),
    (pod("  - {name: x, command: [kube-scheduler, 1]}\n"), "not a list of texts"),
    (pod("  - {name: x, command: [sh, -c, kube-scheduler --v=2]}\n"), "does not run"),
    (pod("  - {name: x, command: [sh, -c, exec /bin/kube-scheduler]}\n"), "does not run"),
    (pod("  - name: x\n"), "does not run"),
    (pod("  - name: x\n    command: [kube-scheduler\n"), "not valid YAML"),
    (pod("  - name: x\n    name: x\n"), "given twice"),
    ("kind: Pod\n---\nkind: Pod\n", "not valid YAML"),
    (
        pod("  - name: x\n    command: &c\n    - kube-scheduler\n", "  more: *c\n"),
        "without changing something else",
    ),
    (
        pod(
            "  - name: x\n    command:\n    - kube-scheduler\n    - >-\n      --feature-gates=A=0\n"
        ),
        "block of text",
    ),
    ("kind: \x01", "control characters are not allowed"),
    ("[" * 1000, "nested"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_a_manifest_that_cannot_be_edited_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=f"^the file: .*({why})"):
        edited(text, Wanted({"A": True}), "kube-scheduler")


CONFIGS = [
    (CONFIG, {"CSIMigrationAWS": True}, CONFIG.replace("AWS: false", "AWS: true")),
    (CONFIG, {"A": True}, CONFIG.replace("# not yet\n", "# not yet\n  A: true\n")),
    (
        CONFIG,
        {"CSIMigrationAWS": None},
        CONFIG.replace("  CSIMigrationAWS: false  # not yet\n", ""),
    ),
    (
        CONFIG,
        {"CSIMigrationAWS": None, "GracefulNodeShutdown": None},
        CONFIG.replace("  CSIMigrationAWS: false  # not yet\n", "").replace(
            "GracefulNodeShutdown: true", "{}"
        ),
    ),
    (CONFIG, {"CSIMigrationAWS": False, "B": None}, CONFIG),
    ("kind: KubeletConfiguration", {"A": None}, "kind: KubeletConfiguration"),
    (
        "kind: KubeletConfiguration",
        {"A": True},
        "kind: KubeletConfiguration\nfeatureGates:\n  A: true\n",
    ),
    (
        "kind: KubeletConfiguration\n# the end\n",
        {"A": True, "B": False},
        "kind: KubeletConfiguration\n# the end\nfeatureGates:\n  A: true\n  B: false\n",
    ),
    (
        "---\nkind: KubeletConfiguration\n...\n",
        {"A": True},
        "---\nkind: KubeletConfiguration\nfeatureGates:\n  A: true\n...\n",
    ),
    (
        "featureGates: {}\nkind: KubeletConfiguration\n",
        {"A": True},
        'featureGates: {"A": true}\nkind: KubeletConfiguration\n',
    ),
    (
        "featureGates: {A: false, B: true} # two\nkind: KubeletConfiguration\n",
        {"A": None},
        'featureGates: {"B": true} # two\nkind: KubeletConfiguration\n',
    ),
    (
        "featureGates:  # none\nkind: KubeletConfiguration\n",
        {"A": True},
        'featureGates: {"A": true}  # none\nkind: KubeletConfiguration\n',
    ),
    (
        "featureGates: null\nkind: KubeletConfiguration\n",
        {"A": True},
        'featureGates: {"A": true}\nkind: KubeletConfiguration\n',
    ),
    (
        '{"kind": "KubeletConfiguration"}',
        {"A": True},
        '{"kind": "KubeletConfiguration", "featureGates": {"A": true}}',
    ),
    (
        "kind: KubeletConfiguration\r\nfeatureGates:\r\n  A: true\r\n",
        {"B": True},
        "kind: KubeletConfiguration\r\nfeatureGates:\r\n  A: true\r\n  B: true\r\n",
    ),
]


@pytest.mark.parametrize(("text", "gates", "becomes"), CONFIGS)
def test_configurations(text: str, gates: dict[str, bool | None], becomes: str) -> None:
    assert configured(text, **gates) == becomes
    assert configured(becomes, **gates) == becomes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a KubeletConfiguration"),
        ("kind: Pod", "not a KubeletConfiguration"),
        ("kind: KubeletConfiguration\nfeatureGates: [A]\n", "are not a map"),
        (
            "kind: KubeletConfiguration\nfeatureGates: &g {A: false}\nmore: *g\n",
            "anchor|alias|else",
        ),
        ("kind: KubeletConfiguration\n---\nkind: Other\n", "not valid YAML"),
        ("kind: {", "not valid YAML"),
    ],
)
def test_a_configuration_that_cannot_be_edited_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=f"^the file: .*({why})"):
        configured(text, A=True)


def test_what_a_kubelet_is_told_by_flags() -> None:
    arguments = ["kubelet", "--config", "/c.yaml", "--feature-gates=A=true,B=false"]
    assert flag_value(arguments, "config") == "/c.yaml"
    assert flag_value(arguments, "root-dir") is None
    assert given_by_flags(arguments, {"A": True, "B": False, "C": True}) == []
    assert given_by_flags(arguments, {"A": None, "B": True}) == ["A", "B"]


GATES = st.sampled_from(
    ["CSIMigrationAWS", "CSIMigrationGCE", "A", "Yes", "InTreePluginAWSUnregister"]
)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters=",'\""),
    min_size=1,
    max_size=12,
)
GIVEN = st.dictionaries(GATES, st.booleans())
FLAGS = ["cloud-provider", "cloud-config", "external-cloud-volume-plugin"]
LISTS = ["enable-admission-plugins"]
WANTED = st.builds(
    Wanted,
    st.dictionaries(GATES, st.booleans() | st.none()),
    st.dictionaries(st.sampled_from([FLAGS[0], *LISTS]), TEXTS),
    st.dictionaries(st.sampled_from(FLAGS[1:]), TEXTS),
)
COMMENTS = st.sampled_from(["", " # a comment", "  # - --feature-gates=A=true"])


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """A component's manifest, in some layout, with comments."""
    words = [f"--{flag}={draw(TEXTS)}" for flag in draw(st.sets(st.sampled_from(FLAGS)))]
    words += [
        f"--feature-gates={joined(gates)}" for gates in draw(st.lists(GIVEN, max_size=2)) if gates
    ]
    words += [f"--{it}={draw(TEXTS)},{draw(TEXTS)}" for it in draw(st.sets(st.sampled_from(LISTS)))]
    words = [COMPONENT, *draw(st.permutations(words)), "--last=1"]
    quote = draw(st.sampled_from([as_json, as_yaml]))
    indent = draw(st.sampled_from(["    ", "      "]))
    if draw(st.booleans()):
        command = f" {as_json(words)}\n"
    else:
        lines = [f"{indent}- {quote(word)}{draw(COMMENTS)}\n" for word in words]
        command = "\n" + "".join(lines)
    return (
        f"# first\nkind: Pod\nspec:\n  containers:\n  - command:{command}    # behind\n"
        f"    name: {COMPONENT}\n  hostNetwork: true\nstatus: {{}}\n# last\n"
    )


def joined(gates: dict[str, bool]) -> str:
    return ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())


def as_yaml(word: str) -> str:
    return yamltext.dump(word).removesuffix("...\n").strip()


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@given(manifests(), WANTED)
def test_an_edit_does_what_is_wanted_and_nothing_else(text: str, wanted: Wanted) -> None:
    new = edited(text, wanted)
    assert edited(new, wanted) == new
    before, after = yamltext.load(text), yamltext.load(new)
    assert after == with_command(before, command_of(after))
    assert kept(command_of(before), wanted) == kept(command_of(after), wanted)
    assert differences(replica(after), wanted) == []
    comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    assert comments == [line for line in new.splitlines() if line.lstrip().startswith("#")]


def command_of(obj: Any) -> list[str]:
    words: list[str] = obj["spec"]["containers"][0]["command"]
    return words


def with_command(obj: Any, words: list[str]) -> Any:
    container = {**obj["spec"]["containers"][0], "command": words}
    return {**obj, "spec": {**obj["spec"], "containers": [container]}}


def kept(words: list[str], wanted: Wanted) -> list[str]:
    """The words that nobody wants changed."""
    ours = ("feature-gates", *wanted.add_flags, *wanted.remove_flags)
    return [it for it in words if it.removeprefix("--").partition("=")[0] not in ours]


def replica(obj: Any) -> Replica:
    """As it would be seen through the API: that an edit and an observation agree ends a switch."""
    containers = Raw(as_json([{"command": command_of(obj)}]).encode())
    metadata = pod_records.PodMetadata(labels={"component": COMPONENT})
    seen = control_plane_pod(pod_records.Pod(metadata, pod_records.PodSpec(containers=containers)))
    assert seen
    return Replica("one", seen.gates, seen.flags)


@given(GIVEN, st.dictionaries(GATES, st.booleans() | st.none()), COMMENTS, st.booleans())
def test_a_configuration_gets_its_gates_and_keeps_the_rest(
    before: dict[str, bool], gates: dict[str, bool | None], comment: str, flow: bool
) -> None:
    lines = "".join(f"  {as_yaml(it)}: {json.dumps(on)}{comment}\n" for it, on in before.items())
    field = f" {json.dumps(before)}{comment}\n" if flow or not before else f"{comment}\n{lines}"
    text = f"# first\na: 1\nfeatureGates:{field}# between\nkind: KubeletConfiguration # it is\n"
    new = configured(text, **gates)
    assert configured(new, **gates) == new
    expected = {it: on for it, on in before.items() if it not in gates}
    expected |= {it: on for it, on in gates.items() if on is not None}
    loaded = yamltext.load(new)
    assert loaded.pop("featureGates") == expected
    assert loaded == {"a": 1, "kind": "KubeletConfiguration"}
    for line in ("# first\n", "# between\n", "kind: KubeletConfiguration # it is\n"):
        assert line in new
