"""Diagnostics as memory_node would send them, and the panel that marker_node makes of them."""

import math

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker

from trace_memory_ros.msg import MemoryDiagnostics
from trace_memory_ros.nodes.markers.groups import ARMS, groups_in
from trace_memory_ros.nodes.markers.joints import ANY_ROBOT, JointDistances
from trace_memory_ros.nodes.markers.painter import Placement
from trace_memory_ros.nodes.markers.scene import MarkerScene

POINT_KINDS = (Marker.ARROW, Marker.LINE_STRIP, Marker.SPHERE_LIST, Marker.CUBE_LIST)


STREAMS = ["overhead", "left_wrist", "right_wrist"]


def diagnostics(tick=0, slots=6, episode=0, mechanism="trace", **changes):
    message = MemoryDiagnostics(tick=tick, episode=episode, mechanism=mechanism, model_id="m", path_length=0.5 * tick)
    message.header.stamp.sec = 100 + tick // 10
    message.header.stamp.nanosec = tick % 10 * 100_000_000
    shares = np.arange(1, slots + 1) / max(1, slots * (slots + 1) // 2)
    message.route = message.write_strength = message.read_weights = shares.tolist()
    message.slot_norms = np.linspace(0.2, 1.0, slots).tolist()
    message.gate, message.wrote, message.write_count = 0.8, tick % 5 == 0, tick // 5 + 1
    message.input_names, message.input_stale, message.input_ages_ms = STREAMS, [False] * 3, [0.0, 33.0, 20.0]
    for name, value in changes.items():
        setattr(message, name, value)
    return message


def joints(**changes):
    angles = {f"{side}_joint_{i}": 0.1 * i for side in ("left", "right") for i in range(1, 8)} | changes
    return JointState(name=list(angles), position=list(angles.values()))


def scene(placement=None, with_joints=True, **options):
    options = {"max_points": 50, "silent_after_s": 1.0} | options
    out = MarkerScene(placement or Placement(), JointDistances(ANY_ROBOT, groups_in(ARMS)), **options)
    if with_joints:
        out.on_joints("joint_states", joints())
    return out


def picture(messages, now_s=0.0, **options):
    shown = scene(**options)
    for message in messages:
        shown.on_diagnostics(message, 0.0)
    return drawn(shown.picture(now_s))


def drawn(array):
    return [marker for marker in array.markers if marker.action == Marker.ADD]


def of(markers, ns):
    return [marker for marker in markers if marker.ns == ns]


def words(markers, colour=None):
    texts = [m for m in markers if m.type == Marker.TEXT_VIEW_FACING]
    return "\n".join(
        marker.text for marker in texts if colour is None or rgb(marker.color) == pytest.approx(colour[:3])
    )


def rgb(colour):
    return [colour.r, colour.g, colour.b]


def check_valid(array):
    """What RViz demands of an array, and no number that is not finite."""
    keys = [(marker.ns, marker.id) for marker in array.markers if marker.action != Marker.DELETEALL]
    assert len(keys) == len(set(keys))
    assert all(marker.action != Marker.DELETEALL for marker in array.markers[1:])
    for marker in array.markers:
        pose, orientation = marker.pose.position, marker.pose.orientation
        quaternion = [orientation.x, orientation.y, orientation.z, orientation.w]
        assert math.hypot(*quaternion) == pytest.approx(1.0, abs=1e-9)
        assert all(map(math.isfinite, (pose.x, pose.y, pose.z)))
        if marker.action != Marker.ADD:
            continue
        assert marker.header.frame_id == "memory"
        assert marker.lifetime.sec + marker.lifetime.nanosec > 0
        assert all(math.isfinite(s) and s > 0 for s in (marker.scale.x, marker.scale.y, marker.scale.z))
        for colour in (marker.color, *marker.colors):
            assert all(0.0 <= channel <= 1.0 for channel in (*rgb(colour), colour.a))
            assert colour.a > 0
        assert all(math.isfinite(c) for point in marker.points for c in (point.x, point.y, point.z))
        assert len(marker.colors) in (0, len(marker.points))
        assert bool(marker.points) == (marker.type in POINT_KINDS)
        assert bool(marker.text) == (marker.type == Marker.TEXT_VIEW_FACING)
