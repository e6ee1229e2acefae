"""The page of an evaluation is whole in itself, says the numbers, and says what was not measured."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from evidence.evidence_examples import decided, evaluation
from html_pages import assert_needs_nothing_else, parsed, words

from trace_memory_ros.evidence.report.moment_chart import TILES, moment_chart, tiles
from trace_memory_ros.evidence.report.moments import shown_decisions
from trace_memory_ros.evidence.report.page import write_report
from trace_memory_ros.evidence.results import EpisodeEvidence, Evaluation, FailedBag
from trace_memory_ros.observation.frames import Cameras, of_stack
from trace_memory_ros.observation.images import shrunk

COMMAND = "trace-memory evaluate bags --checkpoint weights/origin_trace"


def whole(count: int = 24) -> Evaluation:
    """Decisions of both labels, all right; half of them become `left` without earlier evidence."""
    labels = [("left", "right")[i % 2] for i in range(count)]
    episodes = tuple(decided(f"bag_{i}", label, label, "left") for i, label in enumerate(labels))
    return replace(evaluation(), episodes=episodes, figures={})


def frames(episode: EpisodeEvidence) -> Cameras:
    images = np.random.default_rng(0).integers(0, 255, (episode.ticks, 2, 8, 8, 3)).astype(np.uint8)
    return of_stack(("overhead", "wrist"), images)


def page_of(made: Evaluation, tmp_path: Path, **options: object) -> str:
    return write_report(tmp_path, COMMAND, made, **options).read_text(encoding="utf-8")  # type: ignore[arg-type]


def test_the_page_needs_nothing_else_and_says_the_numbers(tmp_path: Path) -> None:
    page = page_of(whole(), tmp_path, frames_of=frames)
    assert_needs_nothing_else(page)
    assert len(page) < 1_000_000
    text = words(page)
    for told in (
        "The policy uses earlier evidence",
        "turns 12 of 24 decisions (0.50, 95 % CI 0.31–0.69) to another branch.",
        "Its decisions are right more often than by chance: 24 of 24 decisions (1.00, 95 % CI 0.86–1.00) are right",
        "with a memory that begins 2 s before the decision: 12 of 24 decisions",
        "95.0 95.0–95.0 97.5 97.5–97.5",
        "bag_23",
        "bags/broken truncated byte 100 record it again",
        COMMAND,
        "24 episodes, 960 ticks, 0 of them without usable inputs.",
        "In this checkpoint a transform of the path reaches signatures and the update clock.",
    ):
        assert told in text
    assert page.count("data:image/png") > 2 * TILES
    assert "no longer there" not in text


def test_the_page_shows_what_the_memory_saw_at_its_own_size(tmp_path: Path) -> None:
    made = whole(2)
    page = page_of(made, tmp_path, frames_of=frames, seen_px=4)
    pictures = re.findall(r'<img class="seen" src="data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == len(shown_decisions(made))
    for (episode, attribution), picture in zip(shown_decisions(made), pictures, strict=True):
        png = cv2.imdecode(np.frombuffer(base64.b64decode(picture), np.uint8), cv2.IMREAD_COLOR)
        assert png is not None
        strongest = attribution.strongest
        assert strongest is not None
        seen = [shrunk(one[strongest.tick], 4) for one in frames(episode).values()]
        assert np.array_equal(png[..., ::-1], np.concatenate(seen, axis=1))
    assert 'class="seen"' not in page_of(made, tmp_path).split("</style>")[1]


def test_names_are_shown_and_never_become_markup_or_mathematics(tmp_path: Path) -> None:
    made = whole(2)
    odd = '<b onclick="x">$\\frac{1}$&'
    label = "<i>left</i>"
    episodes = (replace(decided(odd, label, label, "right"), faults=("<script>",)), made.episodes[1])
    failed = (FailedBag(odd, odd, odd, odd),)
    model = replace(made.model, task=odd, mechanism="<u>trace</u>", slot_kind="<p>")
    page = page_of(replace(made, episodes=episodes, failed=failed, model=model), tmp_path, frames_of=frames)
    assert_needs_nothing_else(page)
    for raw in ('<b onclick="x">', "<i>left</i>", "<script>", "<u>trace", "<p>,"):
        assert raw not in page
    assert "&lt;b onclick=&quot;x&quot;&gt;$\\frac{1}$&amp;" in page


def test_what_was_not_measured_is_said_and_not_drawn(tmp_path: Path) -> None:
    reasons = dict.fromkeys(("transforms", "stability", "attributions"), "the recording has no branch annotation")
    bare = tuple(
        replace(e, branches=(), transforms=(), stability=(), attributions=(), latency_ms={}, reasons=reasons)
        for e in whole(2).episodes
    )
    page = page_of(replace(whole(), episodes=bare, failed=()), tmp_path)
    text = words(page)
    assert "It cannot be told whether earlier evidence is used, because no branch frame is annotated" in text
    assert text.count("Not measured: the recording has no branch annotation.") == 3
    assert "<svg" not in page
    for absent in ("Latency", "All decisions", "What is read", "could not be evaluated"):
        assert absent not in text


def test_frames_that_are_gone_are_said(tmp_path: Path) -> None:
    page = page_of(whole(2), tmp_path)
    assert "data:image/png;base64" in page  # heat maps
    assert words(page).count("The camera frames of this episode are no longer there.") == 2


def test_a_page_of_failed_bags_alone(tmp_path: Path) -> None:
    page = page_of(replace(whole(), episodes=()), tmp_path)
    parsed(page)
    assert "all 1 bags failed" in words(page)
    assert "record it again" in words(page)


def test_a_policy_of_the_current_view_is_not_praised(tmp_path: Path) -> None:
    episodes = tuple(decided(f"bag_{i}", "left", "left", "left") for i in range(20))
    page = page_of(replace(whole(), episodes=episodes), tmp_path)
    assert '<section class="verdict missed">' in page
    assert "Decisions follow the current view only" in page


def test_a_policy_that_uses_its_memory_and_is_wrong_is_not_praised(tmp_path: Path) -> None:
    flip = {"left": "right", "right": "left"}
    labels = [("left", "right")[i % 2] for i in range(20)]
    answers = [label if i < 10 else flip[label] for i, label in enumerate(labels)]
    made = zip(labels, answers, strict=True)
    episodes = tuple(decided(f"bag_{i}", label, answer, flip[answer]) for i, (label, answer) in enumerate(made))
    page = page_of(replace(whole(), episodes=episodes), tmp_path)
    assert '<section class="verdict missed">' in page
    text = words(page)
    assert "The policy uses earlier evidence:" in text
    assert "Its decisions are not right more often than by chance: 10 of 20 decisions" in text


def test_wrong_decisions_are_shown_besides_one_of_each_label() -> None:
    episodes = (*whole(6).episodes, *(decided(f"wrong_{i}", "right", "left", "left") for i in range(5)))
    shown = shown_decisions(replace(whole(), episodes=episodes))
    assert [a.label for _, a in shown][:2] == ["left", "right"]
    assert sum(a.label != a.decision for _, a in shown) >= 2
    assert len({id(a) for _, a in shown}) == len(shown) <= 4


@pytest.mark.parametrize(("branch", "strongest"), [(30, 0), (30, 17), (30, 30), (1, 0), (2000, 999)])
def test_tiles_cover_the_time_and_show_both_moments(branch: int, strongest: int) -> None:
    time_s = np.arange(branch + 5) / 10
    found = tiles(time_s, branch, strongest)
    assert [begin for begin, _, _ in found[1:]] == pytest.approx([end for _, end, _ in found[:-1]])
    assert (found[0][0], found[-1][1]) == pytest.approx((0.0, time_s[branch]))
    assert strongest in [tick for _, _, tick in found]
    assert found[-1][2] in (branch, strongest)
    for begin, end, tick in found[:-1]:
        assert begin - 0.06 <= time_s[tick] <= end + 0.06


@pytest.mark.parametrize(("slots", "cameras"), [(1, 1), (64, 5)])
def test_moments_of_any_memory_and_number_of_cameras(slots: int, cameras: int) -> None:
    made = decided("bag", "left", "left", "right")
    shares = tuple((1 / slots,) * slots for _ in range(40))
    timeline = replace(made.timeline, read_weights=shares, route=shares[:3], write_strength=shares[:3])
    images = np.zeros((40, cameras, 8, 8, 3), np.uint8)
    svg = moment_chart(
        replace(made, timeline=timeline), made.attributions[0], of_stack(tuple("abcde"[:cameras]), images), "m"
    )
    assert svg.count("<image") >= min(cameras, 3) * TILES
    assert ("written" in svg) == (slots > 1)
    assert len(svg) < 300_000
