"""The whole panel: valid for whatever comes in, cleared at the right times, and honest about what is wrong."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes.panel import check_valid, diagnostics, drawn, of, picture, scene, words
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker

from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.msg import EpisodeStatus, MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes.markers import colours, text

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
    message.mechanism, message.slot_kind = draw(ANY_TEXT), draw(ANY_TEXT)
    message.due, message.due_count = draw(st.booleans()), draw(counts)
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
        shown.on_joints("joint_states", JointState(name=[f"left_{i}" for i in range(2)], position=angles))
        shown.on_diagnostics(message, 0.0)
        check_valid(shown.picture(now_s))
    check_valid(shown.picture(now_s))


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


@pytest.mark.parametrize(
    ("task", "told", "line"),
    [
        ("cups", {"phase": EpisodeStatus.RUNNING, "cue": 1, "branch": 1}, "was middle, arm went middle: right choice"),
        ("put_back", {"phase": EpisodeStatus.RUNNING, "cue": 3, "branch": 1}, "cue was 3, arm went 1"),
        ("put_back", {"phase": EpisodeStatus.FINISHED, "cue": 3, "branch": 1, "success": True}, "went 1: right choice"),
        ("count", {"phase": EpisodeStatus.FINISHED, "cue": 0, "branch": 0}, "cue was 0, arm went 0: wrong choice"),
    ],
)
def test_an_answer_is_judged_as_its_task_does(task, told, line):
    shown = scene()
    shown.on_episode(EpisodeStatus(task=task, **told))
    shown.on_diagnostics(diagnostics(0), 0.0)
    assert any(line == said[-len(line) :] for said in words(drawn(shown.picture(0.0))).splitlines())


def test_the_panel_calls_answers_as_the_arms_tasks_do() -> None:
    """The nodes of a robot know no simulated arm, so that the words stand twice."""
    for name, called in text._WORDS.items():
        assert called == task_of(name).words
        assert [Scenario(name, 0, cue).answers for cue in range(len(called))] == [(cue,) for cue in range(len(called))]
