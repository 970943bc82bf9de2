"""Whatever is passed in: an answer or a TranslationError, and the input as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replant import translate
from replant.errors import TranslationError
from replant.translate.manifest import Target, translate_object
from replant.translate.workloads import InlineDefaults
from tests.translate import strategies

pytestmark = pytest.mark.exhaustive


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just("\ud800")
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = sorted(
    {
        *(field for field, _ in strategies.IN_TREE_SOURCES.values()), "csi", "nodeAffinity",
        "accessModes", "claimRef", "template", "jobTemplate", "volumes", "volumeClaimTemplates",
        "cephfs",
    }
)  # fmt: skip

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value."""
    found = [here]
    if isinstance(value, dict):
        for key, item in value.items():
            found += paths(item, (*here, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += paths(item, (*here, index))
    return found


def broken(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """The value with one place of it replaced, or removed where the junk is Ellipsis."""
    if not path:
        return {} if junk is ... else junk
    copied = copy.copy(value)
    if junk is ... and len(path) == 1:
        del copied[path[0]]
    else:
        copied[path[0]] = broken(value[path[0]], path[1:], junk)
    return copied


def answers(function: Callable[..., Any], *arguments: Any) -> None:
    before = copy.deepcopy(arguments)
    refusal = "an answer"
    try:
        function(*arguments)
    except TranslationError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert repr(arguments) == repr(before), "the input was changed"


@st.composite
def mutants(draw: st.DrawFn, healthy: st.SearchStrategy[dict[str, Any]]) -> Any:
    value = draw(healthy)
    path = draw(st.sampled_from(paths(value)))
    return broken(value, path, draw(st.one_of(JUNK, st.just(...))))


PLUGIN = st.sampled_from(strategies.PLUGINS)


@settings(unhurried, max_examples=400)
@given(PLUGIN.flatmap(lambda plugin: mutants(strategies.in_tree_volumes(plugin))))
def test_broken_in_tree_volumes(volume: Any) -> None:
    answers(translate.pv_to_csi, volume)


@settings(unhurried, max_examples=400)
@given(PLUGIN.flatmap(lambda plugin: mutants(strategies.csi_volumes(plugin))))
def test_broken_csi_volumes(volume: Any) -> None:
    answers(translate.pv_to_in_tree, volume)


@settings(unhurried, max_examples=300)
@given(PLUGIN.flatmap(lambda plugin: mutants(strategies.inline_volumes(plugin))), JUNK)
def test_broken_inline_volumes(volume: Any, namespace: Any) -> None:
    answers(translate.inline_to_csi, volume, namespace)


@settings(unhurried, max_examples=300)
@given(
    PLUGIN.flatmap(
        lambda plugin: st.tuples(st.just(plugin), mutants(strategies.storage_classes(plugin)))
    )
)
def test_broken_classes(pair: tuple[str, Any]) -> None:
    answers(translate.storage_class_to_csi, *pair)


@settings(unhurried, max_examples=200)
@given(JUNK, JUNK, JUNK)
def test_junk(first: Any, second: Any, third: Any) -> None:
    for function in (
        translate.pv_to_csi, translate.pv_to_in_tree, translate.plugin_of, translate.is_migratable,
        translate.driver_of, translate.plugin_for_driver,
    ):  # fmt: skip
        answers(function, first)
    answers(translate.inline_to_csi, first, second)
    answers(translate.storage_class_to_csi, first, second)
    for driver in ("pd.csi.storage.gke.io", "ebs.csi.aws.com", first):
        answers(translate.repair_volume_handle, driver, second, third)


@settings(unhurried, max_examples=300)
@given(
    st.sampled_from(["PersistentVolume", "StorageClass", "Pod", "Deployment", "CronJob", "Other"]),
    st.dictionaries(
        st.sampled_from(["spec", "metadata", "provisioner", "parameters", "template"]),
        st.one_of(JUNK, st.dictionaries(st.sampled_from(FIELDS), JUNK, max_size=3)),
    ),
    st.sampled_from(Target),
)
def test_junk_objects(kind: str, obj: dict[str, Any], target: Target) -> None:
    answers(translate_object, obj, kind, target, InlineDefaults())


@pytest.mark.parametrize("field", ["volumeID", "fsType", "partition", "readOnly"])
def test_deep_nesting_is_a_wrong_type_like_any_other(field: str) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    pv = {"metadata": {"name": "db"}, "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}}
    pv["spec"]["awsElasticBlockStore"][field] = deep  # type: ignore[index]
    with pytest.raises(TranslationError, match=f"{field}: must be .*, not a list"):
        translate.pv_to_csi(pv)


@pytest.mark.parametrize("obj", [{"": {}}, {"spec": {"": {}}}, {"spec": {None: {}}}])
def test_odd_keys(obj: Any) -> None:
    answers(translate.pv_to_csi, obj)
    answers(translate.inline_to_csi, obj, "default")


@pytest.mark.parametrize("partition", [2**31, -(2**31) - 1, 10**30])
def test_numbers_that_do_not_fit_are_refused(partition: int) -> None:
    source = {"volumeID": "vol-1", "partition": partition}
    with pytest.raises(TranslationError, match="too large"):
        translate.pv_to_csi({"spec": {"awsElasticBlockStore": source}})
    attributes = {"partition": str(partition)}
    csi = {"driver": "ebs.csi.aws.com", "volumeHandle": "a", "volumeAttributes": attributes}
    with pytest.raises(TranslationError, match=r"too large|whole number"):
        translate.pv_to_in_tree({"spec": {"csi": csi}})


def test_two_sources_in_one_volume_are_refused() -> None:
    both = {"awsElasticBlockStore": {"volumeID": "vol-1"}, "rbd": {"image": "a", "monitors": ["m"]}}
    with pytest.raises(TranslationError, match="only one source is allowed"):
        translate.pv_to_csi({"metadata": {"name": "db"}, "spec": both})
    with pytest.raises(TranslationError, match="only one source is allowed"):
        translate.inline_to_csi({"name": "data", **both}, "default")
    beside = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}, "rbd": {"image": "a"}}
    for function in (translate.pv_to_csi, translate.pv_to_in_tree):
        with pytest.raises(TranslationError, match="only one source is allowed"):
            function({"metadata": {"name": "db"}, "spec": beside})


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ("awsElasticBlockStore", "volumeID"), ("gcePersistentDisk", "pdName"),
        ("cinder", "volumeID"), ("azureDisk", "diskURI"), ("azureFile", "secretName"),
        ("vsphereVolume", "volumePath"), ("portworxVolume", "volumeID"), ("rbd", "monitors"),
    ],
)  # fmt: skip
def test_a_volume_that_names_no_disk_is_refused(source: str, field: str) -> None:
    claim = {"namespace": "default", "name": "data"}
    pv = {"metadata": {"name": "db"}, "spec": {source: {}, "claimRef": claim}}
    with pytest.raises(TranslationError) as caught:
        translate.pv_to_csi(pv)
    assert caught.value.field == f"spec.{source}.{field}"
