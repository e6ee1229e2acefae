"""The executed path, its writes, and what is kept of a long episode."""

import numpy as np
import pytest
from nodes.panel import diagnostics, of, picture, rgb

from trace_memory_ros.nodes.markers import colours
from trace_memory_ros.nodes.markers.history import EpisodeHistory


def test_writes_are_dots_on_the_path_in_the_colour_of_their_slot():
    ticks = [
        diagnostics(tick, wrote=tick in (0, 3), route=[0.9, 0.1] if tick else [0.2, 0.8], slots=2) for tick in range(9)
    ]
    markers = picture(ticks)
    (path,), (dots,) = of(markers, "path"), of(markers, "writes")
    assert len(path.points) == 9
    written = [path.points[0], path.points[3]]
    assert [rgb(colour) for colour in dots.colors] == [pytest.approx(colours.slot_colour(s)[:3]) for s in (1, 0)]
    assert [(dot.x, dot.z) for dot in dots.points] == [pytest.approx((p.x, p.z)) for p in written]


def test_a_pause_is_level_and_shows_no_write():
    ticks = [diagnostics(tick, path_length=5.0, wrote=tick == 0) for tick in range(20)]
    markers = picture(ticks)
    (path,), (dots,) = of(markers, "path"), of(markers, "writes")
    assert len({point.z for point in path.points}) == 1
    assert path.points[-1].x > path.points[0].x
    assert len(dots.points) == 1


def test_a_long_episode_stays_bounded_and_whole():
    history = EpisodeHistory(max_points=40)
    for tick in range(5000):
        history.observe(diagnostics(tick), {}, False)
        assert len(history.points) <= 40
        assert len(history.writes) < 40
    assert len(history.points) >= 20
    assert (history.points[0].t_s, history.points[-1].t_s) == pytest.approx((0.0, 499.9))
    gaps = np.diff([point.t_s for point in history.points])[:-1]
    assert gaps == pytest.approx(np.full(len(gaps), gaps[0]))
    assert history.writes_seen == 1000


def test_a_repeated_tick_counts_once():
    history = EpisodeHistory(max_points=40)
    for tick in (0, 0, 5, 5):
        history.observe(diagnostics(tick), {}, False)
    assert len(history.points) == 2
    assert history.writes_seen == 2
