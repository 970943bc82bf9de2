"""The answers of Kubernetes' own translator, and those wanted where it crashes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from replant.errors import TranslationError
from tests.translate.comparing import ask, typed

FOLDER = Path(__file__).parent / "vectors"
VECTORS = [
    json.loads(line)
    for file in ("translate.jsonl", "beyond-reference.jsonl")
    for line in (FOLDER / file).read_text().splitlines()
]


def ids(vectors: list[dict[str, Any]]) -> list[str]:
    return [vector["id"] for vector in vectors]


ANSWERED = [vector for vector in VECTORS if "expect" in vector]
REFUSED = [vector for vector in VECTORS if "error" in vector]


def test_all_vectors_are_there() -> None:
    assert (len(ANSWERED), len(REFUSED)) == (1354, 154)


@pytest.mark.parametrize("vector", ANSWERED, ids=ids(ANSWERED))
def test_same_answer(vector: dict[str, Any]) -> None:
    before = copy.deepcopy(vector)
    assert typed(ask(vector)) == typed(vector["expect"])
    assert vector == before, "the input was changed"


@pytest.mark.parametrize("vector", REFUSED, ids=ids(REFUSED))
def test_refused_with_object_and_field(vector: dict[str, Any]) -> None:
    with pytest.raises(TranslationError) as caught:
        ask(vector)
    subject = vector.get("pv") or vector.get("storageClass") or vector.get("volume") or {}
    if "is not a known" in caught.value.reason:
        assert caught.value.object == vector.get("plugin", vector.get("driver"))
    elif subject:
        assert subject.get("metadata", subject)["name"] in caught.value.object
        assert caught.value.field or "no in-tree source" in caught.value.reason
    else:
        assert caught.value.object == vector["driver"]
        assert caught.value.field
