"""Where the panel stands, its axes and its colours."""

import math

import numpy as np
import pytest

from trace_memory_ros.nodes.markers import colours
from trace_memory_ros.nodes.markers.layout import nice_ceiling
from trace_memory_ros.nodes.markers.painter import Painter, Placement


def test_the_panel_stands_where_it_is_told():
    painter = Painter(Placement(position_m=(1.0, 2.0, 3.0), yaw_deg=90.0, scale=2.0))
    painter.box("b", (0.5, 0.25, 0.1), (0.3, 0.2, 0.1), colours.TEXT)
    painter.line("l", [(0.5, 0.25, 0.1), (0.0, 0.0, 0.0)], 0.01, colours.TEXT)
    box, line = painter.markers
    where = box.pose.position
    # Turned by 90 degrees the panel faces +x: its right is +y, and towards the viewer is +x.
    assert (where.x, where.y, where.z) == pytest.approx((1.2, 3.0, 3.5))
    assert (box.scale.x, box.scale.y, box.scale.z) == pytest.approx((0.6, 0.2, 0.4))
    half = math.sqrt(0.5)
    assert (line.pose.orientation.z, line.pose.orientation.w) == pytest.approx((half, half))
    point = line.points[0]
    assert (point.x, point.y, point.z) == pytest.approx((1.0, -0.2, 0.5))


@pytest.mark.parametrize("bad", [{"frame_id": ""}, {"scale": 0.0}, {"lifetime_s": -1.0}, {"yaw_deg": math.nan}])
def test_a_bad_placement_is_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad)) if "yaw_deg" not in bad else "finite"):
        Placement(**bad)


@pytest.mark.parametrize(("value", "round_one"), [(0.0, 1.0), (0.7, 0.8), (1.0, 1.0), (1.01, 1.5), (99.0, 100.0)])
def test_axes_end_at_round_numbers(value, round_one):
    assert nice_ceiling(value) == pytest.approx(round_one)


def test_strength_scale_rises_in_lightness_and_slots_differ():
    luminance = [np.dot(colours.strength_colour(s)[:3], (0.21, 0.72, 0.07)) for s in np.linspace(0, 1, 11)]
    assert all(np.diff(luminance) > 0)
    hues = np.array([colours.slot_colour(slot)[:3] for slot in range(6)])
    distances = [np.linalg.norm(a - b) for i, a in enumerate(hues) for b in hues[:i]]
    assert min(distances) > 0.2
