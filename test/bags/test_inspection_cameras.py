"""Which pictures a proposal takes for cameras, and in which form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bags import strangers
from bags.proposals import ARM, CAMERA, COMMANDS, STATES, proposed, whys
from bags.strangers import Topic, image, joints, jpeg, record, trajectory

from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.inspection import inspect, inspect_bags
from trace_memory_ros.bags.layout import find_bags


def test_a_compressed_camera_of_any_name_is_a_camera(tmp_path: Path) -> None:
    topics = [Topic(name, strangers.COMPRESSED, 15, jpeg, 0.02) for name in ("/front/jpeg", "/hand/picture")]
    proposal = proposed(tmp_path, (*topics, STATES, COMMANDS))
    assert proposal.recording is not None
    assert [camera.topic for camera in proposal.recording.observation.cameras] == ["front/jpeg", "hand/picture"]


def test_cameras_and_arms_of_one_name_are_told_apart(tmp_path: Path) -> None:
    topics = [
        topic._replace(name=f"/{side}{topic.name.removeprefix('/camera')}", make=make)
        for number, side in enumerate(("left", "right"))
        for topic, make in zip(
            ARM, (image(), joints(strangers.SIX, number), trajectory(strangers.SIX, number)), strict=True
        )
    ]
    proposal = proposed(tmp_path, topics)
    assert proposal.recording is not None
    names = [one.name for one in proposal.recording.observation.inputs]
    assert names == ["left_camera", "right_camera", "left", "right"]


def test_copies_of_one_camera_are_one(tmp_path: Path) -> None:
    copies = [
        Topic("/camera/image_raw/compressed", strangers.COMPRESSED, 15, jpeg, 0.02),
        Topic("/camera/image_compressed", strangers.COMPRESSED, 15, jpeg, 0.02),
        Topic("/camera/image_rect", strangers.IMAGE, 15, image(), 0.02),
    ]
    proposal = proposed(tmp_path, (*ARM, *(copy._replace(name=copy.name) for copy in copies)))
    assert proposal.recording is not None
    assert [camera.topic for camera in proposal.recording.observation.cameras] == ["camera/image_raw"]
    assert all("repeats /camera/image_raw" in whys(proposal)[copy.name] for copy in copies)


def test_a_cameras_grey_copy_is_the_same_camera(tmp_path: Path) -> None:
    def grey(t: float) -> strangers.Plain:
        return {"height": 12, "width": 16, "encoding": "mono8", "step": 16, "data": bytes(192)}

    copies = [
        Topic("/zed/zed_node/left/image_rect_color", strangers.IMAGE, 15, image(), 0.02),
        Topic("/zed/zed_node/left/image_rect_gray", strangers.IMAGE, 15, grey, 0.02),
        Topic("/zed/zed_node/left/gray/rect/image", strangers.IMAGE, 15, grey, 0.02),
    ]
    proposal = proposed(tmp_path, (*copies, STATES, COMMANDS))
    assert proposal.recording is not None
    (camera,) = proposal.recording.observation.cameras
    assert (camera.name, camera.topic) == ("zed_zed_node_left", "zed/zed_node/left/image_rect_color")


@pytest.mark.parametrize(("raw_hz", "taken"), [(3, "image_raw/compressed"), (15, "image_raw")])
def test_pictures_that_were_lost_on_the_way_are_taken_as_they_came_packed(
    tmp_path: Path, raw_hz: float, taken: str
) -> None:
    packed = Topic("/camera/image_raw/compressed", strangers.COMPRESSED, 15, jpeg, 0.02)
    proposal = proposed(tmp_path, (CAMERA._replace(rate_hz=raw_hz), packed, STATES, COMMANDS))
    assert proposal.recording is not None
    assert [camera.topic for camera in proposal.recording.observation.cameras] == [f"camera/{taken}"]
    assert any(" pictures came: /camera/image_raw/compressed is taken" in n for n in proposal.notes) == (raw_hz < 15)


@pytest.mark.parametrize(("bits", "level"), [(12, 16), (14, 62), (16, 249)])
def test_bits_that_nobody_scaled_to_16_are_told(tmp_path: Path, bits: int, level: int) -> None:
    def make(t: float) -> strangers.Plain:
        mosaic = np.full((12, 16), 1000, np.uint16) << (bits - 10)
        mosaic[4, 5] = round(0.975 * 2**bits)
        return {"height": 12, "width": 16, "encoding": "mono16", "step": 32, "data": mosaic.tobytes()}

    proposal = proposed(tmp_path, (Topic("/pylon/image_raw", strangers.IMAGE, 15, make, 0.02), STATES, COMMANDS))
    told = [note for note in proposal.notes if "brighter" in note]
    assert len(told) == (bits < 16) and all(f"nowhere brighter than {level} of 255" in note for note in told)


def test_a_camera_that_cannot_be_decoded_is_named_with_why(tmp_path: Path) -> None:
    strange = Topic("/thermal/image_raw", strangers.IMAGE, 15, lambda t: {**image()(t), "encoding": "tenbit10"})
    proposal = proposed(tmp_path, (*ARM, strange))
    assert "tenbit10" in whys(proposal)["/thermal/image_raw"]
    assert "/thermal/image_raw" not in proposal.uses


@pytest.mark.parametrize("encoding", ["16UC1", "mono16"])
def test_depth_is_taken_where_nothing_else_is_seen(tmp_path: Path, encoding: str) -> None:
    def make(t: float) -> strangers.Plain:
        far_mm = np.full((12, 16), 1600, np.uint16)
        return {"height": 12, "width": 16, "encoding": encoding, "step": 32, "data": far_mm.tobytes()}

    depth = Topic("/depth/image_raw", strangers.IMAGE, 15, make, 0.02)
    proposal = proposed(tmp_path, (depth, STATES, COMMANDS))
    assert any("depth is taken" in note for note in proposal.notes)
    assert proposal.recording is not None
    (camera,) = proposal.recording.observation.cameras
    assert camera.range_m == (0.2, 3.0)
    episodes, _ = decode_bag(tmp_path / "bag", proposal.recording)
    assert (episodes[0].images["depth"][10] == 128).all()  # 1.6 m is in the middle


@pytest.mark.parametrize("rate_hz", [0.05, 0.3])
def test_pictures_that_come_now_and_then_are_no_camera(tmp_path: Path, rate_hz: float) -> None:
    rare = Topic("/aruco_result/image", strangers.IMAGE, rate_hz, image(), 0.02)
    proposal = proposed(tmp_path, (rare, *ARM), seconds=9.0)
    assert proposal.recording is not None and proposal.recording.episodes.kind == "bag"
    assert [camera.topic for camera in proposal.recording.observation.cameras] == ["camera/image_raw"]
    assert "too rare for a camera" in whys(proposal)["/aruco_result/image"]


def test_a_camera_whose_first_images_are_broken_is_a_camera(tmp_path: Path) -> None:
    def warming_up(t: float) -> strangers.Plain:
        return jpeg(t) if t > 0.3 else {**jpeg(t), "data": jpeg(t)["data"][:60]}

    def broken(t: float) -> strangers.Plain:
        return {**jpeg(t), "data": b""}

    camera = Topic("/camera/image_raw/compressed", strangers.COMPRESSED, 15, warming_up, 0.02)
    proposal = proposed(tmp_path, (camera, STATES, COMMANDS))
    assert proposal.uses[camera.name] == "camera camera"
    record(tmp_path / "broken", (camera._replace(make=broken), STATES, COMMANDS))
    proposal = inspect_bags(tmp_path, find_bags(tmp_path))
    assert proposal.uses[camera.name] == "camera camera"


def test_video_is_listed_beside_cameras(tmp_path: Path) -> None:
    kind = "foxglove_msgs/msg/CompressedVideo"
    video = Topic("/hand/video", kind, 30, lambda t: {"data": b"\0\0\0\1", "format": "h264"})
    proposal = proposed(tmp_path, (*ARM, video))
    (listed,) = [one for one in proposal.passed_over if one.topic == "/hand/video"]
    assert listed.entry is not None and listed.entry["transport"] == "video"


def test_video_of_a_codec_that_cannot_be_decoded_is_named_with_why(tmp_path: Path) -> None:
    kind = "foxglove_msgs/msg/CompressedVideo"
    videos = [
        Topic(f"/{codec}/video", kind, 30, lambda t, codec=codec: {"data": b"\0\0\0\1", "format": codec})
        for codec in ("av1", "h264")
    ]
    record(tmp_path / "bag", (*videos, STATES, COMMANDS))
    proposal = inspect(tmp_path / "bag")
    assert "encode h264 or h265" in whys(proposal)["/av1/video"]
    assert [name for name, use in proposal.uses.items() if "camera" in use] == ["/h264/video"]
