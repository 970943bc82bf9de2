"""Orders that a person writes by hand: a MigrationOrder, read strictly, becomes a course."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from replant.gates.history import LAST
from replant.gates.settings import problems
from replant.gates.versions import Version
from replant.proof.course import Course, Move, NodeGroup, NodesMove, OldNodesJoin, SwitchMove
from replant.routing import AttachController, Process
from replant.translate import plugins

API_VERSION = "replant.dev/v1alpha1"
KIND = "MigrationOrder"
FIRST = Version(1, 17)
"""The first minor whose controllers ask a node whether it is migrated."""

_NODES = "nodes"
_VERSION = "kubernetesVersion"
_RESTART = "restartControllers"
_RESTRICT = "restrictScheduling"
_JOIN = "oldNodesJoin"
_MINOR = re.compile(r"v?\d+\.\d+\+?")
Path = tuple[str | int, ...]


class OrderError(Exception):
    """What is wrong with an order, and where in it."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{written(path)}: {reason}" if path else reason)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of the order, and where it stands."""

    data: Any
    path: Path

    def wrong(self, reason: str, *below: str | int) -> OrderError:
        return OrderError((*self.path, *below), reason)

    def fields(self, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, _Value]:
        """Its fields; a name that is not known is refused rather than passed over."""
        for name in self._mapping():
            if name not in known:
                meant = get_close_matches(name, list(known), 1)
                hint = f"; is it {meant[0]}?" if meant else f"; there are {', '.join(known)}"
                raise self.wrong(f"is not a field here{hint}", name)
        for name in required:
            if name not in self.data:
                raise self.wrong(f"has no {name}")
        return self.below()

    def below(self) -> dict[str, _Value]:
        return {name: _Value(it, (*self.path, name)) for name, it in self._mapping().items()}

    def items(self) -> list[_Value]:
        if not isinstance(self.data, list):
            raise self.wrong("is not a list")
        return [_Value(it, (*self.path, number)) for number, it in enumerate(self.data)]

    def flag(self) -> bool:
        if not isinstance(self.data, bool):
            raise self.wrong("is neither true nor false")
        return self.data

    def text(self) -> str:
        if not isinstance(self.data, str):
            raise self.wrong("is not text")
        return self.data

    def version(self) -> tuple[Version, str]:
        """The version, and as it was written; a minor alone means its newest patch."""
        text = self._version_text()
        try:
            version = Version.parse(text)
        except ValueError as error:
            raise self.wrong(str(error)) from None
        if not FIRST <= version.first_patch <= LAST:
            known = f"only {FIRST.of_minor} to {LAST.of_minor}"
            raise self.wrong(f"{version.of_minor} is not known here, {known}")
        return (version.newest_patch if _MINOR.fullmatch(text.strip()) else version), text.strip()

    def _version_text(self) -> str:
        if not isinstance(self.data, float):
            return self.text()
        text = str(self.data)
        if re.fullmatch(r"1\.\d", text):
            raise self.wrong(f'may have been {text}0: put it in quotes, as in "{text}0"')
        return text

    def _mapping(self) -> Mapping[str, Any]:
        if not isinstance(self.data, dict):
            raise self.wrong("is not a map of names to values")
        return self.data


def read_order(document: object) -> Course:
    """The course that an order describes; OrderError says what is wrong with it, and where."""
    order = _Value(document, ())
    given = order.fields(
        ("apiVersion", "kind", "metadata", "plugin", _VERSION, "adc",
         "driverInstalled", "driversStay", _JOIN, "from", "steps"),
        required=("apiVersion", "kind", "plugin", _VERSION, "steps"),
    )  # fmt: skip
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if given[name].text() != wanted:
            raise given[name].wrong(f"is not {wanted}")
    version, _ = given[_VERSION].version()
    attach_controller = _attach_controller(given.get("adc"))
    driver = given["driverInstalled"].flag() if "driverInstalled" in given else True
    stays = given["driversStay"].flag() if "driversStay" in given else False
    sides = given["from"].fields(("controlPlane", _NODES)) if "from" in given else {}
    controller, kubelet = (
        _process(_split(sides[name].below() if name in sides else {}), version)[0]
        for name in ("controlPlane", _NODES)
    )
    if attach_controller is AttachController.UPSTREAM:
        # OpenShift alone takes its control plane down first, and may be found half-way.
        _refuse_newer(kubelet, controller, given.get("from", order))
    _refuse_older(kubelet, controller, given.get("from", order))
    return Course(
        plugin=_plugin(given["plugin"]),
        controller=controller,
        groups=(NodeGroup(_NODES, kubelet, driver),),
        moves=tuple(_moves(given["steps"], controller, kubelet, attach_controller)),
        attach_controller=attach_controller,
        driver=driver,
        old_nodes_join=_old_nodes_join(given.get(_JOIN)),
        drivers_stay=stays,
    )


def written(path: Path) -> str:
    """A place in an order, as a person writes it: steps[2].nodes."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _plugin(value: _Value) -> str:
    name = f"kubernetes.io/{value.text().removeprefix('kubernetes.io/')}"
    if name not in plugins():
        known = ", ".join(it.removeprefix("kubernetes.io/") for it in plugins())
        raise value.wrong(f"is no plugin that a driver takes over from; there are {known}")
    return name


