"""Missing topics, wrong types and wrong stamps."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bags.bad import (
    DEGRADED,
    SECOND_NS,
    TICKS,
    UNUSABLE,
    bad,
    edited,
    restamped,
    storage_file,
)

from studies import tiny_bags as tiny
from studies.tiny_bags import PERIOD_NS, Entry, recording_of, stamp_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make

# Topics and types


@bad(UNUSABLE, "is not in the bag", "topic /hand/image (hand)", "did you mean '/front/image'")
def missing_topic(bag: Path) -> None:
    write(bag, edited(lambda entry, _: None if entry.topic == "hand/image" else entry))


@bad(UNUSABLE, "is std_msgs/msg/String, needed is sensor_msgs/msg/Image", "topic /hand/image", "correct the configured")
def right_name_wrong_type(bag: Path) -> None:
    def change(entry: Entry, _: int) -> Entry:
        if entry.topic != "hand/image":
            return entry
        return Entry(entry.topic, fields.TEXT, entry.log_ns, make.text("picture"))

    write(bag, edited(change))


@bad(UNUSABLE, "is acme_msgs/msg/Joints, needed is sensor_msgs/msg/JointState", "topic /joint_states", "correct")
def unknown_type(bag: Path) -> None:
    file = storage_file(write(bag, recording_of(TICKS), "sqlite3"))
    connection = sqlite3.connect(file)
    connection.execute("UPDATE topics SET type = 'acme_msgs/msg/Joints' WHERE name = '/joint_states'")
    connection.commit()
    connection.close()


@bad(UNUSABLE, "is not in the bag", "topic /command (actions)", "no topic of type trajectory_msgs/msg/JointTrajectory")
def missing_actions(bag: Path) -> None:
    write(bag, edited(lambda entry, _: None if entry.topic == "command" else entry))


@bad(UNUSABLE, "holds no message", "topic /odom (odom)", "QoS")
def a_topic_without_messages(bag: Path) -> None:
    from trace_memory_ros.bags.writer import BagFileWriter

    with BagFileWriter(bag, {e.topic: e.type_name for e in recording_of(1)}) as writer:
        for entry in recording_of(TICKS):
            if entry.topic != "odom":
                writer.write_raw(entry.topic, entry.data, entry.log_ns)


# Stamps


@bad(DEGRADED, "earlier: they are left out", "topic /joint_states (joints)", "rising stamps", TICKS, TICKS)
def stamps_out_of_order(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        swapped = tick + {5: 1, 6: -1}.get(tick, 0)
        return restamped(entry, stamp_of(swapped)) if entry.topic == "joint_states" else entry

    write(bag, edited(change))


@bad(DEGRADED, "20 of 40 messages are stamped as one before them", "topic /odom", "one publisher", TICKS, TICKS)
def every_message_twice(bag: Path) -> None:
    entries = recording_of(TICKS)
    again = [Entry(e.topic, e.type_name, e.log_ns + 1, e.message) for e in entries if e.topic == "odom"]
    write(bag, [*entries, *again])


@bad(UNUSABLE, "20 of 20 messages have a stamp of zero", "topic /joint_states", "header.stamp", TICKS, 0)
def joints_without_stamps(bag: Path) -> None:
    write(bag, edited(lambda entry, _: restamped(entry, 0) if entry.topic == "joint_states" else entry))


@bad(UNUSABLE, "20 of 20 messages have a stamp of zero", "topic /front/image", "header.stamp", 0, 0)
def clock_camera_without_stamps(bag: Path) -> None:
    write(bag, edited(lambda entry, _: restamped(entry, 0) if entry.topic == "front/image" else entry))


@bad(UNUSABLE, "stamped far ahead", "topic /hand/image", "one clock", 20, 0)
def a_camera_on_another_clock(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        return restamped(entry, stamp_of(tick) + 3600 * SECOND_NS) if entry.topic == "hand/image" else entry

    write(bag, edited(change))


@bad(DEGRADED, "stamped before an earlier one", "episode 0", "cut the bag into episodes", 30, 30)
def the_clock_jumps_back(bag: Path) -> None:
    entries = recording_of(30)
    for k in range(30):
        for entry in tiny.tick_entries(k):
            entry.log_ns += 30 * PERIOD_NS
            entries.append(entry)
    write(bag, entries)


@bad(DEGRADED, "over 50 ticks ahead", "episode 0", "episodes.kind: gap", TICKS, TICKS)
def a_long_pause(bag: Path) -> None:
    write(bag, [e for k in (*range(TICKS), *range(200, 220)) for e in tiny.tick_entries(k)])


@bad(DEGRADED, "20 of 40 messages come after a long pause of all", "topic /odom", "episodes.kind: gap", TICKS, TICKS)
def all_streams_pause(bag: Path) -> None:
    a_long_pause(bag)
