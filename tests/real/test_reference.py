"""Our answers and those of Kubernetes' own translator, to whatever hypothesis thinks up."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from replant.errors import TranslationError
from tests.real.ground import programs
from tests.translate import strategies
from tests.translate.comparing import ask, typed
from tests.translate.strategies import BETA_ZONE, WORDS, ZONE, ZONE_KEYS, ZONES, Objects

Request = dict[str, Any]
Texts = st.SearchStrategy[str]

AWS, GCE, RBD = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/rbd"
AWS_DRIVER, GCE_DRIVER = "ebs.csi.aws.com", "pd.csi.storage.gke.io"


# What is asked: whole objects of every plugin, and texts that plugins take apart.

exactly = st.fixed_dictionaries


def request(op: str, **fields: st.SearchStrategy[Any]) -> Objects:
    return exactly({"op": st.just(op), **fields})


def object_requests(plugin: str) -> dict[str, Objects]:
    return {
        "pvToCSI": request("pvToCSI", pv=strategies.in_tree_volumes(plugin)),
        "pvToInTree": request("pvToInTree", pv=strategies.csi_volumes(plugin)),
        "inlineToCSI": request(
            "inlineToCSI",
            volume=strategies.inline_volumes(plugin),
            podNamespace=st.sampled_from(["", "prod"]),
        ),
        "storageClassToCSI": request(
            "storageClassToCSI",
            plugin=st.just(plugin),
            storageClass=strategies.storage_classes(plugin),
        ),
    }


def joined(*pieces: str, by: str = "", most: int = 7) -> Texts:
    return st.lists(st.sampled_from(pieces), min_size=1, max_size=most).map(by.join).filter(bool)


def pv(metadata: Objects = st.just({"name": "pv"}), **spec: Objects) -> Objects:  # noqa: B008
    """A volume that has little but the texts in question."""
    return exactly({"metadata": metadata, "spec": exactly(spec)})


def csi(driver: str, handle: Texts, **attributes: Texts) -> Objects:
    return exactly(
        {
            "driver": st.just(driver),
            "volumeHandle": handle,
            "volumeAttributes": exactly(attributes),
        }
    )


def labelled(source: str, field: str, *zones: str) -> Objects:
    """In-tree volumes whose zones are known by their labels."""
    label = joined(*zones, "", " ", "a-b", by="__", most=3)
    labels = exactly({}, optional={ZONE: label, BETA_ZONE: label})
    metadata = exactly({"name": st.just("pv"), "labels": labels})
    return request("pvToCSI", pv=pv(metadata, **{source: exactly({field: st.just("disk")})}))


def placed(plugin: str, driver: str, handle: str, zones: Texts) -> Objects:
    """CSI volumes whose regions must be told from their zones."""
    requirement = exactly(
        {
            "key": st.sampled_from([*ZONE_KEYS[plugin], ZONE]),
            "operator": st.just("In"),
            "values": st.lists(zones, min_size=1, max_size=2),
        }
    )
    term = exactly({"matchExpressions": st.lists(requirement, min_size=1, max_size=2)})
    terms = exactly({"nodeSelectorTerms": st.lists(term, min_size=1, max_size=2)})
    affinity = exactly({"required": terms})
    return request("pvToInTree", pv=pv(csi=csi(driver, st.just(handle)), nodeAffinity=affinity))


AWS_URLS = st.tuples(
    st.just("aws://"),
    st.one_of(st.just("us-east-1a"), st.text("us-east1%é:@[] ", max_size=6)),
    st.one_of(
        st.just("/vol-1"),
        joined("/", "/vol-", "vol-", "a", "%2f", "%41", "%4", "%ff", "é", " ", "\x01", most=4),
    ),
    st.text("?#/%41\x01\n", max_size=4),
).map("".join)
STORAGE_SECRETS = joined("azure-storage-account-", "-secret", "a", "-", "/", most=5)
DISK_URIS = st.tuples(
    st.sampled_from(["", "/subscriptions/id/resourceGroups/rg", "https://host"]),
    joined(
        "/subscriptions/", "/resourceGroups/", "/providers/Microsoft.Compute/disks/", "/vhds/",
        "http", "HTTP", "://", "/", "a",
    ),
).map("".join)  # fmt: skip
FILE_HANDLES = joined("rg", "account", "share", "", by="#", most=6)
GCE_HANDLES = st.one_of(
    joined("projects", "UNSPECIFIED", "zones", "regions", "disks", "d", "", by="/", most=8),
    st.tuples(
        st.sampled_from(["zones", "regions", "z"]), st.sampled_from(["UNSPECIFIED", "us-east1-b"])
    ).map(lambda place: f"projects/UNSPECIFIED/{place[0]}/{place[1]}/disks/d"),
)
GCE_NODES = st.one_of(
    joined("projects", "p", "zones", "us-east1-b", "instances", "i", "", by="/"),
    st.text("us-1", max_size=6).map("projects/p/zones/{}/instances/i".format),
)
PARTITIONS = st.one_of(
    st.text("+-_0123456789 x", max_size=4),
    st.integers(-99, 99).map("{:+}".format),
    st.sampled_from([-(2**31) - 1, -(2**31), 2**31 - 1, 2**31, 2**63 - 1, 2**63]).map(str),
)

TEXT_REQUESTS = {
    "aws:// URLs": request("pvToCSI", pv=pv(awsElasticBlockStore=exactly({"volumeID": AWS_URLS}))),
    "storage account secrets": request(
        "inlineToCSI",
        podNamespace=st.just("prod"),
        volume=exactly(
            {
                "name": st.just("data"),
                "azureFile": exactly({"secretName": STORAGE_SECRETS, "shareName": WORDS}),
            }
        ),
    ),
    "Azure disk URIs": request("pvToInTree", pv=pv(csi=csi("disk.csi.azure.com", DISK_URIS))),
    "Azure file handles": request("pvToInTree", pv=pv(csi=csi("file.csi.azure.com", FILE_HANDLES))),
    "GCE handles": request("pvToInTree", pv=pv(csi=csi(GCE_DRIVER, GCE_HANDLES))),
    "GCE handles on nodes": request(
        "repairHandle", driver=st.just(GCE_DRIVER), handle=GCE_HANDLES, nodeID=GCE_NODES
    ),
    "partition numbers": request(
        "pvToInTree", pv=pv(csi=csi(AWS_DRIVER, st.just("vol-1"), partition=PARTITIONS))
    ),
    "AWS zone labels": labelled("awsElasticBlockStore", "volumeID", *ZONES[AWS]),
    "GCE zone labels": labelled("gcePersistentDisk", "pdName", *ZONES[GCE][:2]),
    "AWS zones": placed(
        AWS,
        AWS_DRIVER,
        "vol-1",
        st.one_of(st.sampled_from(ZONES[AWS]), joined("us", "east", "1a", "1", "wl1", by="-")),
    ),
    "GCE zones": placed(
        GCE,
        GCE_DRIVER,
        "projects/p/zones/z/disks/d",
        st.one_of(st.sampled_from(ZONES[GCE]), joined("us", "east1", "b", "", by="-", most=4)),
    ),
}


class Case(NamedTuple):
    program: str
    requests: Objects
    examples: int


# Whole objects are fewer because hypothesis takes several times as long to think one up.
CASES = {
    **{
        f"{plugin} {op}": Case("rbd" if plugin == RBD else "reference", requests, 120)
        for plugin in strategies.PLUGINS
        for op, requests in object_requests(plugin).items()
    },
    **{name: Case("reference", requests, 300) for name, requests in TEXT_REQUESTS.items()},
}


# Who answers.


class Outcome(Enum):
    REFUSED = "refused"
    CRASHED = "crashed"


class Reference:
    """A running translator: a line asks, a line answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._questions, self._answers = process.stdin, process.stdout

    def answer(self, asked: Request) -> Any:
        print(json.dumps(asked), file=self._questions, flush=True)
        answer = json.loads(self._answers.readline())
        if "expect" in answer:
            return typed(answer["expect"])
        return Outcome.CRASHED if "panic" in answer else Outcome.REFUSED


