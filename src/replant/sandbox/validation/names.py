"""What things may be called, and in which words the API says that they may not."""

from __future__ import annotations

import re
from functools import lru_cache

from replant.sandbox.refusals import Cause, invalid_value, required_value

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME_PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_NAME_PART})?"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    f"used for validation is '{_LABEL}')"
)
_SERVICE_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SERVICE_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{_SERVICE_LABEL}')"
)
_NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME_PART}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '{_VALUE}')"
)
LONGEST_NAME, LONGEST_LABEL = 253, 63
_LONGEST_DRIVER = 63
_IS_SUBDOMAIN, _IS_LABEL, _IS_NAME_PART, _IS_VALUE = map(
    re.compile, (_SUBDOMAIN, _LABEL, _NAME_PART, _VALUE)
)
SUBDOMAIN = (LONGEST_NAME, _IS_SUBDOMAIN, _SUBDOMAIN_RULE)
LABEL = (LONGEST_LABEL, _IS_LABEL, _LABEL_RULE)
SERVICE_LABEL = (LONGEST_LABEL, re.compile(_SERVICE_LABEL), _SERVICE_RULE)
Rule = tuple[int, re.Pattern[str], str]


# Lists, not generators: next to nothing is ever wrong, and everything that is written is checked.
# The same few names come again and again.


def name_causes(field: str, name: str, rule: Rule) -> list[Cause]:
    """What is wrong with a name that must be as a rule says."""
    longest, pattern, why = rule
    causes = []
    if len(name) > longest:
        causes.append(invalid_value(field, name, f"must be no more than {longest} characters"))
    if not pattern.fullmatch(name):
        causes.append(invalid_value(field, name, why))
    return causes


@lru_cache(maxsize=4096)
def driver_causes(field: str, name: str) -> tuple[Cause, ...]:
    """What is wrong with the name of a CSI driver."""
    causes = [] if name else [required_value(field)]
    if len(name) > _LONGEST_DRIVER:
        why = f"Too long: must have at most {_LONGEST_DRIVER} bytes"
        causes.append(Cause(field, why, "FieldValueTooLong"))
    if not _IS_SUBDOMAIN.fullmatch(name.lower()):
        causes.append(invalid_value(field, name, _SUBDOMAIN_RULE))
    return tuple(causes)


@lru_cache(maxsize=65_536)
def label_value_causes(field: str, value: str) -> tuple[Cause, ...]:
    """What is wrong with a label's value."""
    causes = []
    if len(value) > LONGEST_LABEL:
        why = f"must be no more than {LONGEST_LABEL} characters"
        causes.append(invalid_value(field, value, why))
    if not _IS_VALUE.fullmatch(value):
        causes.append(invalid_value(field, value, _VALUE_RULE))
    return tuple(causes)


@lru_cache(maxsize=4096)
def qualified_name_causes(field: str, key: str) -> tuple[Cause, ...]:
    """What is wrong with a name that may have a prefix."""
    causes = []
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        causes.append(invalid_value(field, key, "prefix part must be non-empty"))
    elif prefix and not _IS_SUBDOMAIN.fullmatch(prefix):
        causes.append(invalid_value(field, key, f"prefix part {_SUBDOMAIN_RULE}"))
    if not name:
        causes.append(invalid_value(field, key, "name part must be non-empty"))
    elif len(name) > LONGEST_LABEL:
        why = f"name part must be no more than {LONGEST_LABEL} characters"
        causes.append(invalid_value(field, key, why))
    if not _IS_NAME_PART.fullmatch(name):
        causes.append(invalid_value(field, key, _NAME_PART_RULE))
    return tuple(causes)
