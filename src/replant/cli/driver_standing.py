"""How drivers are, as ``replant drivers status`` shows it."""

from __future__ import annotations

from typing import Any

from replant.drivers.adoption import installed_by
from replant.drivers.catalog import Driver
from replant.drivers.conditions import FALSE, TRUE, Condition
from replant.drivers.preview import told
from replant.drivers.sameness import is_ours
from replant.drivers.seen import Decision, Seen
from replant.errors import ReplantError, printable
from replant.objects import Object, name_of

CHANGES = ("available", "progressing", "degraded")


def standing(seen: Seen, decision: Decision) -> Object:
    """How a driver is, and what would come next."""
    csi = seen.csi_driver
    conditions = told(seen, decision)
    return {
        **_named(seen.driver),
        "asked": seen.cr is not None,
        "installedBy": "" if csi is None else "Replant" if is_ours(csi) else installed_by(csi),
        **{it: status_of(conditions, it.capitalize()) for it in CHANGES},
        "message": trouble(conditions),
        "next": [_written(it) for it in decision.writes] or [decision.why],
    }


def unseen(driver: Driver, error: ReplantError) -> Object:
    """The same of a driver that could not be looked at."""
    return {
        **_named(driver),
        "asked": None,
        "installedBy": None,
        **dict.fromkeys(CHANGES, ""),
        "message": str(error),
        "next": [],
    }


def _named(driver: Driver) -> Object:
    return {
        "driver": driver.name,
        "backend": driver.backend,
        "kind": driver.kind,
        "default": driver.default,
    }


def runs(conditions: dict[str, Condition]) -> bool:
    """Whether a driver does all that it should."""
    wanted = {"Available": TRUE, "Progressing": FALSE, "Degraded": FALSE}
    return all(status_of(conditions, kind) == it for kind, it in wanted.items())


def status_of(conditions: dict[str, Condition], kind: str) -> str:
    """Of one condition; "" if there is none of that kind."""
    return conditions[kind].status if kind in conditions else ""


def trouble(conditions: dict[str, Condition]) -> str:
    """What keeps a driver from all being well."""
    for kind in ("Degraded", "Available", "Progressing", "Disabled"):
        found = conditions.get(kind)
        if found is not None and found.reason != "AsExpected":
            return f"{found.reason}: {found.message}"
    return ""


def _written(write: Any) -> str:
    return f"{type(write).__name__.lower()} {name_of(write.object)}"


def rendered(found: list[Object], output: str, cloud: str) -> str:
    """All of them, for people or machines."""
    from replant.manifests import yamltext
    from replant.report import json_document

    if output == "json":
        return json_document.json_text({"cloud": cloud, "drivers": found})
    if output == "yaml":
        return yamltext.dump({"cloud": cloud, "drivers": found})
    lines = [f"Cloud: {cloud}"]
    for it in found:
        how = "installed by default" if it["default"] else "optional"
        by = f"there by {it['installedBy']}" if it["installedBy"] else "not there"
        by = "could not be looked at" if it["installedBy"] is None else by
        lines.append(f"{it['driver']} ({it['backend']}, {how}), {by}")
        said = ", ".join(f"{name} {it[name]}" for name in CHANGES if it[name])
        lines += [f"  {text}" for text in (said, *it["message"].splitlines()) if text]
        steps = it["next"]
        more = f" and {len(steps) - 3} more" if len(steps) > 3 else ""
        if steps:
            lines.append(f"  next: {', '.join(printable(step) for step in steps[:3])}{more}")
    return "\n".join(lines) + "\n"
