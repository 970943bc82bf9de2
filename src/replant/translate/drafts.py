"""What a plugin works on: the parts of an object that it may read and change, never the input.

Whatever is not changed is shared with the input; whatever is changed is a copy.
"""

from __future__ import annotations

from typing import NoReturn

from replant.objects import PERSISTENT_VOLUME, STORAGE_CLASS, Object
from replant.translate.fields import Fields, root
from replant.translate.topology import BETA_ZONE, ZONE, Topology


class VolumeDraft:
    """A PersistentVolume on its way from one source to another."""

    __slots__ = (
        "_annotated",
        "_annotations",
        "_labels",
        "_metadata",
        "_pv",
        "_topology",
        "access_modes",
        "spec",
    )

    def __init__(self, pv: object) -> None:
        whole = _of_kind(pv, PERSISTENT_VOLUME)
        self._pv = whole.data
        self._metadata = whole.structure("metadata") or Fields({}, whole, "metadata")
        self.spec = whole.structure("spec") or Fields({}, whole, "spec")
        self._labels: dict[str, str] | None = None
        self._annotations: dict[str, str] | None = None
        self._annotated = False
        self._topology: Topology | None = None
        self.access_modes: list[str] | None = None

    @property
    def name(self) -> str:
        """The volume's name, which must be there."""
        return self._metadata.required_text("name")

    @property
    def labels(self) -> dict[str, str]:
        """The volume's labels, to be read only; ``topology`` sets them."""
        if self._labels is None:
            self._labels = self._metadata.text_map("labels")
        return self._labels

    @property
    def annotations(self) -> dict[str, str]:
        """The volume's annotations, to be read only; ``annotate`` sets them."""
        if self._annotations is None:
            self._annotations = self._metadata.text_map("annotations")
        return self._annotations

    def annotate(self, annotations: dict[str, str]) -> None:
        """Set these annotations, whatever they were."""
        self._annotations = {**self.annotations, **annotations}
        self._annotated = True

    @property
    def topology(self) -> Topology:
        """The volume's zones and regions, to be changed in place."""
        if self._topology is None:
            self._topology = Topology(self.spec, self.labels)
        return self._topology

    def finish(self, old_source: str, new_source: str, source: Object) -> Object:
        """The translated volume, its new source standing where the old one stood."""
        spec = {
            new_source if key == old_source else key: value for key, value in self.spec.data.items()
        }
        spec[new_source] = source
        if self.access_modes is not None:
            spec["accessModes"] = self.access_modes
        changes: Object = {}
        if self._topology:
            self._put_affinity(spec, self._topology)
            if self._topology.labels is not self._labels:
                changes["labels"] = self._topology.labels
        if self._annotated:
            changes["annotations"] = self._annotations
        translated = {**self._pv, "spec": spec}
        if changes:
            translated["metadata"] = {**self._metadata.data, **changes}
        return translated

    def _put_affinity(self, spec: Object, topology: Topology) -> None:
        if not topology.terms:
            return
        affinity = spec.get("nodeAffinity") or {}
        required = {**(affinity.get("required") or {}), "nodeSelectorTerms": topology.terms}
        spec["nodeAffinity"] = {**affinity, "required": required}


class ClassDraft:
    """A StorageClass on its way to a CSI driver."""

    __slots__ = ("_class", "_topologies", "parameters", "provisioner")

    def __init__(self, storage_class: object) -> None:
        self._class = _of_kind(storage_class, STORAGE_CLASS)
        self.parameters = self._class.text_map("parameters")
        self._topologies: list[Object] | None = None
        self.provisioner: str | None = None

    @property
    def owner(self) -> str:
        """What a person calls the class."""
        return self._class.owner

    def refuse(self, parameter: str, reason: str) -> NoReturn:
        """Say that this parameter is why the class cannot be translated."""
        self._class.refuse(f"parameters.{parameter}", reason)

    def replace_parameters(self, pairs: list[tuple[str, str]]) -> None:
        """Set the parameters; two that become one must agree, because their order means nothing."""
        replaced: dict[str, str] = {}
        for key, value in pairs:
            if replaced.setdefault(key, value) != value:
                self.refuse(key, "is given twice, in different spellings and with different values")
        self.parameters = replaced

    def allow_only(self, topology_key: str, zones: list[str], parameter: str) -> None:
        """Say with ``allowedTopologies`` what an in-tree zone parameter said."""
        if self._class.structures("allowedTopologies"):
            self.refuse(parameter, "cannot be used together with allowedTopologies")
        expression = {"key": topology_key, "values": zones}
        self._topologies = [{"matchLabelExpressions": [expression]}]

    def rename_zones(self, topology_key: str) -> None:
        """Speak of zones with the driver's key in ``allowedTopologies``."""
        if self._topologies is None:
            self._topologies = [
                {**term.data, "matchLabelExpressions": _renamed(term, topology_key)}
                if term.data.get("matchLabelExpressions")
                else term.data
                for term in self._class.structures("allowedTopologies")
            ]

    def map_zones(self, topology_key: str, spelling: dict[str, str]) -> None:
        """Replace values of ``topology_key`` in ``allowedTopologies``."""
        self._topologies = [
            {
                **term,
                "matchLabelExpressions": [
                    {**expression, "values": [spelling.get(v, v) for v in expression["values"]]}
                    if expression.get("key") == topology_key and expression.get("values")
                    else expression
                    for expression in term.get("matchLabelExpressions", ())
                ],
            }
            for term in self._topologies or ()
        ]

    def zones(self, topology_key: str) -> set[str]:
        """What ``allowedTopologies`` says of ``topology_key``."""
        return {
            value
            for term in self._topologies or ()
            for expression in term.get("matchLabelExpressions") or ()
            if expression.get("key") == topology_key
            for value in expression.get("values") or ()
        }

    def finish(self) -> Object:
        """The translated class."""
        translated = dict(self._class.data)
        if self.parameters or translated.get("parameters"):
            translated["parameters"] = self.parameters
        if self._topologies:
            translated["allowedTopologies"] = self._topologies
        if self.provisioner:
            translated["provisioner"] = self.provisioner
        return translated


def _of_kind(obj: object, kind: str) -> Fields:
    whole = root(obj, kind)
    if whole.text("kind") not in ("", kind):
        whole.refuse("kind", f"is not {kind}")
    return whole


def _renamed(term: Fields, topology_key: str) -> list[Object]:
    expressions = []
    for expression in term.structures("matchLabelExpressions"):
        expression.texts("values")
        is_zone = expression.text("key") in (ZONE, BETA_ZONE)
        expressions.append({**expression.data, "key": topology_key} if is_zone else expression.data)
    return expressions