def our_answer(asked: Request) -> Any:
    try:
        return typed(ask(asked))
    except TranslationError:
        return Outcome.REFUSED


@pytest.fixture(scope="module")
def references(ground: Path) -> Iterator[dict[str, Reference]]:  # noqa: ARG001 - all is built there
    def start(program: Path) -> Reference:
        pipe = subprocess.PIPE
        process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True)
        return Reference(running.enter_context(process))

    recipe = programs.reference()
    with ExitStack() as running:
        yield {name: start(recipe.program(name)) for name in recipe.programs}


# Where the answers differ, and are meant to.


class Difference(NamedTuple):
    """A reason, and the texts at one place of a request for which it holds."""

    why: str
    place: str
    covers: Callable[[str], object]
    example: Request
    crashes: bool = False
    """Whether the reference crashes where we answer; if not, it answers where we refuse."""


def aws_request(url: str) -> Request:
    spec = {"awsElasticBlockStore": {"volumeID": url}}
    return {"op": "pvToCSI", "pv": {"metadata": {"name": "pv"}, "spec": spec}}


def csi_request(driver: str, handle: str, **attributes: str) -> Request:
    source = {"driver": driver, "volumeHandle": handle, "volumeAttributes": attributes}
    return {"op": "pvToInTree", "pv": {"metadata": {"name": "pv"}, "spec": {"csi": source}}}


