"""Broken files, folders and payloads."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from pathlib import Path

import numpy as np
from bags.bad import (
    DEGRADED,
    SECOND_NS,
    TICKS,
    UNUSABLE,
    bad,
    cut,
    edit_metadata,
    edited,
    storage_file,
)

from studies.tiny_bags import Entry, recording_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make

# Files and folders


@bad(UNUSABLE, "does not exist", "path", "give a bag's folder")
def no_such_path(bag: Path) -> None:
    pass


@bad(UNUSABLE, "holds no storage file", "folder", "`ros2 bag record`")
def empty_folder(bag: Path) -> None:
    bag.mkdir()


@bad(UNUSABLE, "is empty", ".mcap", "record again")
def empty_mcap(bag: Path) -> None:
    storage_file(write(bag, recording_of(TICKS))).write_bytes(b"")


@bad(UNUSABLE, "is empty", ".db3", "record again")
def empty_sqlite(bag: Path) -> None:
    storage_file(write(bag, recording_of(TICKS), "sqlite3")).write_bytes(b"")


@bad(UNUSABLE, "is not a .mcap or .db3 file", "path", "storage file")
def a_text_file(bag: Path) -> None:
    bag.write_text("not a bag")


@bad(UNUSABLE, "begins with 6e6f742061", "byte 0", "restore it from a copy")
def text_named_mcap(bag: Path) -> None:
    storage_file(write(bag, recording_of(TICKS))).write_text("not an mcap file")


@bad(UNUSABLE, "begins with 6e6f742061", "byte 0", "restore it from a copy")
def text_named_sqlite(bag: Path) -> None:
    storage_file(write(bag, recording_of(TICKS), "sqlite3")).write_text("not a database at all")


@bad(UNUSABLE, "has tables other, not topics and messages", ".db3", "`ros2 bag record` wrote")
def another_database(bag: Path) -> None:
    file = storage_file(write(bag, recording_of(TICKS), "sqlite3"))
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE other(id INTEGER)")
    connection.commit()
    connection.close()


@bad(UNUSABLE, "holds no messages", ".mcap", "QoS")
def no_messages(bag: Path) -> None:
    from trace_memory_ros.bags.writer import BagFileWriter

    with BagFileWriter(bag, {entry.topic: entry.type_name for entry in recording_of(1)}):
        pass


@bad(DEGRADED, "is missing", "metadata.yaml", "ros2 bag reindex", TICKS, TICKS)
def no_metadata(bag: Path) -> None:
    (write(bag, recording_of(TICKS)) / "metadata.yaml").unlink()


@bad(DEGRADED, "cannot be understood", "metadata.yaml", "ros2 bag reindex", TICKS, TICKS)
def damaged_metadata(bag: Path) -> None:
    (write(bag, recording_of(TICKS)) / "metadata.yaml").write_text("rosbag2_bagfile_information: [1, {")


@bad(DEGRADED, "values lie more than 50 deep", "metadata.yaml", "ros2 bag reindex", TICKS, TICKS)
def deep_metadata(bag: Path) -> None:
    (write(bag, recording_of(TICKS)) / "metadata.yaml").write_text("[" * 100_000)


@bad(DEGRADED, "where the bag's tables claim", "topic /front/image", "mcap recover", TICKS, TICKS)
def metadata_that_counts_more(bag: Path) -> None:
    def change(information: dict) -> None:  # type: ignore[type-arg]
        for topic in information["topics_with_message_count"]:
            topic["message_count"] += 5

    edit_metadata(write(bag, recording_of(TICKS)), change)


@bad(UNUSABLE, "lists gone.mcap", "metadata.yaml", "restore the missing files")
def metadata_of_another_file(bag: Path) -> None:
    edit_metadata(write(bag, recording_of(TICKS)), lambda data: data.update(relative_file_paths=["gone.mcap"]))


@bad(DEGRADED, "is listed in metadata.yaml and missing", "bag_1.mcap", "restore it", TICKS, TICKS)
def a_part_is_missing(bag: Path) -> None:
    edit_metadata(
        write(bag, recording_of(TICKS)),
        lambda data: data.update(relative_file_paths=[f"{bag.name}.mcap", "bag_1.mcap"]),
    )


@bad(DEGRADED, "is not listed in metadata.yaml", "stranger.mcap", "folder of its own", TICKS, TICKS)
def a_stranger_in_the_folder(bag: Path) -> None:
    write(bag, recording_of(TICKS))
    other = write(bag.with_name("stranger"), recording_of(2))
    shutil.copy(storage_file(other), bag)


@bad(UNUSABLE, "holds files of 2 bags", "folder", "folder of its own")
def two_bags_in_a_folder(bag: Path) -> None:
    a_stranger_in_the_folder(bag)
    (bag / "metadata.yaml").unlink()


@bad(UNUSABLE, "is a folder where a storage file should be", ".mcap", "restore it from a copy")
def a_folder_named_like_a_file(bag: Path) -> None:
    file = storage_file(write(bag, recording_of(TICKS)))
    file.unlink()
    file.mkdir()
    (file / "x").write_text("x")


# Damage within the files


@bad(DEGRADED, "cut off or damaged", "byte ", "mcap recover", 9, 9)
def truncated_mcap(bag: Path) -> None:
    write_in_chunks(bag)
    cut(bag, 0.5)


def write_in_chunks(bag: Path, ticks: int = TICKS, storage: str = "mcap") -> Path:
    """A recording whose images are so large that every few ticks are a chunk; the front camera's alone."""
    entries = recording_of(ticks)
    big = np.zeros((300, 400, 3), dtype=np.uint8)
    for entry in entries:
        if entry.type_name == fields.IMAGE:
            entry.message = make.image(
                big, entry.message.header.stamp.sec * SECOND_NS + entry.message.header.stamp.nanosec
            )
    return write(bag, entries, storage)