def _old_nodes_join(value: _Value | None) -> OldNodesJoin:
    if value is None:
        return OldNodesJoin.NEVER
    if value.data == OldNodesJoin.TAINTED.value:
        return OldNodesJoin.TAINTED
    if not isinstance(value.data, bool):
        raise value.wrong(f"is none of true, false and {OldNodesJoin.TAINTED.value}")
    return OldNodesJoin.EVER if value.data else OldNodesJoin.NEVER


def _attach_controller(value: _Value | None) -> AttachController:
    if value is None:
        return AttachController.UPSTREAM
    try:
        return AttachController(value.text())
    except ValueError:
        raise value.wrong(f"is neither {' nor '.join(AttachController)}") from None


def _moves(
    steps: _Value, controller: Process, kubelet: Process, attach_controller: AttachController
) -> Iterable[Move]:
    for step in steps.items():
        given = step.fields(("controlPlane", _NODES))
        if len(given) != 1:
            raise step.wrong("is not one of controlPlane and nodes")
        if switch := given.get("controlPlane"):
            controller, told = _switched(switch, _split(switch.below()), controller.version)
            if attach_controller is AttachController.UPSTREAM:
                _refuse_newer(kubelet, controller, switch)
            _refuse_older(kubelet, controller, switch)
            yield SwitchMove(controller, told)
        else:
            nodes = given[_NODES]
            fields = nodes.fields(("drain", "gates", _RESTART, _RESTRICT, _VERSION))
            forgets, restricts, drain = (
                fields[it].flag() if it in fields else False
                for it in (_RESTART, _RESTRICT, "drain")
            )
            gates = fields["gates"].below() if "gates" in fields else {}
            before = kubelet.version
            kubelet, told = _switched(nodes, (gates, fields.get(_VERSION)), before)
            if attach_controller is AttachController.UPSTREAM or kubelet.version > before:
                _refuse_newer(kubelet, controller, nodes)
            _refuse_older(kubelet, controller, nodes)
            # Whoever taints nodes by their kind also taints those that are being switched.
            yield NodesMove({_NODES: kubelet}, drain, told, forgets, restricts, closes=restricts)


_Given = tuple[dict[str, _Value], _Value | None]
"""The gates and the version that a component is given, as far as it is given any."""


def _split(fields: dict[str, _Value]) -> _Given:
    version = fields.pop(_VERSION, None)
    return fields, version


def _switched(step: _Value, given: _Given, version: Version) -> tuple[Process, str]:
    if not any(given):
        raise step.wrong(f"gives neither gates nor a {_VERSION}")
    return _process(given, version)


def _process(given: _Given, version: Version) -> tuple[Process, str]:
    """A component that is given these gates, or this version; and both as a story tells them.

    What is not named has the version's default, whatever it was before.
    """
    gates, wanted = given
    told = [f"{gate}={str(it.flag()).lower()}" for gate, it in gates.items()]
    if wanted:
        version, text = wanted.version()
        told.insert(
            0, f"Kubernetes {text}" if gates else f"Kubernetes {text} and its default gates"
        )
    values = {gate: it.flag() for gate, it in gates.items()}
    for problem in problems(version, values):
        raise gates[problem.gate].wrong(problem.reason)
    return Process(version, values), ", ".join(told)


def _refuse_older(kubelet: Process, controller: Process, where: _Value) -> None:
    allowed = controller.version.supported_skew
    if controller.version.minor - kubelet.version.minor > allowed:
        raise where.wrong(
            f"makes kubelets ({kubelet.version.of_minor}) more than {allowed} minors older than "
            f"the API server ({controller.version.of_minor}), which Kubernetes does not support"
        )


def _refuse_newer(kubelet: Process, controller: Process, where: _Value) -> None:
    if kubelet.version.first_patch > controller.version.first_patch:
        raise where.wrong(
            f"makes kubelets ({kubelet.version.of_minor}) newer than the API server "
            f"({controller.version.of_minor}), which Kubernetes does not support"
        )
