"""Bodies in protobuf, which new kubectls send for the few kinds that they make by themselves.

The tables say what the fields of those kinds are called. A field that they do not know is not
dropped: such a body is refused as a whole.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from replant.objects import Object

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


class Unreadable(Exception):
    """A body that is no protobuf, or of a kind or with a field that is not in the tables."""


@dataclass(frozen=True)
class Field:
    """A field: its name, how its content is read, and whether it comes again."""

    name: str
    read: Callable[[Any], Any]
    many: bool | str = False
    """``map`` if it comes again with another entry of a map."""


Message = dict[int, Field]


def decode(body: bytes) -> Object:
    """The object in a body, as JSON would have given it."""
    if not body.startswith(_MAGIC):
        raise Unreadable("no magic number")
    envelope = dict(_parts(body[len(_MAGIC) :]))
    kind = dict(_parts(envelope.get(1, b"")))
    api_version, name = _text(kind.get(1, b"")), _text(kind.get(2, b""))
    message = _KINDS.get((api_version, name))
    if message is None:
        raise Unreadable(f"{name} of {api_version}")
    return {"apiVersion": api_version, "kind": name, **_message(message)(envelope.get(2, b""))}


def _parts(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message by their number: numbers as they are, all else as bytes."""
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        match tag & 7:
            case 0:
                value, place = _varint(content, place)
                yield tag >> 3, value
            case 2:
                length, place = _varint(content, place)
                if place + length > len(content):
                    raise Unreadable("a field ends behind its message")
                yield tag >> 3, content[place : place + length]
                place += length
            case unknown:
                raise Unreadable(f"a field of wire type {unknown}")


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(content):
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return value, place
    raise Unreadable("a number without an end")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except (AttributeError, UnicodeDecodeError) as error:
        raise Unreadable(str(error)) from None


