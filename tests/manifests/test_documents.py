"""Documents of files: JSON and YAML, one object or a list, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replant.errors import InputError
from replant.manifests import sources
from replant.manifests.documents import Document, documents

PV = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "a"}}


def read(data: bytes, name: str = "file") -> list[Document | InputError]:
    return list(documents(sources.Source(name, data)))


def values(data: bytes, name: str = "file") -> list[Any]:
    return [
        str(document)
        if isinstance(document, InputError)
        else (document.head, [item.value() for item in document.items])
        for document in read(data, name)
    ]


def test_json_documents_follow_one_another() -> None:
    data = b' {"a": 1}\n{"b": {"c": [2, "x\\"}"]}}{"d":3}  \n'
    assert values(data) == [
        (None, [{"a": 1}]), (None, [{"b": {"c": [2, 'x"}']}}]), (None, [{"d": 3}]),
    ]  # fmt: skip


def test_json_between_separators_is_read_too() -> None:
    assert values(b'{"a": 1}\n---\n{"b": 2}\n---\nc: 3\n') == [
        (None, [{"a": 1}]), (None, [{"b": 2}]), (None, [{"c": 3}]),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["List", "PersistentVolumeList"])
def test_a_list_is_taken_apart(kind: str) -> None:
    whole = {"apiVersion": "v1", "kind": kind, "items": [PV, PV], "metadata": {"continue": ""}}
    head = {key: value for key, value in whole.items() if key != "items"}
    assert values(json.dumps(whole).encode()) == [(head, [PV, PV])]
    as_yaml = "\n".join(f"{key}: {json.dumps(value)}" for key, value in whole.items())
    assert values(as_yaml.encode()) == [(head, [PV, PV])]


@pytest.mark.parametrize("items", ["null", "[]"])
def test_an_empty_list_is_a_list(items: str) -> None:
    assert values(f'{{"kind": "List", "items": {items}}}'.encode()) == [({"kind": "List"}, [])]
    assert values(f"kind: List\nitems: {items}".encode()) == [({"kind": "List"}, [])]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1} {"b": ', "file, document 2: is not valid JSON: Input data was truncated"),
        (b'{"a": 1} [1] {"b": 2}', "file, document 2: is JSON, but not an object"),
        (b'{"kind": "List", "items": 3}', "file, document 1: items: Expected `array | null`"),
        (b"a: 1\n---\nb: [\n---\nc: 1", "file, document 2: is not valid YAML"),
        (b"a: 1\n---\n- b\n", "file, document 2: is YAML, but not an object"),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "file, document 1: is nested too deeply"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_document(data: bytes, message: str) -> None:
    found = [str(document) for document in read(data) if isinstance(document, InputError)]
    assert len(found) == 1
    assert found[0].startswith(message)


def test_one_broken_document_costs_no_other() -> None:
    assert values(b"a: 1\n---\nb: [\n---\nc: 3\n")[::2] == [(None, [{"a": 1}]), (None, [{"c": 3}])]
    assert values(b'{"a": 1} [1] {"b": 2}')[::2] == [(None, [{"a": 1}]), (None, [{"b": 2}])]


def test_yaml_may_start_with_a_brace() -> None:
    assert values(b"{a: 1, b: [x]}") == [(None, [{"a": 1, "b": ["x"]}])]


def test_a_kind_that_only_ends_like_a_list_is_an_object() -> None:
    whole = {"apiVersion": "example.com/v1", "kind": "AllowList", "items": ["a"]}
    assert values(json.dumps(whole).encode()) == [(None, [whole])]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_with_byte_order_marks_are_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "dump.json"
    file.write_text('{"name": "größe"}', encoding=encoding)
    assert json.loads(sources.read(file, 9).data) == {"name": "größe"}


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_bytes(b'{"a": "' + b"x" * 2_000_000 + b'\xff"}')
    with pytest.raises(InputError, match=r"is not UTF-8: .* near byte 2000007"):
        sources.read(file, 9)


def test_a_character_across_two_pieces_is_read(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    data = b'{"' + b"x" * (2**20 - 3) + "é".encode() + b'": 1}'
    file.write_bytes(data)
    assert sources.read(file, 9).data == data


def test_large_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InputError, match=r"is larger than 1 MiB .--max-size raises that."):
        sources.read(file, max_mib=1)


def test_folders_give_their_manifests_in_order(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.yml", "a.json", "c.YAML", "deep/d.yaml", "notes.txt"):
        (tmp_path / name).touch()
    assert names(tmp_path, recursive=False) == ["a.json", "b.yml", "c.YAML"]
    assert names(tmp_path, recursive=True) == ["a.json", "b.yml", "c.YAML", "d.yaml"]


def names(folder: Path, *, recursive: bool) -> list[str]:
    found = sources.find(str(folder), recursive=recursive)
    return [file.name for file in found if isinstance(file, Path)]


def test_links_that_lead_nowhere_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("nowhere")
    (file,) = sources.find(str(tmp_path), recursive=False)
    assert isinstance(file, Path)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        sources.read(file, 9)


def test_text_that_ends_in_half_a_character_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_bytes("a: é".encode()[:-1])
    with pytest.raises(InputError, match="is not UTF-8"):
        sources.read(file, 9)


def test_a_folder_without_manifests_is_an_error(tmp_path: Path) -> None:
    (error,) = sources.find(str(tmp_path), recursive=False)
    assert isinstance(error, InputError)
    assert "--recursive" in str(error)
    (error,) = sources.find("", recursive=False)
    assert isinstance(error, InputError)
