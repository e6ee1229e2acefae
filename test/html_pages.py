"""Reads a report page as strictly as a browser would not."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "img"}


class Strict(HTMLParser):
    """Fails on a tag that closes nothing; collects ids and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Strict:
    """The page, of which every tag is closed."""
    parser = Strict()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def assert_needs_nothing_else(page: str) -> None:
    """Every address is inside the page, every id is there once."""
    parser = parsed(page)
    assert len(parser.ids) == len(set(parser.ids)) > 0
    for link in parser.links:
        assert link.startswith("data:image/png;base64,") or link.removeprefix("#") in parser.ids
    assert not re.search(r"(src|href|url)\s*[=(]\s*[\"']?https?:", page)


def words(page: str) -> str:
    """What the page says outside its plots."""
    text = re.sub(r"<[^>]+>", " ", re.sub(r"<(svg|style).*?</\1>", "", page, flags=re.DOTALL))
    return re.sub(r"\s+", " ", text)
