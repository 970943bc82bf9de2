"""Words and numbers that all formats share, so that every report says the same."""

from __future__ import annotations

from collections.abc import Iterator

from replant.errors import printable
from replant.inventory.findings import PluginCounts, ScanResult

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

INVENTORY_HEADINGS = (
    "Plugin", "Driver", "Volumes", "Size", "Claims", "Classes", "Workloads", "Nodes",
)  # fmt: skip
"""What ``inventory_rows`` has in its columns; the first two are names, the others numbers."""

NAME_COLUMNS = 2


def lines_of(text: str) -> list[str]:
    """The lines of a text from somewhere else, each without control characters."""
    return [printable(line) for line in text.replace("\r\n", "\n").split("\n")]


def plain(text: str) -> str:
    """``text`` with its line breaks, all other control characters escaped.

    What is left is also what XML and HTML allow, and what UTF-8 can say.
    """
    return text if text.isprintable() else "\n".join(lines_of(text))


def human_bytes(size: int) -> str:
    """A size as Kubernetes' own units have it: 1.5 TiB."""
    power = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    # In whole numbers, because a sum of nonsensical capacities may exceed what a float can hold.
    whole, tenth = divmod((size * 10 + 2 ** (10 * power) // 2) // 2 ** (10 * power), 10)
    return f"{whole:,}.{tenth} {_UNITS[power]}" if tenth else f"{whole:,} {_UNITS[power]}"


def noun_for(count: int, noun: str) -> str:
    """The noun, in the plural where it has one and the count wants it."""
    if count == 1 or noun == "info":
        return noun
    return f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"


def number_of(count: int, noun: str) -> str:
    """1 object, 2,000 objects."""
    return f"{count:,} {noun_for(count, noun)}"


def headline(result: ScanResult) -> str:
    """The first line of a report."""
    summary = printable(result.summary)
    return f"{result.verdict.value}: {summary}" if summary else result.verdict.value


def versions(result: ScanResult) -> str:
    """Where the cluster is and where it should go."""
    server = printable(result.server_version) or "unknown"
    target = printable(result.target_version)
    return f"server version {server}" + (f", target version {target}" if target else "")


def read_summary(result: ScanResult) -> str:
    """How many objects were read, and what became of them."""
    counts = result.read.values()
    seen = number_of(sum(count.seen for count in counts), "object")
    used = sum(count.used for count in counts)
    passed_over = sum(count.passed_over for count in counts)
    return f"{seen} read, {used:,} used, {passed_over:,} passed over"


def inventory_rows(plugins: dict[str, PluginCounts]) -> Iterator[tuple[str, ...]]:
    """One row of texts for each plugin, as ``INVENTORY_HEADINGS`` has them."""
    for name, counts in plugins.items():
        numbers = (counts.claims, counts.classes, counts.workloads, counts.nodes)
        yield (
            printable(name),
            printable(counts.driver) or "none",
            f"{counts.volumes:,}",
            human_bytes(counts.bytes),
            *(f"{number:,}" for number in numbers),
        )
