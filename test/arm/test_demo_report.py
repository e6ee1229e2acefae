"""The page is well-formed, complete in itself, small, and says the numbers."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from html_pages import assert_needs_nothing_else, parsed, words

from trace_memory_ros.arm.demo import charts
from trace_memory_ros.arm.demo.report import write_report
from trace_memory_ros.arm.demo.results import DemoResult
from trace_memory_ros.arm.demo.strips import data_uri


@pytest.fixture(scope="module")
def page(made: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = write_report(tmp_path_factory.mktemp("page"), "trace-memory demo --episodes 20 <&>", made.demo())
    assert path.stat().st_size < 3_000_000
    return path.read_text(encoding="utf-8")


def test_page_is_well_formed_and_needs_nothing_else(page: str) -> None:
    assert_needs_nothing_else(page)


def test_page_says_the_numbers(page: str) -> None:
    text = words(page)
    for told in (
        "All 8 requirements measured are met",
        "0.50 (10 of 20, 95 % CI 0.30-0.70)",
        "p50 9.0 ms, p99 10.0 ms over 201 conditions",
        "260 expected, 260 published",
        "trace-memory demo --episodes 20 &lt;&amp;&gt;",
        "5.5 min",
        "went left",
        "went right",
    ):
        assert told in text


def test_missed_requirements_are_told_first(made: SimpleNamespace, tmp_path: Path) -> None:
    text = write_report(tmp_path, "c", made.demo(latency_ms=50.0)).read_text(encoding="utf-8")
    assert '<section class="verdict missed">' in text
    assert "7 of 8 requirements are met. Missed: condition latency" in text


def test_page_of_almost_nothing(made: SimpleNamespace, tmp_path: Path) -> None:
    lonely = made.episode(memory="none", branch=-1)
    result = DemoResult(("origin",), ("none",), (lonely,), recordings=(replace(made.recording(lonely, 0), frames=()),))
    text = write_report(tmp_path, "c", result).read_text(encoding="utf-8")
    parsed(text)
    assert "No real-time episode was run." in text
    assert "No episode was recorded." in text


@pytest.mark.parametrize(("ticks", "slots"), [(2, 1), (401, 3), (2600, 8)])
def test_timelines_of_any_length(made: SimpleNamespace, ticks: int, slots: int) -> None:
    svg = charts.timeline_chart(made.timeline(ticks, slots), "a")
    assert f"{-(-ticks // 10)} writes" in svg
    assert len(svg) < 200_000


def test_pictures_survive_the_page_bit_for_bit() -> None:
    image = np.random.default_rng(5).integers(0, 255, (7, 9, 3)).astype(np.uint8)
    png = base64.b64decode(data_uri(image).partition(",")[2])
    back = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert back is not None
    assert np.array_equal(back[..., ::-1], image)
