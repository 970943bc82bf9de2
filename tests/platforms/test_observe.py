from __future__ import annotations

import asyncio

import pytest

from replant.cluster.ports import Reader
from replant.errors import Final, Forbidden, NotServed, Unreachable
from replant.execute.actuators import Place, Replica, Wanted
from replant.platforms.observe import Observe, instruction
from tests.platforms.fakes import FakeReader, component_pod

CONTROLLER = Place(component="kube-controller-manager")
KUBELET = Place(node="node-a")


def observing(reader: Reader) -> Observe:
    return Observe(reader, lambda _: None)


def observed(reader: Reader, place: Place) -> tuple[Replica, ...] | None:
    return asyncio.run(observing(reader).observe(place))


def test_a_component_is_seen_by_its_pods() -> None:
    name = CONTROLLER.component
    reader = FakeReader(
        [
            component_pod(name, "cp-2", "--feature-gates=A=false", ready=False),
            component_pod(name, "cp-1", "--feature-gates=A=true,B=false", "--cloud-provider=aws"),
            component_pod("kube-scheduler", "cp-1", "--feature-gates=A=true"),
        ]
    )
    assert observed(reader, CONTROLLER) == (
        Replica(f"{name}-cp-1", {"A": True, "B": False}, {"cloud-provider": "aws"}),
        Replica(f"{name}-cp-2", {"A": False}, {}, ready=False),
    )
    assert reader.asked == [("pods", "kube-system", f"component={name}")]


def test_a_pod_without_a_status_is_not_ready() -> None:
    pod = component_pod(CONTROLLER.component, "cp-1")
    del pod["status"]
    seen = observed(FakeReader([pod]), CONTROLLER)
    assert seen
    assert not seen[0].ready


def test_a_control_plane_without_pods_cannot_be_told() -> None:
    assert observed(FakeReader(), CONTROLLER) is None


def test_one_that_had_pods_and_has_none_is_down() -> None:
    reader = FakeReader([component_pod(CONTROLLER.component, "cp-1")])
    observe = observing(reader)
    assert asyncio.run(observe.observe(CONTROLLER))
    reader.pods = []
    assert asyncio.run(observe.observe(CONTROLLER)) == ()


@pytest.mark.parametrize("refusal", [Forbidden("no"), NotServed("no")])
def test_pods_that_may_not_be_read_cannot_be_told(refusal: Exception) -> None:
    assert observed(FakeReader(refusal), CONTROLLER) is None


def test_a_cluster_that_does_not_answer_may_later() -> None:
    with pytest.raises(Unreachable):
        observed(FakeReader(Unreachable("later")), CONTROLLER)


def test_a_pod_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(Final, match="kube-controller-manager in kube-system cannot be read"):
        observed(FakeReader([{"metadata": {"labels": 1}}]), CONTROLLER)


def test_a_kubelet_is_asked_for_its_configuration() -> None:
    reader = FakeReader(configs={"node-a": b'{"kubeletconfig": {"featureGates": {"A": true}}}'})
    assert observed(reader, KUBELET) == (Replica("node-a", {"A": True}),)


@pytest.mark.parametrize(
    "answer",
    [
        Forbidden("no nodes/proxy"),
        Final("404: debug endpoints are disabled"),
        b"<html>",
        b'{"kubeletconfig": {"featureGates": {"A": "yes"}}}',
    ],
)
def test_a_kubelet_that_does_not_tell(answer: bytes | Exception) -> None:
    assert observed(FakeReader(configs={"node-a": answer}), KUBELET) is None


def test_a_kubelet_that_does_not_answer_is_down() -> None:
    reader = FakeReader(configs={"node-a": Unreachable("502")})
    assert observed(reader, KUBELET) == ()


def test_what_to_do_is_told_once_for_each_place_and_each_change() -> None:
    told: list[str] = []
    observe = Observe(FakeReader(), told.append)
    on, off = Wanted({"A": True}), Wanted({"A": None})

    async def switches() -> None:
        for place, wanted in [(KUBELET, on), (KUBELET, on), (CONTROLLER, on), (KUBELET, off)]:
            await observe.switch(place, wanted)
        await observe.aclose()

    asyncio.run(switches())
    assert told == [
        instruction(KUBELET, on),
        instruction(CONTROLLER, on),
        instruction(KUBELET, off),
    ]


INSTRUCTIONS = [
    (
        KUBELET,
        Wanted({"A": True, "B": False, "C": None, "D": None}),
        (
            "On node node-a, in its KubeletConfiguration, set A: true, B: false under featureGates "
            "and take C and D out of featureGates (a --feature-gates flag of the kubelet would win "
            "over it), and restart the kubelet."
        ),
    ),
    (
        CONTROLLER,
        Wanted({"A": True, "B": None}, {"cloud-config": "/c"}, {"cloud-provider": "aws"}),
        (
            "For every replica of kube-controller-manager, one after the other: give it "
            "--feature-gates=A=true besides the gates that it has, take B out of its "
            "--feature-gates, add --cloud-config=/c and remove --cloud-provider=aws, and have it "
            "started anew."
        ),
    ),
    (
        Place(component="kube-apiserver"),
        Wanted({}, remove_flags={"enable-admission-plugins": "PersistentVolumeLabel"}),
        (
            "For every replica of kube-apiserver, one after the other: take PersistentVolumeLabel "
            "out of --enable-admission-plugins, and have it started anew."
        ),
    ),
    (
        Place(component="kube-apiserver"),
        Wanted({}, add_flags={"enable-admission-plugins": "PersistentVolumeLabel"}),
        (
            "For every replica of kube-apiserver, one after the other: add PersistentVolumeLabel "
            "to --enable-admission-plugins, and have it started anew."
        ),
    ),
]


@pytest.mark.parametrize(("place", "wanted", "sentence"), INSTRUCTIONS)
def test_an_instruction_has_the_very_gates_and_flags(
    place: Place, wanted: Wanted, sentence: str
) -> None:
    assert instruction(place, wanted) == sentence


def test_an_instruction_is_safe_for_a_terminal() -> None:
    assert instruction(Place(node="a\x1b[2J"), Wanted({})).isprintable()