def _number(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _message(fields: Message) -> Callable[[bytes], Object]:
    def read(content: bytes) -> Object:
        found: Object = {}
        for number, value in _parts(content):
            if number not in fields:
                if _says_nothing(value):
                    continue
                raise Unreadable(f"field {number}")
            field = fields[number]
            part = field.read(value)
            if field.many == "map":
                found.setdefault(field.name, {}).update(part)
            elif field.many:
                found.setdefault(field.name, []).append(part)
            elif part not in ("", {}):
                # What is not said is written as if it were said to be nothing.
                found[field.name] = part
        return found

    return read


def _says_nothing(value: Any) -> bool:
    """Whether a field is there only because fields that are not set are written too."""
    if not isinstance(value, bytes) or not value:
        return not value
    try:
        return all(_says_nothing(part) for _number, part in _parts(value))
    except Unreadable:
        return False


def _map(read_value: Callable[[bytes], Any]) -> Callable[[bytes], Object]:
    def read(content: bytes) -> Object:
        entry = dict(_parts(content))
        return {_text(entry.get(1, b"")): read_value(entry.get(2, b""))}

    return read


def _fields(**numbered: tuple[Any, ...]) -> Message:
    """``name=(number, how, many)``, and strings where nothing is said."""
    table: Message = {}
    for name, (number, *rest) in numbered.items():
        read = rest[0] if rest else _text
        table[number] = Field(name.rstrip("_"), read, rest[1] if len(rest) > 1 else False)
    return table


_STRINGS, _BYTES = _map(_text), _map(_base64)
_NAMED = _message(_fields(name=(1,)))


def _ignored(_value: Any) -> str:
    return ""


_METADATA = _message(
    _fields(
        name=(1,), generateName=(2,), namespace=(3,), selfLink=(4,), uid=(5,),
        resourceVersion=(6,), creationTimestamp=(8, _ignored),
        labels=(11, _STRINGS, "map"), annotations=(12, _STRINGS, "map"),
        finalizers=(14, _text, True),
    )
)  # fmt: skip
_PORT = _message(
    _fields(
        name=(1,), hostPort=(2, _number), containerPort=(3, _number), protocol=(4,), hostIP=(5,)
    )
)
_CONTAINER = _message(
    _fields(
        name=(1,), image=(2,), command=(3, _text, True), args=(4, _text, True), workingDir=(5,),
        ports=(6, _PORT, True), env=(7, _message(_fields(name=(1,), value=(2,))), True),
        terminationMessagePath=(13,), imagePullPolicy=(14,),
    )
)  # fmt: skip
_POD_SPEC = _message(_fields(containers=(2, _CONTAINER, True), restartPolicy=(3,), dnsPolicy=(6,)))
_TEMPLATE = _message(_fields(metadata=(1, _METADATA), spec=(2, _POD_SPEC)))
_SELECTOR = _message(_fields(matchLabels=(1, _STRINGS, "map")))
_DEPLOYMENT = _message(
    _fields(replicas=(1, _number), selector=(2, _SELECTOR), template=(3, _TEMPLATE))
)
_JOB = _message(
    _fields(
        parallelism=(1, _number), completions=(2, _number), activeDeadlineSeconds=(3, _number),
        template=(6, _TEMPLATE),
    )
)  # fmt: skip
_CRON_JOB = _message(
    _fields(
        schedule=(1,),
        concurrencyPolicy=(3,),
        suspend=(4, bool),
        jobTemplate=(5, _message(_fields(metadata=(1, _METADATA), spec=(2, _JOB)))),
    )
)


def _number_or_text(content: bytes) -> int | str:
    parts = dict(_parts(content))
    return _text(parts.get(3, b"")) if parts.get(1) else _number(parts.get(2, 0))


_BUDGET = _message(
    _fields(
        minAvailable=(1, _number_or_text), selector=(2, _SELECTOR),
        maxUnavailable=(3, _number_or_text),
    )
)  # fmt: skip
_SERVICE_PORT = _message(
    _fields(
        name=(1,), protocol=(2,), port=(3, _number), targetPort=(4, _number_or_text),
        nodePort=(5, _number),
    )
)  # fmt: skip
_SERVICE = _message(
    _fields(
        ports=(1, _SERVICE_PORT, True), selector=(2, _STRINGS, "map"), clusterIP=(3,), type=(4,),
        externalName=(10,),
    )
)  # fmt: skip
_RULE = _message(
    _fields(
        verbs=(1, _text, True), apiGroups=(2, _text, True), resources=(3, _text, True),
        resourceNames=(4, _text, True), nonResourceURLs=(5, _text, True),
    )
)  # fmt: skip
_SUBJECT = _message(_fields(kind=(1,), apiGroup=(2,), name=(3,), namespace=(4,)))
_ROLE_REF = _message(_fields(apiGroup=(1,), kind=(2,), name=(3,)))
_RESOURCE_ATTRIBUTES = _message(
    _fields(
        namespace=(1,), verb=(2,), group=(3,), version=(4,), resource=(5,), subresource=(6,),
        name=(7,),
    )
)  # fmt: skip
_ACCESS = _message(
    _fields(
        resourceAttributes=(1, _RESOURCE_ATTRIBUTES),
        nonResourceAttributes=(2, _message(_fields(path=(1,), verb=(2,)))),
    )
)
_DELETE_OPTIONS = _fields(
    gracePeriodSeconds=(1, _number),
    preconditions=(2, _message(_fields(uid=(1,), resourceVersion=(2,)))),
    orphanDependents=(3, bool),
    propagationPolicy=(4,),
    dryRun=(5, _text, True),
)


def _object(**numbered: tuple[Any, ...]) -> Message:
    return _fields(metadata=(1, _METADATA), **numbered)


_REVIEW_STATUS = (3, _ignored)
_KINDS: dict[tuple[str, str], Message] = {
    ("v1", "Namespace"): _object(),
    ("v1", "ConfigMap"): _object(
        data=(2, _STRINGS, "map"), binaryData=(3, _BYTES, "map"), immutable=(4, bool)
    ),
    ("v1", "Secret"): _object(
        data=(2, _BYTES, "map"), type=(3,), stringData=(4, _STRINGS, "map"), immutable=(5, bool)
    ),
    ("v1", "ServiceAccount"): _object(imagePullSecrets=(3, _NAMED, True)),
    ("v1", "DeleteOptions"): _DELETE_OPTIONS,
    ("meta.k8s.io/v1", "DeleteOptions"): _DELETE_OPTIONS,
    ("policy/v1", "Eviction"): _object(deleteOptions=(2, _message(_DELETE_OPTIONS))),
    ("apps/v1", "Deployment"): _object(spec=(2, _DEPLOYMENT)),
    ("batch/v1", "Job"): _object(spec=(2, _JOB)),
    ("batch/v1", "CronJob"): _object(spec=(2, _CRON_JOB)),
    ("policy/v1", "PodDisruptionBudget"): _object(spec=(2, _BUDGET)),
    ("v1", "Service"): _object(spec=(2, _SERVICE)),
    ("rbac.authorization.k8s.io/v1", "Role"): _object(rules=(2, _RULE, True)),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): _object(
        rules=(2, _RULE, True),
        aggregationRule=(3, _message(_fields(clusterRoleSelectors=(1, _SELECTOR, True)))),
    ),
    **{
        ("rbac.authorization.k8s.io/v1", kind): _object(
            subjects=(2, _SUBJECT, True), roleRef=(3, _ROLE_REF)
        )
        for kind in ("RoleBinding", "ClusterRoleBinding")
    },
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): _object(
        spec=(2, _ACCESS), status=_REVIEW_STATUS
    ),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): _object(
        spec=(2, _message(_fields(namespace=(1,)))), status=_REVIEW_STATUS
    ),
}
