"""Pages escape what they are given, share one frame, and name what a template lacks."""

from pathlib import Path

import jinja2
import pytest
from html_pages import parsed, words

from trace_memory_ros.measure.page import render

BODY = """{% extends "frame.html" %}
{% from "parts.html" import figure %}
{% block body %}<h1>{{ said }}</h1>{{ figure(drawn, caption) }}{% endblock %}
"""


def template(folder: Path) -> Path:
    path = folder / "page.html"
    path.write_text(BODY, encoding="utf-8")
    return path


def test_text_is_escaped_and_drawings_are_markup(tmp_path: Path) -> None:
    page = render(template(tmp_path), title="<a>", said="<script>&", drawn="<svg><path/></svg>", caption='"<b>')
    parsed(page)
    assert "<title>&lt;a&gt;</title>" in page
    assert "<h1>&lt;script&gt;&amp;</h1>" in page
    assert "<svg><path/></svg>" in page
    assert "&#34;&lt;b&gt;" in words(page)


def test_a_value_that_is_not_given_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(jinja2.UndefinedError, match="said"):
        render(template(tmp_path), title="t", drawn="", caption="")