def exceeds_32_bits(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?\d+", text)) and not -(2**31) <= int(text) < 2**31


AWS_VOLUME_ID = "pv.spec.awsElasticBlockStore.volumeID"
DIFFERENCES = [
    Difference(
        "no zone has these characters",
        AWS_VOLUME_ID,
        re.compile(r"aws://[^/?#]*[^A-Za-z0-9\-/?#]").match,
        aws_request("aws://é/vol-1"),
    ),
    Difference(
        "the handle would not be text",
        AWS_VOLUME_ID,
        re.compile("%ff").search,
        aws_request("aws:///vol-%ff"),
    ),
    Difference(
        "the reference keeps the lower 32 bits",
        "pv.spec.csi.volumeAttributes.partition",
        exceeds_32_bits,
        csi_request(AWS_DRIVER, "vol-1", partition=str(2**31)),
    ),
    Difference(
        "the reference crashes on a storage policy",
        "volume.vsphereVolume.storagePolicyName",
        bool,
        {
            "op": "inlineToCSI",
            "podNamespace": "prod",
            "volume": {
                "name": "data",
                "vsphereVolume": {"volumePath": "[ds] a.vmdk", "storagePolicyName": "gold"},
            },
        },
        crashes=True,
    ),
]


def text_at(asked: Request, place: str) -> str | None:
    value: Any = asked
    for key in place.split("."):
        value = value.get(key, {})
    return value or None


def is_meant(asked: Request, ours: Any, theirs: Any) -> bool:
    return any(
        difference.covers(text)
        and (theirs is Outcome.CRASHED) == difference.crashes
        and (ours is Outcome.REFUSED) != difference.crashes
        and theirs is not Outcome.REFUSED
        for difference in DIFFERENCES
        if (text := text_at(asked, difference.place)) is not None
    )


@pytest.mark.parametrize("name", CASES)
def test_same_answers(name: str, references: dict[str, Reference]) -> None:
    case = CASES[name]
    compared, answered = 0, 0

    @settings(
        max_examples=case.examples,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(case.requests)
    def compare(asked: Request) -> None:
        nonlocal compared, answered
        ours, theirs = our_answer(asked), references[case.program].answer(asked)
        assert ours == theirs or is_meant(asked, ours, theirs)
        compared += 1
        answered += ours == theirs and ours is not Outcome.REFUSED

    compare()
    assert compared >= case.examples
    assert answered >= case.examples / 10, "hardly anything but refusals was compared"


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.why)
def test_differences_are_still_there(
    difference: Difference, references: dict[str, Reference]
) -> None:
    ours = our_answer(difference.example)
    theirs = references["reference"].answer(difference.example)
    assert ours != theirs
    assert is_meant(difference.example, ours, theirs)
