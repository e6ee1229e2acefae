"""The RViz panel: valid markers for whatever comes in, and what a person must be able to see in it."""

import math
import time

import numpy as np
import pytest
import rclpy
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from trace_memory_ros.msg import EpisodeStatus, MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import marker_colours as colours
from trace_memory_ros.nodes.marker_history import EpisodeHistory
from trace_memory_ros.nodes.marker_joints import ArmDistances
from trace_memory_ros.nodes.marker_layout import nice_ceiling
from trace_memory_ros.nodes.marker_painter import Painter, Placement
from trace_memory_ros.nodes.marker_scene import MarkerScene
from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec

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
    out = MarkerScene(placement or Placement(), ArmDistances("left_", "right_"), **options)
    if with_joints:
        out.on_joints(joints())
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


ANY_FLOAT = st.floats(width=32)
ANY_FLOATS = st.lists(ANY_FLOAT, max_size=9)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@st.composite
def any_diagnostics(draw):
    counts = st.integers(0, 2**32)
    message = MemoryDiagnostics(tick=draw(counts), episode=draw(st.integers(0, 2)), status=draw(st.integers(0, 255)))
    message.header.stamp.sec = draw(st.integers(-(2**31), 2**31 - 1))
    for name in ("route", "write_strength", "read_weights", "slot_norms", "input_ages_ms"):
        setattr(message, name, draw(ANY_FLOATS))
    for name in ("gate", "surprise", "path_length", "write_entropy", "slot_occupancy", "write_rate_hz", "latency_ms"):
        setattr(message, name, draw(ANY_FLOAT))
    message.mechanism = draw(ANY_TEXT)
    message.wrote, message.write_count, message.state_bytes = draw(st.booleans()), draw(counts), draw(counts)
    message.input_names = draw(st.lists(ANY_TEXT, max_size=4))
    message.input_stale = draw(st.lists(st.booleans(), max_size=4))
    message.faults = draw(st.lists(ANY_TEXT, max_size=5))
    return message


@settings(max_examples=60, deadline=None)
@given(
    st.lists(any_diagnostics(), max_size=4),
    ANY_TEXT,
    st.lists(st.floats(), max_size=3),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(0, 1e9),
)
def test_any_input_makes_valid_markers(messages, reason, angles, number, now_s):
    shown = scene(with_joints=False)
    shown.on_condition(MemoryCondition(status=1, reason=reason))
    shown.on_episode(EpisodeStatus(phase=1, cue=number, branch=number, task=reason, cue_visible=True))
    for message in messages:
        shown.on_joints(JointState(name=[f"left_{i}" for i in range(2)], position=angles))
        shown.on_diagnostics(message, 0.0)
        check_valid(shown.picture(now_s))
    check_valid(shown.picture(now_s))


@pytest.mark.parametrize("slots", [0, 1, 6, 32])
def test_any_number_of_slots_is_shown_the_same_way(slots):
    shown = scene()
    for tick in range(12):
        shown.on_diagnostics(diagnostics(tick, slots), 0.0)
    array = shown.picture(0.0)
    check_valid(array)
    markers = drawn(array)
    assert [len(of(markers, ns)) for ns in ("slots", "routing", "reads")] == [slots] * 3
    places = [marker.pose.position.x for marker in of(markers, "slots")]
    widths = [marker.scale.x for marker in of(markers, "slots")]
    assert all(b - a > w for a, b, w in zip(places, places[1:], widths, strict=False))


def test_bar_height_follows_content_and_colour_follows_write_strength():
    message = diagnostics(slots=3, slot_norms=[0.25, 0.5, 1.0], write_strength=[0.9, 0.0, 0.4])
    bars = of(picture([message]), "slots")
    heights = [bar.scale.z for bar in bars]
    assert [height / heights[2] for height in heights] == pytest.approx([0.25, 0.5, 1.0])
    for bar, strength in zip(bars, message.write_strength, strict=True):
        assert rgb(bar.color) == pytest.approx(colours.strength_colour(strength)[:3])
        assert bar.pose.position.z - bar.scale.z / 2 == pytest.approx(bars[0].pose.position.z - heights[0] / 2)


def test_read_arrows_widen_and_thicken_with_weight():
    arrows = of(picture([diagnostics(slots=3, read_weights=[0.7, 0.1, 0.2])]), "reads")
    by_weight = [arrows[1], arrows[2], arrows[0]]
    assert sorted(by_weight, key=lambda arrow: arrow.scale.x) == by_weight
    assert sorted(by_weight, key=lambda arrow: arrow.color.a) == by_weight
    assert all(arrow.points[0].z > arrow.points[1].z for arrow in arrows)


