"""What a person must be able to see of a memory's entries, whatever the mechanism."""

from pathlib import Path

import numpy as np
import pytest
from fixtures import tiny_checkpoint
from nodes.panel import check_valid, diagnostics, drawn, of, picture, rgb, scene, words
from visualization_msgs.msg import Marker

from trace_memory_ros.memory import registry
from trace_memory_ros.msg import MemoryDiagnostics
from trace_memory_ros.nodes.conversion import diagnostics_message
from trace_memory_ros.nodes.markers import colours, entries
from trace_memory_ros.nodes.markers.slots import LABELLED_SLOTS, labelled
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.message_fields import TickReport

REFUSED = {"gate": 0.2, "due": True, "wrote": False}


def ring(tick, size=32, **changes):
    """A write at every fifth tick into the next entry of a ring."""
    hot = np.eye(size)[tick // 5 % size].tolist()
    asked = {"due": tick % 5 == 0, "due_count": tick // 5 + 1, "slot_kind": "ring entry"}
    return diagnostics(tick, size, route=hot, write_strength=hot, gate=1.0, **(asked | changes))


@pytest.mark.parametrize("slots", [0, 1, 6, 32, 64])
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
    names = of(markers, "slot_names")
    assert len(names) >= min(slots, 10)
    gaps = np.diff([name.pose.position.x for name in names])
    assert not len(gaps) or gaps.min() > max(0.4 * len(name.text) * name.scale.z for name in names)


def test_bar_height_follows_content_and_colour_follows_write_strength():
    message = diagnostics(slots=3, slot_norms=[0.25, 0.5, 1.0], write_strength=[0.9, 0.0, 0.4])
    bars = of(picture([message]), "slots")
    heights = [bar.scale.z for bar in bars]
    assert [height / heights[2] for height in heights] == pytest.approx([0.25, 0.5, 1.0])
    for bar, strength in zip(bars, message.write_strength, strict=True):
        assert rgb(bar.color) == pytest.approx(colours.strength_colour(strength)[:3])
        assert bar.pose.position.z - bar.scale.z / 2 == pytest.approx(bars[0].pose.position.z - heights[0] / 2)


@pytest.mark.parametrize("slots", [3, 64])
def test_read_arrows_widen_and_thicken_with_weight(slots):
    weights = [0.7, 0.1, 0.2] + [0.0] * (slots - 3)
    arrows = of(picture([diagnostics(slots, slots=slots, read_weights=weights)]), "reads")
    by_weight = [arrows[1], arrows[2], arrows[0]]
    assert sorted(by_weight, key=lambda arrow: arrow.scale.x) == by_weight
    assert arrows[0].scale.x > 3 * arrows[1].scale.x
    assert sorted(by_weight, key=lambda arrow: arrow.color.a) == by_weight
    assert all(arrow.points[0].z > arrow.points[1].z for arrow in arrows)


@pytest.mark.parametrize(
    ("kind", "count", "one", "several"),
    [
        ("slot", 4, "slot 2", "4 slots"),
        ("ring entry", 32, "ring entry 2", "32 ring entries"),
        ("fast-weight row", 5, "fast-weight row 2", "5 fast-weight rows"),
        ("hidden vector", 1, "hidden vector 2", "1 hidden vector"),
        ("array", 0, "array 2", "no arrays"),
        ("", 3, "entry 2", "3 entries"),
    ],
)
def test_entries_are_called_what_the_mechanism_calls_them(kind, count, one, several):
    message = diagnostics(slots=count, slot_kind=kind)
    assert entries.name(message, 2) == one
    assert entries.how_many(message) == several
    assert several in words(of(picture([message]), "captions")).split("\n")


def test_names_stand_in_full_where_they_fit_and_as_numbers_elsewhere():
    assert "slot 3" in words(of(picture([diagnostics(slots=4, slot_kind="slot")]), "slot_names"))
    long = words(of(picture([diagnostics(slots=6, slot_kind="fast-weight row")]), "slot_names"))
    assert long.split() == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize("count", [0, 1, 12, 13, 32, 64])
def test_the_entry_written_last_is_always_named_and_never_crowded(count):
    for written in range(-1, count):
        shown = labelled(count, written)
        assert shown == sorted(set(shown))
        assert written in shown or written == -1
        assert len(shown) <= LABELLED_SLOTS
        if count > LABELLED_SLOTS:
            assert min(np.diff(shown)) >= -(-count // LABELLED_SLOTS)


@pytest.mark.parametrize("size", [32, 64])
def test_a_ring_shows_which_entry_was_just_written(size):
    shown = scene()
    for tick in range(5 * (size + 17) + 3):
        shown.on_diagnostics(ring(tick, size), 0.0)
    markers = drawn(shown.picture(0.0))
    newest = 17
    assert words(of(markers, "last_write")) == f"ring entry {newest}"
    bright = [bar for bar in of(markers, "slots") if rgb(bar.color) == pytest.approx(colours.strength_colour(1.0)[:3])]
    assert bright == [of(markers, "slots")[newest]]
    discs = [disc.scale.x for disc in of(markers, "routing")]
    assert discs.index(max(discs)) == newest
    assert sorted(discs)[-2] < 0.1 * max(discs)
    assert f"{newest}" in words(of(markers, "slot_names"), colours.TEXT)


def test_the_entry_read_most_is_named_where_shares_are_not_written_out():
    weights = [0.01] * 32
    weights[9] = 0.69
    assert words(of(picture([ring(3, read_weights=weights)]), "read_most")) == "mostly ring entry 9: 69%"
    assert not of(picture([diagnostics(slots=6)]), "read_most")


def test_a_refused_write_is_seen_as_refused():
    message = diagnostics(5, slots=4, write_strength=[0.0] * 4, due_count=9, write_count=3, **REFUSED)
    markers = picture([diagnostics(0, slots=4), message])
    assert [rgb(bar.color) for bar in of(markers, "slots")] == [pytest.approx(colours.FAINT[:3])] * 4
    assert max(disc.scale.x for disc in of(markers, "routing")) < 0.01
    (gate,), (line,) = of(markers, "gate"), of(markers, "gate_threshold")
    assert gate.pose.position.z + gate.scale.z / 2 < line.pose.position.z
    assert "0.20: refused" in words(of(markers, "gate_label"))
    assert words(of(markers, "last_write")) == "nothing: gate shut"
    assert "3 of 9 due" in words(of(markers, "figures"))
    assert len(of(markers, "refusals")[0].points) == 1


def test_an_open_gate_is_not_seen_as_refused():
    markers = picture([diagnostics(slots=4, gate=0.51, due=True, due_count=1, write_count=1)])
    (gate,), (line,) = of(markers, "gate"), of(markers, "gate_threshold")
    assert gate.pose.position.z + gate.scale.z / 2 > line.pose.position.z
    assert "refused" not in words(of(markers, "gate_label"))
    assert not of(markers, "refusals")
    assert "due" not in words(of(markers, "figures"))


@pytest.mark.parametrize("gate_bias", [20.0, -20.0])
def test_a_gated_mechanism_shows_whether_it_wrote(gate_bias, tmp_path):
    tiny_checkpoint(tmp_path, "trace+gate", options={"gate_bias": gate_bias})
    messages, markers = live(tmp_path)
    shut = gate_bias < 0
    assert [message.wrote for message in messages] == [message.due and not shut for message in messages]
    (dots,) = of(markers, "refusals" if shut else "writes")
    assert len(dots.points) == messages[-1].due_count == 6
    assert ("refused" in words(of(markers, "gate_label"))) == shut
    assert ("0 of 6 due" in words(of(markers, "figures"))) == shut


@pytest.mark.parametrize("mechanism", [*registry.names(), "gru+cache", "trace+gate"])
def test_every_mechanism_describes_itself(mechanism, tmp_path):
    tiny_checkpoint(tmp_path, mechanism)
    memory = MemoryRuntime.from_checkpoint(tmp_path).model.memory
    messages, markers = live(tmp_path)
    message, count = messages[-1], memory.slot_count
    assert [len(getattr(message, name)) for name in ("route", "write_strength", "slot_norms")] == [count] * 3
    assert (message.slot_kind, message.due_count) == (memory.slot_kind, 6)
    assert len(of(markers, "slots")) == count <= 64
    assert entries.how_many(message) in words(of(markers, "captions"))
    assert len(of(markers, "writes")) + len(of(markers, "refusals")) == bool(count)


def live(checkpoint: Path) -> tuple[list[MemoryDiagnostics], list[Marker]]:
    """Twelve ticks of a checkpoint's diagnostics, and the markers of the last."""
    runtime, config, rng = MemoryRuntime.from_checkpoint(checkpoint), default_arm(), np.random.default_rng(0)
    messages: list[MemoryDiagnostics] = []
    shown = scene()
    for tick in range(12):
        images = {c: rng.integers(0, 256, (48, 48, 3), dtype=np.uint8) for c in config.camera_names}
        state = np.concatenate([np.zeros(3), rng.uniform(-1, 1, 14)])
        observation = Observation(tick, tick * config.period_ns, images, state, {}, {})
        condition, record = runtime.tick(observation)
        report = TickReport(condition, record, observation, record.stage_ms, 1.0)
        messages.append(diagnostics_message(report, ["overhead"], {"overhead": StreamCounters()}, []))
        shown.on_diagnostics(messages[-1], 0.0)
        check_valid(array := shown.picture(0.0))
    return messages, drawn(array)
