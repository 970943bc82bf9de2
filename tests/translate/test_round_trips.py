"""There and back, for every plugin and from both sides: only what is listed may change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from replant import translate
from replant.errors import TranslationError
from replant.translate.losses import Start, losses
from tests.translate import strategies
from tests.translate.comparing import differences, typed

Translate = Callable[[dict[str, Any]], dict[str, Any]]

OUT: dict[Start, Translate] = {
    Start.IN_TREE: translate.pv_to_csi,
    Start.CSI: translate.pv_to_in_tree,
}
BACK: dict[Start, Translate] = {
    Start.IN_TREE: translate.pv_to_in_tree,
    Start.CSI: translate.pv_to_csi,
}
VOLUMES = {Start.IN_TREE: strategies.in_tree_volumes, Start.CSI: strategies.csi_volumes}

ZONE_KEYS = {strategies.ZONE, strategies.BETA_ZONE} | {
    key for keys in strategies.ZONE_KEYS.values() for key in keys if key.endswith("/zone")
}
REGION_KEYS = {
    strategies.REGION, strategies.BETA_REGION, "topology.csi.vmware.com/region",
}  # fmt: skip

GENERATE_ONLY = [Phase.generate]
unhurried = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def trips() -> st.SearchStrategy[tuple[str, Start, dict[str, Any]]]:
    return st.tuples(st.sampled_from(strategies.PLUGINS), st.sampled_from(Start)).flatmap(
        lambda pair: VOLUMES[pair[1]](pair[0]).map(lambda volume: (*pair, volume))
    )


def there_and_back(start: Start, volume: dict[str, Any]) -> dict[str, Any]:
    """The volume after a round trip; volumes that have no other form do not count."""
    try:
        return BACK[start](OUT[start](volume))
    except TranslationError:
        assume(False)
        raise


@pytest.mark.parametrize("start", Start)
@pytest.mark.parametrize("plugin", strategies.PLUGINS)
@settings(unhurried, max_examples=60)
@given(data=st.data())
def test_only_listed_fields_change(plugin: str, start: Start, data: st.DataObject) -> None:
    volume = data.draw(VOLUMES[start](plugin))
    before = copy.deepcopy(volume)
    returned = there_and_back(start, volume)
    assert volume == before, "the input was changed"
    changed = set(differences(typed(volume), typed(returned)))
    listed = [loss.field for loss in losses(plugin, start)]
    unlisted = [path for path in changed if not any(covers(field, path) for field in listed)]
    assert not unlisted


@settings(unhurried, max_examples=200)
@given(trips())
def test_no_requirement_of_the_affinity_is_lost(trip: tuple[str, Start, dict[str, Any]]) -> None:
    _, start, volume = trip
    before = requirements(volume)
    after = requirements(there_and_back(start, volume))
    if before:
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            assert old <= new


@pytest.mark.parametrize("start", Start)
@pytest.mark.parametrize("plugin", strategies.PLUGINS)
def test_each_listed_loss_really_happens(plugin: str, start: Start) -> None:
    """A list that names too much would hide a real loss, so each reason must have a case."""
    listed = losses(plugin, start)
    reasons = {loss.why for loss in listed}
    seen: set[str] = set()

    @settings(unhurried, max_examples=5000, database=None, phases=GENERATE_ONLY)
    @given(VOLUMES[start](plugin))
    def search(volume: dict[str, Any]) -> None:
        try:
            returned = BACK[start](OUT[start](volume))
        except TranslationError:
            return
        for path in differences(typed(volume), typed(returned)):
            seen.update(loss.why for loss in listed if covers(loss.field, path))
        if seen == reasons:
            raise AllSeen

    with pytest.raises(AllSeen):
        search()


class AllSeen(Exception):
    """There is nothing more to look for."""


def covers(field: str, path: str) -> bool:
    return path == field or path.startswith(f"{field}.")


def requirements(volume: dict[str, Any]) -> list[set[tuple[str, str, tuple[str, ...]]]]:
    """What each affinity term asks for, whatever the spelling of its keys."""
    required = volume["spec"].get("nodeAffinity", {}).get("required", {})
    return [
        {
            (spelled(item["key"]), item["operator"], tuple(item["values"]))
            for item in term.get("matchExpressions", ())
        }
        for term in required.get("nodeSelectorTerms", ())
    ]


def spelled(key: str) -> str:
    if key in ZONE_KEYS:
        return "zone"
    return "region" if key in REGION_KEYS else key