def test_strength_scale_rises_in_lightness_and_slots_differ():
    luminance = [np.dot(colours.strength_colour(s)[:3], (0.21, 0.72, 0.07)) for s in np.linspace(0, 1, 11)]
    assert all(np.diff(luminance) > 0)
    hues = np.array([colours.slot_colour(slot)[:3] for slot in range(6)])
    distances = [np.linalg.norm(a - b) for i, a in enumerate(hues) for b in hues[:i]]
    assert min(distances) > 0.2


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


def test_a_new_episode_clears_everything_first():
    shown = scene()
    actions = []
    for episode, tick in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 0)):
        shown.on_diagnostics(diagnostics(tick, episode=episode), 0.0)
        array = shown.picture(0.0)
        check_valid(array)
        actions.append(array.markers[0].action == Marker.DELETEALL)
    assert actions == [True, False, True, False, True]
    assert not of(array.markers, "path")


def test_the_first_complete_observation_continues_its_episode():
    shown = scene()
    shown.on_diagnostics(diagnostics(0, slots=0, status=MemoryCondition.INVALID), 0.0)
    before = shown.picture(0.0)
    shown.on_diagnostics(diagnostics(1), 0.0)
    after = shown.picture(0.0)
    check_valid(after)
    assert not of(before.markers, "no_slots")
    assert after.markers[0].action != Marker.DELETEALL
    assert len(of(drawn(after), "path")[0].points) == 2


def test_what_is_no_longer_shown_is_deleted():
    shown = scene()
    shown.on_diagnostics(diagnostics(0, input_stale=[False, True, False]), 0.0)
    shown.picture(0.0)
    shown.on_diagnostics(diagnostics(1), 0.0)
    array = shown.picture(0.0)
    gone = {(marker.ns, marker.id) for marker in array.markers if marker.action == Marker.DELETE}
    assert ("stale_inputs", 0) in gone
    assert not gone & {(marker.ns, marker.id) for marker in drawn(array)}


def test_stale_inputs_stand_in_warning_colour_with_name_and_age():
    fresh = words(picture([diagnostics()]), colours.WARNING)
    stale = picture([diagnostics(input_stale=[False, True, True], input_ages_ms=[0.0, 850.0, math.nan])])
    assert fresh == ""
    assert "left_wrist STALE: 850 ms" in words(stale, colours.WARNING)
    assert "right_wrist STALE: no sample yet" in words(stale, colours.WARNING)
    assert "overhead" not in words(stale, colours.WARNING)


@pytest.mark.parametrize(("status", "word"), [(MemoryCondition.STALE, "STALE"), (MemoryCondition.INVALID, "INVALID")])
def test_a_tick_that_is_not_ok_is_announced_with_its_reason(status, word):
    shown = scene()
    shown.on_condition(MemoryCondition(status=status, reason="left_wrist is 850 ms old"))
    shown.on_diagnostics(diagnostics(status=status), 0.0)
    markers = drawn(shown.picture(0.0))
    assert f"{word}: left_wrist is 850 ms old" in words(of(markers, "banner_label"))
    assert of(markers, "slots")[0].color.a < of(picture([diagnostics()]), "slots")[0].color.a


def test_a_dead_memory_shows_as_dead():
    assert "waiting for the first message" in words(picture([]))
    assert not of(picture([diagnostics()], now_s=0.5), "banner")
    late = picture([diagnostics()], now_s=7.2)
    assert "no memory/diagnostics for 7 s" in words(of(late, "banner_label"))
    assert words(of(late, "status_label")) == "NO SIGNAL"


def test_faults_are_written_out_and_the_rest_counted():
    markers = picture([diagnostics(faults=["overhead: encoding 'yuv'", "odom: silent", "c", "d"])])
    shown = words(markers, colours.WARNING)
    assert "overhead: encoding 'yuv'" in shown
    assert "and 2 more faults" in shown


def test_writes_that_were_never_received_are_counted():
    markers = picture([diagnostics(0, write_count=1), diagnostics(9, write_count=4, wrote=True)])
    assert "4 (2 not seen here)" in words(markers)


