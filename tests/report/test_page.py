"""HTML: one file, nothing fetched, nothing run but its own script, readable by everyone."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from replant.inventory.findings import Finding, ScanResult, Severity, Verdict
from replant.report.chart import Bar, bar_chart
from replant.report.page_script import SCRIPT
from replant.report.page_style import STYLE
from replant.report.render import render
from replant.report.wording import plain
from tests.report import samples

VOID = {"meta", "input", "rect", "circle", "path"}
TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "h1",
    "h2", "p", "div", "dl", "dt", "dd", "span", "a", "code", "pre", "table", "thead", "tbody", "tr",
    "th", "td", "figure", "figcaption", "svg", "text", "rect", "circle", "path", "label", "input",
    "select", "option", "output", "details", "summary", "script",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "name", "content", "http-equiv", "class", "id", "role", "scope", "href",
    "aria-label", "aria-labelledby", "aria-hidden", "width", "height", "viewbox", "fill", "stroke",
    "stroke-width", "stroke-linecap", "cx", "cy", "r", "d", "x", "y", "rx", "text-anchor", "type",
    "autocomplete", "value", "for", "hidden", "data-rank", "data-find",
}  # fmt: skip


@dataclass
class Page(HTMLParser):
    """The page as a browser takes it apart; refuses tags that do not close each other."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td" and dict(attrs).get("role") == "cell":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data
        if "td" in self.open and self.cells:
            self.cells[-1] += data


def page_of(result: ScanResult) -> Page:
    page = Page()
    page.feed(render(result, "html"))
    page.close()
    assert page.open == []
    return page


@settings(deadline=None)
@given(samples.RESULTS)
def test_nothing_from_an_object_is_a_tag(result: ScanResult) -> None:
    page = page_of(result)
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES
    assert page.texts["script"] == SCRIPT
    assert page.texts["style"] == STYLE
    assert [tag for tag, _ in page.tags].count("script") == 1


@pytest.mark.parametrize("nasty", samples.NASTY)
def test_not_even_an_id_is_a_tag_or_an_attribute(nasty: str) -> None:
    finding = Finding(nasty, Severity.INFO, samples.volume("a"), "Why.")
    page = page_of(ScanResult(Verdict.READY, "", "", "", findings=[finding]))
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES


@settings(deadline=None)
@given(samples.RESULTS)
def test_nothing_is_fetched(result: ScanResult) -> None:
    for tag, attributes in page_of(result).tags:
        assert not {"src", "srcset", "style", "action", "background"} & set(attributes)
        assert attributes.get("href") in (None, "#findings"), tag


def test_the_page_itself_names_no_address() -> None:
    text = render(samples.realistic(), "html")
    assert "://" not in text
    assert "url(" not in text
    assert "@import" not in text


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else() -> None:
    hashes = {
        name: base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        for name, content in (("style", STYLE), ("script", SCRIPT))
    }
    (policy,) = (
        attributes["content"]
        for tag, attributes in page_of(samples.EMPTY).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; "
        f"script-src 'sha256-{hashes['script']}'; base-uri 'none'"
    )


@settings(deadline=None)
@given(samples.RESULTS)
def test_every_finding_has_a_row_with_its_texts(result: ScanResult) -> None:
    cells = page_of(result).cells
    assert len(cells) == 6 * len(result.findings)
    for number, finding in enumerate(result.findings):
        severity, identity, kind, namespace, name, why = cells[6 * number : 6 * number + 6]
        assert severity == finding.severity.value
        assert identity == finding.id
        assert kind == plain(finding.object.kind)
        assert namespace == plain(finding.object.namespace)
        assert name == plain(finding.object.name)
        assert plain(finding.reason) in why
        assert plain(finding.fix) in why


def test_there_are_no_control_characters() -> None:
    finding = Finding("RP101", Severity.INFO, samples.volume("\x1b\x00"), "\x9b\u202e", "\x7f")
    text = render(ScanResult(Verdict.READY, "\x07", "\x08", "\x0b", findings=[finding]), "html")
    assert not [char for char in text if not char.isprintable() and char != "\n"]


def test_tables_tell_what_their_headers_are_for() -> None:
    headers = [attributes for tag, attributes in page_of(samples.realistic()).tags if tag == "th"]
    assert {header.get("scope") for header in headers} == {"col", "row"}


def test_twenty_thousand_findings_are_twenty_thousand_rows() -> None:
    text = render(samples.realistic(19_995), "html")
    assert "20,000 findings, one row for each object." in text
    assert text.count('<tr role="row" data-rank=') == 20_000


@pytest.mark.parametrize("verdict", Verdict)
def test_the_banner_is_the_verdict(verdict: Verdict) -> None:
    page = page_of(ScanResult(verdict, "Why.", "1.24.1", ""))
    assert page.texts["h1"] == verdict.value.capitalize()
    assert page.texts["title"] == f"Replant: {verdict.value}"


def test_the_counts_are_in_the_tiles() -> None:
    text = render(samples.realistic(), "html")
    tiles = dict(re.findall("<dt>(.+?)</dt><dd>(.+?)</dd>", text))
    assert tiles == {
        "blockers": "3",
        "warnings": "2",
        "info": "12",
        "in-tree volumes": "1,455",
        "capacity of these": "69.4 TiB",
    }


def test_bars_are_as_wide_as_their_share() -> None:
    bars = [Bar("a", 2**80, "x"), Bar("b", 2**79, "y"), Bar("c", 1, "z"), Bar("d", 0, "none")]
    chart = bar_chart("Sizes", bars)
    assert re.findall(r'class="bar" y="\d+" width="([\d.]+)%', chart) == [
        "100.0",
        "50.0",
        "0.5",
        "0",
    ]
    assert 'aria-label="Sizes: a x, b y, c z, d none"' in chart
    assert "%" in bar_chart("Nothing", [Bar("a", 0, "0")])


def test_short_fixes_are_seen_and_long_ones_unfold() -> None:
    text = render(samples.realistic(), "html")
    assert text.count("<details>") == 1
    assert text.count("<pre>") == 4