@bad(UNUSABLE, "cut off or damaged", "byte ", "mcap recover")
def mcap_cut_in_its_first_chunk(bag: Path) -> None:
    write(bag, recording_of(TICKS))
    cut(bag, 0.5)


@bad(UNUSABLE, "the database is damaged", ".db3", ".recover")
def truncated_sqlite(bag: Path) -> None:
    write(bag, recording_of(TICKS), "sqlite3")
    cut(bag, 0.3)


@bad(DEGRADED, "does not match its checksum", "byte ", "mcap recover", TICKS, TICKS)
def corrupt_chunk(bag: Path) -> None:
    """A chunk in the middle with a checksum that does not fit."""
    write_in_chunks(bag)
    file = storage_file(bag)
    content = bytearray(file.read_bytes())
    at = chunk_offsets(bytes(content))[3]
    struct.pack_into("<I", content, at + 9 + 24, 12345)
    file.write_bytes(content)


def chunk_offsets(content: bytes) -> list[int]:
    """Byte of every chunk of an mcap file."""
    at, found = 8, []
    while at < len(content) - 8:
        op, size = struct.unpack_from("<BQ", content, at)
        if op == 6:
            found.append(at)
        at += 9 + size
    return found


@bad(UNUSABLE, "zstd data are damaged", "byte ", "mcap recover")
def corrupt_compressed_chunk(bag: Path) -> None:
    write(bag, recording_of(TICKS), "mcap", "chunk")
    file = storage_file(bag)
    content = bytearray(file.read_bytes())
    at = chunk_offsets(bytes(content))[0] + 9 + 28 + 8 + 8
    content[at : at + 4] = bytes(4)
    file.write_bytes(content)


@bad(UNUSABLE, "is packed with 'snappy'", "byte ", "mcap recover")
def unknown_compression(bag: Path) -> None:
    write(bag, recording_of(TICKS), "mcap", "chunk")
    file = storage_file(bag)
    content = file.read_bytes().replace(b"\x04\x00\x00\x00zstd", b"\x06\x00\x00\x00snappy", 1)
    # The record grew by two bytes.
    at = chunk_offsets(file.read_bytes())[0]
    (size,) = struct.unpack_from("<Q", content, at + 1)
    file.write_bytes(content[: at + 1] + struct.pack("<Q", size + 2) + content[at + 9 :])


@bad(UNUSABLE, "zstd data end early", ".mcap.zstd", "restore it from a copy")
def truncated_compressed_file(bag: Path) -> None:
    write(bag, recording_of(TICKS), "mcap", "file")
    cut(bag, 0.6)


@bad(DEGRADED, "has messages whose zstd data end early", "topic /odom", "restore the bag", TICKS, TICKS)
def a_corrupt_compressed_message(bag: Path) -> None:
    from backports import zstd

    from trace_memory_ros.bags.writer import BagFileWriter

    entries = recording_of(TICKS)
    with BagFileWriter(bag, {e.topic: e.type_name for e in entries}) as writer:
        for k, entry in enumerate(entries):
            data = zstd.compress(entry.data)
            broken = entry.topic == "odom" and k == 5 * 10 + 1
            writer.write_raw(entry.topic, data[:12] if broken else data, entry.log_ns)


@bad(DEGRADED, "cannot be read (payload of", "topic /joint_states (joints)", "restore the bag", TICKS, TICKS - 1)
def truncated_payload(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if tick == 7 and entry.topic == "joint_states":
            entry.message = entry.data[:40]
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "1 of 20 messages cannot be read (payload begins with", "topic /odom (odom)", "restore", TICKS, TICKS)
def a_payload_that_is_no_cdr(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if tick == 7 and entry.topic == "odom":
            entry.message = b"\x07\x07" + entry.data[2:]
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "is encoded as 'json'", "topic /odom", "ros2 bag record", TICKS, TICKS)
def a_topic_that_is_not_cdr(bag: Path) -> None:
    file = storage_file(write(bag, recording_of(TICKS), "sqlite3"))
    connection = sqlite3.connect(file)
    connection.execute("UPDATE topics SET serialization_format = 'json' WHERE name = '/odom'")
    connection.commit()
    connection.close()


@bad(DEGRADED, "cannot be read", ".db3, message ", ".recover", TICKS, TICKS)
def a_damaged_page(bag: Path) -> None:
    """A table of many pages, one of them overwritten."""
    write_in_chunks(bag, storage="sqlite3")
    file = storage_file(bag)
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    file.write_bytes(content)


@bad(UNUSABLE, "20 of 20 messages cannot be read (payload of", "topic /joint_states", "restore the bag", TICKS, 0)
def payloads_that_lie_about_their_byte_order(bag: Path) -> None:
    def change(entry: Entry, _: int) -> Entry:
        if entry.topic == "joint_states":
            entry.message = b"\x00\x00" + entry.data[2:]
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "that were never moved into the bag", "write-ahead log", "wal_checkpoint", TICKS, TICKS)
def a_write_ahead_log(bag: Path) -> None:
    file = storage_file(write(bag, recording_of(TICKS), "sqlite3"))
    file.with_name(file.name + "-wal").write_bytes(b"left behind")
