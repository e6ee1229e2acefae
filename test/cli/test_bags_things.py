"""`trace-memory bags things`: what eyes for things would see of bags, drawn and counted."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from learning.tiny_bags import config_file, places, recording, write_bags

from trace_memory_ros.cli.bags_things import PICTURE
from trace_memory_ros.cli.main import main
from trace_memory_ros.measure.things import CAPTION_PX, DARK, GAP_PX, LINE, TILE_PX, Counts, look
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.things import ThingsBackbone

PX = 16
RED, BLUE = (230, 30, 30), (30, 30, 230)


def table(*squares: tuple[int, int, tuple[int, int, int]]) -> np.ndarray:
    """A grey picture with squares of four pixels, each from a row and a column on."""
    image = np.full((PX, PX, 3), 100, dtype=np.uint8)
    for top, left, colour in squares:
        image[top : top + 4, left : left + 4] = colour
    return image


def test_what_is_a_thing_keeps_its_colours_and_all_else_is_dark() -> None:
    counts = Counts()
    shown = look(ThingsBackbone(BackboneConfig("things"), PX), table((2, 2, RED), (2, 6, BLUE)), counts)
    assert shown.shape == (TILE_PX, TILE_PX, 3) and counts.things == [2] and counts.full == counts.empty == 0
    pixels = shown.reshape(PX, TILE_PX // PX, PX, TILE_PX // PX, 3).swapaxes(1, 2)
    assert (pixels[3, 3, 4, 4] == RED).all() and (pixels[3, 7, 4, 4] == BLUE).all()
    assert (pixels[12, 12] == int(DARK * 100)).all()
    assert (pixels[3, 5, :, -1] == LINE).all(), "a line where two things meet"


def test_what_is_no_token_is_counted_and_dark() -> None:
    counts, eyes = Counts(), ThingsBackbone(BackboneConfig("things", options={"most_things": 1}), PX)
    shown = look(eyes, table((2, 2, RED), (10, 10, BLUE)), counts)
    assert counts.things == [1] and counts.full == 1
    assert not (shown.reshape(-1, 3) == BLUE).all(axis=-1).any()
    look(eyes, table(), counts)
    assert counts.empty == 1


def test_bags_are_drawn_and_empty_pictures_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bags(tmp_path / "bags", 2, recording(cameras=2))
    config_file(tmp_path, recording(cameras=2))
    asked = ["bags", "things", *places(tmp_path), "--episodes", "3", "--ticks", "6"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    # The colour is shown in the first 4 of 24 ticks, and every fifth tick is looked at.
    assert all(f"eye_{camera}: nothing in 15 of 18 pictures" in said for camera in (0, 1))
    drawn = cv2.imread(str(tmp_path / "out" / PICTURE))
    assert drawn.shape == (3 * (TILE_PX + CAPTION_PX + GAP_PX), 2 * 6 * (TILE_PX + GAP_PX), 3)
    assert main([*asked, "--px", "17"]) == 1
    assert "--px = 17 is more than every camera keeps, 16: raise image_px in" in capsys.readouterr().err
    assert main([*asked, "--most-px", "4"]) == 0
    assert "nothing in 18 of 18 pictures" in capsys.readouterr().out
