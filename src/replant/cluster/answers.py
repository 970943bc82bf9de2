"""What an API server's answer means: a body, a reason to ask again, or one of our errors.

No I/O here, and nothing of the client library: this is imported before either is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

from replant.errors import Final, Forbidden, printable

_QUOTED = 300
"""As much of a server's message is shown; Kubernetes' own are shorter."""


@dataclass(frozen=True, slots=True)
class Question:
    """One GET, and how a person would call it."""

    path: str
    verb: str
    what: str
    if_forbidden: str
    """What to do when the cluster does not allow it."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent to a server."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server at this address said."""

    server: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class TryLater(Exception):
    """Not a refusal: the same question may be answered later.

    ``after`` is in seconds and given if the server said so; ``hint`` is what a person might do
    when it is never answered.
    """

    def __init__(self, reason: str, *, after: float | None = None, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after
        self.hint = hint


class _Details(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


class _ListMeta(msgspec.Struct):
    token: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    """As little of a list as paging needs; the items are skipped, not built up."""

    kind: str = ""
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_status = msgspec.json.Decoder(_Status)
_list = msgspec.json.Decoder(_List)


def raise_if_busy(answer: Answer) -> None:
    """Raise TryLater when the server is overloaded or unwell."""
    busy = answer.status == HTTPStatus.TOO_MANY_REQUESTS
    if busy or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise TryLater(f"the answer was {said(answer)}", after=retry_after(answer.headers))


def raise_if_refused(answer: Answer, question: Question) -> None:
    """Raise Forbidden or Final unless the answer is what was asked for."""
    if answer.status == HTTPStatus.OK:
        return
    if answer.status == HTTPStatus.FORBIDDEN:
        raise Forbidden(
            f"{answer.server}: this user may not {question.verb} {question.what} "
            f"({said(answer)}); {question.if_forbidden}"
        )
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise Forbidden(
            f"{answer.server}: the credentials were not accepted when asked to {question.verb} "
            f"{question.what} ({said(answer)}); they may have expired: log in again, or name "
            "others with --kubeconfig or --context"
        )
    raise Final(f"{answer.server}: GET {question.path}: the answer was {said(answer)}")


def says_missing(answer: Answer, name: str) -> bool:
    """Whether a server that serves a kind says that there is no object of this name.

    A kind that is not served is answered with 404 too, and so is all that a proxy does not know:
    neither names the object, and neither says that there is none.
    """
    if answer.status != HTTPStatus.NOT_FOUND:
        return False
    try:
        status = _status.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    named = status.details.name if status.details else ""
    return status.reason == "NotFound" and named == name


def continue_token(answer: Answer, question: Question) -> str:
    """Where the next page begins, empty after the last one."""
    try:
        page = _list.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unusable(answer, question, f"cannot be read as JSON: {error}") from error
    if not page.kind.endswith("List"):
        raise unusable(answer, question, f"is of kind {page.kind or 'nothing'}, not a list")
    return page.metadata.token


def unusable(answer: Answer, question: Question, why: str) -> Final:
    """The error for an answer that says 200 OK and is nothing that Kubernetes says."""
    return Final(
        f"{answer.server}: GET {question.path}: the answer {printable(why)}; "
        "is this the address of a Kubernetes API server?"
    )


def said(answer: Answer) -> str:
    """The status and, where the server gave one, its message."""
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = ""
    try:
        message = _status.decode(answer.body).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = ""  # a proxy's page of HTML would not help anyone
    words = f"{answer.status} {phrase}".strip()
    return printable(f"{words}: {message[:_QUOTED]}" if message else words)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server wants us to wait, whether it gave seconds or a date."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    until = _date(value)
    if until is None:
        return None
    # The server's own clock where it tells it: ours may differ.
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
