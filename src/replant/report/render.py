"""The one door to all formats: a scan's result in, the text of a report out.

Nothing here prints, reads the clock or looks at the environment; whoever calls knows how wide the
terminal is and whether it takes colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from replant.inventory.findings import ScanResult

_TERMINAL = ("table", "wide")

_MODULES = {
    "json": "json_document",
    "yaml": "yaml_document",
    "markdown": "markdown",
    "csv": "spreadsheet",
    "junit": "junit",
    "sarif": "sarif",
    "html": "page",
}
"""The format's module; none is loaded before it is wanted."""

FORMATS = (*_TERMINAL, *_MODULES)
"""What ``render`` can make, in the order in which a person should be offered it."""


def pieces(
    result: ScanResult,
    format: str,  # noqa: A002
    *,
    width: int | None = None,
    colour: bool = False,
) -> Iterator[str]:
    """The report in as many pieces as its format has: together they may be large."""
    module = import_module(f"replant.report.{_MODULES[format]}") if format in _MODULES else None
    if module and hasattr(module, "pieces"):
        yield from module.pieces(result)
    elif module:
        yield module.render(result)
    else:
        yield render(result, format, width=width, colour=colour)


def render(
    result: ScanResult,
    format: str,  # noqa: A002
    *,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """The report, ending in a newline; ValueError where there is no such format.

    ``width`` and ``colour`` are for table and wide; without a width no line is wrapped.
    """
    if format in _TERMINAL:
        from replant.report import terminal

        return terminal.render(result, wide=format == "wide", width=width, colour=colour)
    if format not in _MODULES:
        raise ValueError(f"{format!r} is not a format; there are {', '.join(FORMATS)}")
    return "".join(pieces(result, format))
