"""Which fields of a volume its native form cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replant.errors import TranslationError
from replant.objects import Object
from replant.translate import pv_to_in_tree
from replant.translate.losses import Start, losses

_HARMLESS = (
    "metadata.",
    "spec.nodeAffinity",
    "spec.awsElasticBlockStore.volumeID",
    "spec.azureDisk.diskName",
    "spec.azureFile.secretNamespace",
)
"""Fields that come back in other words and say the same."""


def losses_of(plugin: str, pv: Object, after: Object) -> Iterator[str]:
    """What the twin no longer says, in the words of the list of losses."""
    try:
        again = pv_to_in_tree(after)
    except TranslationError:
        again = {}  # nothing tells what it has kept, so that all that may be lost counts as lost
    for loss in losses(plugin, Start.IN_TREE):
        if not loss.field.startswith(_HARMLESS):
            was = _at(pv, loss.field)
            if was is not None and was != _at(again, loss.field):
                yield f"{loss.field}: {loss.why}"


def no_way_back(after: Object) -> str:
    """What is to be known of a twin that loses nothing, but that nobody could translate back."""
    try:
        pv_to_in_tree(after)
    except TranslationError as error:
        return (
            f"could not be translated back ({error.field}: {error.reason}). That takes nothing "
            "from its twin, and --undo does not need it: the journal keeps the whole volume."
        )
    return ""


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
