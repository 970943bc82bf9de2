"""What a definition of a kind must be like."""

from __future__ import annotations

from collections.abc import Iterator

from replant.objects import Object
from replant.sandbox.refusals import Cause, invalid_value, required_value
from replant.sandbox.resources import defined_resources
from replant.sandbox.schemas.sound import is_sound
from replant.sandbox.structure import structure_of


def definition_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    said = {"spec.group": spec.get("group"), "spec.versions": spec.get("versions")}
    said |= {f"spec.names.{it}": names.get(it) for it in ("plural", "kind")}
    missing = [field for field, value in said.items() if not value]
    yield from map(required_value, missing)
    for place, version in enumerate(spec.get("versions") or ()):
        if not version.get("name"):
            yield required_value(f"spec.versions[{place}].name")
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if not missing and obj["metadata"].get("name") != wanted:
        name = obj["metadata"].get("name")
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not missing and not _is_usable(obj):
        yield invalid_value("spec.versions", "…", "is not built as a definition's versions are")


def _is_usable(definition: Object) -> bool:
    """Whether what it defines can be served: nothing is stored that nobody could read again."""
    try:
        for resource in defined_resources(definition):
            structure_of(resource)
            if resource.schema is not None and not is_sound(resource.schema):
                return False
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True