def test_the_task_is_told_to_people():
    shown = scene()
    shown.on_episode(EpisodeStatus(task="colour", phase=EpisodeStatus.RUNNING, cue=1, branch=-1, cue_visible=True))
    shown.on_diagnostics(diagnostics(0), 0.0)
    shown.on_diagnostics(diagnostics(8), 0.0)
    assert "cue right, in view" in words(drawn(shown.picture(0.0)))
    assert of(drawn(shown.picture(0.0)), "cue")
    shown.on_episode(EpisodeStatus(task="colour", phase=EpisodeStatus.FINISHED, cue=1, branch=0, success=False))
    assert "cue was right, arm went left: wrong choice" in words(drawn(shown.picture(0.0)))


def test_a_long_episode_stays_bounded_and_whole():
    history = EpisodeHistory(max_points=40)
    for tick in range(5000):
        history.observe(diagnostics(tick), (0.0, 0.0), False)
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
        history.observe(diagnostics(tick), (0.0, 0.0), False)
    assert len(history.points) == 2
    assert history.writes_seen == 2


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


def test_arm_distances_by_name_in_any_order():
    arms = ArmDistances("left_", "right_")
    arms.take(joints(gripper=9.0))
    moved = joints(left_joint_1=0.1 + 0.3, left_joint_2=0.2 + 0.4, gripper=0.0)
    arms.take(JointState(name=moved.name[::-1], position=moved.position[::-1]))
    assert arms.distances_rad() == pytest.approx((0.5, 0.0))
    arms.restart()
    assert arms.distances_rad() == (0.0, 0.0)


def test_bad_joint_states_are_named_and_the_last_good_one_stays():
    arms = ArmDistances("left_", "right_")
    assert "no message yet" in arms.fault
    arms.take(joints())
    assert arms.fault == ""
    fewer = joints()
    fewer.name.pop()
    without = JointState(name=fewer.name, position=fewer.position[:-1])
    other = JointState(name=["elbow"], position=[0.0])
    for message, named in (
        (joints(left_joint_3=math.nan), "left_joint_3 is nan"),
        (fewer, "13 names but 14 positions"),
        (without, "right_joint_7 is missing"),
        (other, "is missing"),
    ):
        arms.take(message)
        assert named in arms.fault
        assert arms.distances_rad() == (0.0, 0.0)
    assert "no message yet" in words(picture([diagnostics()], with_joints=False), colours.WARNING)


@pytest.mark.parametrize(("value", "round_one"), [(0.0, 1.0), (0.7, 0.8), (1.0, 1.0), (1.01, 1.5), (99.0, 100.0)])
def test_axes_end_at_round_numbers(value, round_one):
    assert nice_ceiling(value) == pytest.approx(round_one)


@pytest.fixture
def ros():
    rclpy.init()
    node = rclpy.create_node("marker_test")
    yield node
    node.destroy_node()
    rclpy.shutdown()


def receive(node, arrays, send, wanted, timeout_s=20.0):
    """Send again and again until an array fulfils `wanted`; returns that array."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        send()
        arrays.clear()
        rclpy.spin_once(node, timeout_sec=0.2)
        for array in arrays:
            check_valid(array)
            if wanted(array.markers):
                return array
    raise AssertionError(f"no such array within {timeout_s:g} s")


def test_the_node_draws_what_other_processes_publish(ros, tmp_path):
    arrays = []
    ros.create_subscription(MarkerArray, "memory/markers", arrays.append, 10)
    send_diagnostics = ros.create_publisher(MemoryDiagnostics, "memory/diagnostics", 10)
    send_joints = ros.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
    process = NodeProcess(NodeSpec("marker_node", {"autostart": True, "rate_hz": 30.0}), tmp_path)
    try:
        process.wait_ready()
        receive(ros, arrays, lambda: None, lambda markers: "waiting for the first" in words(markers))

        def send(message, joint_state):
            return lambda: (send_joints.publish(joint_state), send_diagnostics.publish(message))

        receive(ros, arrays, send(diagnostics(4), joints()), lambda markers: len(of(markers, "slots")) == 6)
        bad = joints(left_joint_2=math.nan)
        receive(ros, arrays, send(diagnostics(5), bad), lambda markers: "left_joint_2 is nan" in words(markers))
        episode = diagnostics(0, episode=1, slots=1, mechanism="gru")
        array = receive(ros, arrays, send(episode, joints()), lambda markers: len(of(markers, "slots")) == 1)
        assert array.markers[0].action == Marker.DELETEALL
        assert process.running
    finally:
        code = process.stop()
    assert code == 0, process.log
