"""What all HTML reports share: one file that asks the network for nothing, a banner, and tiles.

The browser is told so too: a page's policy allows its own style and script, by their hashes, and
nothing else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from replant import __version__

CROSS = "M15 15 29 29M29 15 15 29"
TICK = "M13 23 20 30 32 16"
DASH = "M13 22H31"
BACK = "M20 14 12 22 20 30M12 22H32"
PAUSE = "M17 14V30M27 14V30"
"""Signs for a banner, so that colour is not all that tells outcomes apart."""


class Tile(NamedTuple):
    """A number that is seen at once."""

    sort: str
    """Its class, which may give it a colour."""
    name: str
    value: str


def page(*, title: str, style: str, body: str, origin: str, script: str = "") -> str:
    """The whole page. What it is given is HTML already."""
    last = f"<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">\n'
        f"<title>Replant: {title}</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n"
        f"<footer>Made by Replant {__version__} {origin}.</footer>\n"
        f"{last}</body>\n</html>\n"
    )


def _policy(style: str, script: str) -> str:
    allowed = f"default-src 'none'; style-src {_hash(style)}; "
    if script:
        allowed += f"script-src {_hash(script)}; "
    return f"{allowed}base-uri 'none'"


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def banner(tone: str, sign: str, heading: str, paragraphs: str) -> str:
    """What a person reads first. What it is given is HTML already."""
    drawn = (
        '<svg width="44" height="44" viewBox="0 0 44 44" aria-hidden="true" fill="none" '
        'stroke="currentColor" stroke-width="3.5" stroke-linecap="round">'
        f'<circle cx="22" cy="22" r="20"/><path d="{sign}"/></svg>'
    )
    return (
        f'<header class="banner {tone}">{drawn}<div><h1>{heading}</h1>{paragraphs}</div></header>\n'
    )


def tiles(shown: Iterable[Tile]) -> str:
    """Numbers side by side. What they are given is HTML already."""
    items = (f'<div class="{it.sort}"><dt>{it.name}</dt><dd>{it.value}</dd></div>' for it in shown)
    return f'<dl class="tiles">{"".join(items)}</dl>\n'


def section(name: str, heading: str, content: str) -> str:
    """A part of the page below a heading of its own. What it is given is HTML already."""
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>\n'
        f'<div class="card">{content}</div></section>\n'
    )
