"""Markdown: shown in a comment, a text from a cluster is a text and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt
from markdown_it.token import Token

from replant.inventory.findings import Finding, ScanResult, Severity, Verdict
from replant.report.markdown import LISTED, code, prose
from replant.report.render import render
from tests.report import samples

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OWN_TAGS = re.compile("</?(details|summary|b|sub)>")


def tokens(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def texts(text: str) -> str:
    return "".join(
        token.content for token in tokens(text) if token.type in ("text", "text_special")
    )


def assert_no_foreign_markup(text: str) -> None:
    found = list(tokens(text))
    foreign = ("link_open", "image", "em_open", "s_open")
    assert not [token for token in found if token.type in foreign]
    html = [token.content for token in found if token.type.startswith("html")]
    assert not [piece for piece in html if "<" in OWN_TAGS.sub("", piece)]


@settings(deadline=None)
@given(samples.RESULTS)
def test_nothing_from_an_object_is_markup(result: ScanResult) -> None:
    assert_no_foreign_markup(render(result, "markdown"))


@pytest.mark.parametrize("nasty", samples.NASTY)
def test_not_even_an_id_is_markup(nasty: str) -> None:
    finding = Finding(nasty, Severity.INFO, samples.volume("a"), "Why.")
    result = ScanResult(Verdict.READY, "", "", "", findings=[finding])
    assert_no_foreign_markup(render(result, "markdown"))


@settings(deadline=None)
@given(samples.RESULTS)
def test_tables_keep_their_shape(result: ScanResult) -> None:
    types = [token.type for token in tokens(render(result, "markdown"))]
    sorts = len({(finding.id, finding.severity) for finding in result.findings})
    assert types.count("table_open") == (1 if result.plugins else 0) + (1 + sorts if sorts else 0)
    rows = types.count("tr_open") - types.count("table_open")
    assert rows == len(result.plugins) + sorts + len(result.findings)
    assert types.count("heading_open") == 1 + bool(result.plugins) + bool(result.findings)


@pytest.mark.parametrize(
    "text",
    ["*a* _b_ `c` ~~d~~", "[a](http://b)", "<img src=x>", "# not a title", "- no item", "1. none",
     "a | b", "\\", "&amp;", "***", "+ a", "===", "> quote", "kubernetes.io/aws-ebs (phase 1)."],
)  # fmt: skip
def test_prose_is_shown_as_it_is(text: str) -> None:
    assert texts(prose(text)) == text
    assert [token.type for token in PARSER.parse(prose(text))][:1] == ["paragraph_open"]


@pytest.mark.parametrize("text", ["a", "`a`", "``", "a|b", " a ", "<b>"])
def test_code_is_shown_as_it_is(text: str) -> None:
    table = f"| x |\n| --- |\n| {code(text)} |\n"
    assert [token.content for token in tokens(table) if token.type == "code_inline"] == [text]


@pytest.mark.parametrize("text", ["@octocat", "see #12", "me@example.com"])
def test_nobody_is_mentioned(text: str) -> None:
    assert not re.search(r"[@#]\w", texts(prose(text)))
    assert texts(prose(text)).replace("\u200b", "") == text


def test_a_fix_with_fences_stays_in_its_block() -> None:
    fix = "```\nkubectl\n```\n# title"
    finding = Finding("RP101", Severity.INFO, samples.volume("a"), "Why.", fix)
    text = render(ScanResult(Verdict.READY, "", "", "", findings=[finding]), "markdown")
    assert [token.content for token in tokens(text) if token.type == "fence"] == [f"{fix}\n"]


def test_long_lists_are_cut_and_say_so() -> None:
    text = render(samples.realistic(1000), "markdown")
    assert text.count("`PersistentVolume pvc-") == LISTED
    assert f"… and {1000 - LISTED} more (`-o json` lists all)" in text
    assert len(text) < 65_536, "GitHub takes no longer comment"


def test_the_verdict_and_the_counts_come_first() -> None:
    lines = render(samples.realistic(), "markdown").splitlines()
    assert lines[0] == "## Replant: not ready"
    assert "3 blockers, 2 warnings, 12 info." in lines
