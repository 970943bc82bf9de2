"""What ConfigMaps and Secrets must be like, and may become."""

from __future__ import annotations

import re
from collections.abc import Iterator

from replant.objects import Object
from replant.sandbox.refusals import Cause, forbidden_value, invalid_value, required_value

_MOST = 1024 * 1024
_LONGEST_KEY = 253
_KEY = r"[-._a-zA-Z0-9]+"
_IS_KEY = re.compile(_KEY)
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',"
    f"  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
)
_NEEDED = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
"""What a Secret of a type must have."""
_EITHER = ("username", "password")


def config_map_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a ConfigMap."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    yield from _keys("data", data)
    for key in data:
        if key in binary:
            yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _keys("binaryData", binary)
    size = sum(map(_length, data.values())) + sum(map(_decoded_length, binary.values()))
    if size > _MOST:
        yield _too_long("[]")


def secret_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a Secret."""
    data = obj.get("data") or {}
    yield from _keys("data", data)
    if sum(map(_decoded_length, data.values())) > _MOST:
        yield _too_long("data")
    kind = obj.get("type")
    needed = _NEEDED.get(str(kind), ())
    if kind == "kubernetes.io/basic-auth" and not any(it in data for it in _EITHER):
        needed = _EITHER
    for key in needed:
        if key not in data:
            yield required_value(f"data[{key}]")


def _keys(field: str, data: Object) -> Iterator[Cause]:
    for key in data:
        within = f"{field}[{key}]"
        if len(key) > _LONGEST_KEY:
            why = f"must be no more than {_LONGEST_KEY} characters"
            yield invalid_value(within, key, why)
        if not _IS_KEY.fullmatch(key):
            yield invalid_value(within, key, _KEY_RULE)
        if key in {".", ".."}:
            yield invalid_value(within, key, f"must not be '{key}'")
        elif key.startswith(".."):
            yield invalid_value(within, key, "must not start with '..'")


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _decoded_length(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def _too_long(field: str) -> Cause:
    return Cause(field, f"Too long: must have at most {_MOST} bytes", "FieldValueTooLong")


def kept_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of what says that it stays as it is."""
    if old.get("immutable") is not True:
        return
    why = "field is immutable when `immutable` is set"
    if new.get("immutable") is not True:
        yield forbidden_value("immutable", why)
    for part in ("data", "binaryData"):
        if (old.get(part) or {}) != (new.get(part) or {}):
            yield forbidden_value(part, why)
