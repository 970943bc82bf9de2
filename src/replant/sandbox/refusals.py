"""How the API says no: the Status objects that clients decide by, in the real server's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replant.objects import Object
from replant.sandbox.resources import Resource

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
EXPIRED_LIST = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class ApiError(Exception):
    """An answer that is not what was asked for."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Object | None = None,
        metadata: Object | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}

    def status(self) -> Object:
        """As the API sends it."""
        said: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            said["reason"] = self.reason
        if self.details is not None:
            said["details"] = self.details
        return {**said, "code": self.code}


@dataclass(frozen=True)
class Cause:
    """One thing that is wrong with an object."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


def invalid_value(field: str, value: object, why: str) -> Cause:
    """A value that is not allowed there."""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Cause(field, f"Invalid value: {shown}: {why}")


def forbidden_value(field: str, why: str) -> Cause:
    """Something that may not be said or changed there."""
    return Cause(field, f"Forbidden: {why}", "FieldValueForbidden")


def required_value(field: str, why: str = "") -> Cause:
    """Something that must be said there."""
    said = f"Required value: {why}" if why else "Required value"
    return Cause(field, said, "FieldValueRequired")


def unsupported_value(field: str, value: object, supported: Sequence[str]) -> Cause:
    """A value that is none of those that can be."""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    listed = ", ".join(f'"{it}"' for it in supported)
    return Cause(
        field, f"Unsupported value: {shown}: supported values: {listed}", "FieldValueNotSupported"
    )


def duplicate_value(field: str, value: str) -> Cause:
    """A value that may be there once."""
    return Cause(field, f'Duplicate value: "{value}"', "FieldValueDuplicate")


def not_found_value(field: str, value: str) -> Cause:
    """A value that must be one of what is said elsewhere."""
    return Cause(field, f'Not found: "{value}"', "FieldValueNotFound")


def _about(resource: Resource, name: str) -> Object:
    details: Object = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    return {**details, "kind": resource.plural}


def not_found(resource: Resource, name: str) -> ApiError:
    """There is no such object."""
    return ApiError(
        404, "NotFound", f'{resource.qualified} "{name}" not found', _about(resource, name)
    )


def already_exists(resource: Resource, name: str) -> ApiError:
    """The name is taken."""
    said = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", said, _about(resource, name))


def conflict(resource: Resource, name: str, why: str, *, by_kind: bool = False) -> ApiError:
    """The object is not what whoever asks takes it for."""
    details = _about(resource, name)
    called = resource.qualified
    if by_kind:
        called = resource.kind + (f".{resource.group}" if resource.group else "")
        details["kind"] = resource.kind
    said = f'Operation cannot be fulfilled on {called} "{name}": {why}'
    return ApiError(409, "Conflict", said, details)


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """The object is not one that may be stored."""
    return invalid_kind(resource.kind, resource.group, name, causes)


def invalid_kind(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """The same, of anything that has a kind."""
    each = [f"{cause.field}: {cause.message}" for cause in causes]
    said = each[0] if len(each) == 1 else f"[{', '.join(each)}]"
    called = f"{kind}.{group}" if group else kind
    details: Object = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    return ApiError(422, "Invalid", f'{called} "{name}" is invalid: {said}', details)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """It may not be done."""
    said = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", said, _about(resource, name))


def bad_request(why: str) -> ApiError:
    """The request makes no sense."""
    return ApiError(400, "BadRequest", why)


def nothing_there() -> ApiError:
    """Nothing is served at that place."""
    said = "the server could not find the requested resource"
    return ApiError(404, "NotFound", said, {})


def method_not_allowed() -> ApiError:
    """Something is served there, but not so."""
    said = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", said, {})


def not_acceptable() -> ApiError:
    """Nobody here can answer in that format."""
    return ApiError(406, "NotAcceptable", "406: Not Acceptable", {})


def unsupported_body() -> ApiError:
    """Nobody here reads that format."""
    said = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml"
    )
    return ApiError(415, "UnsupportedMediaType", said)


def unsupported_patch() -> ApiError:
    """A patch that is none of those that are known."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unsupported_custom_patch() -> ApiError:
    """A patch for which one would have to know more of the kind."""
    said = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    return ApiError(415, "UnsupportedMediaType", said)


def unusable_patch() -> ApiError:
    """A patch that cannot be carried out on the object as it is."""
    said = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", said, {})


def unreadable_patch(why: str) -> ApiError:
    """A patch that makes something of the object that is none of its kind."""
    cause = {"reason": "FieldValueInvalid", "message": f"Invalid value: {why}", "field": "patch"}
    said = f' "" is invalid: patch: {cause["message"]}'
    return ApiError(422, "Invalid", said, {"causes": [cause]})


def expired(message: str, continue_token: str = "") -> ApiError:
    """What was asked for was once known."""
    metadata = {"continue": continue_token} if continue_token else {}
    return ApiError(410, "Expired", message, metadata=metadata)


def too_old(asked: int, oldest: int) -> ApiError:
    """A watch from where events are no longer known."""
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def from_the_future(asked: int, current: int) -> ApiError:
    """A resourceVersion that is still to come."""
    said = f"Timeout: Too large resource version: {asked}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(504, "Timeout", said, {"causes": [cause], "retryAfterSeconds": 1})
