"""Rows of arrays in files: as the array in memory gives them, without a file open meanwhile, and damage is named."""

from pathlib import Path

import numpy as np
import pytest

from trace_memory_ros.files.stored import StoredArray

ARRAY = np.random.default_rng(0).integers(0, 255, (7, 3, 2)).astype(np.uint8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", ARRAY)
    return tmp_path / "rows.npy"


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(
    "rows",
    [3, -1, slice(2, 5), slice(None, None, -2), np.array([4, 4, 0]), np.array([[1, 2], [6, 0]]), np.zeros(0, int)],
)
def test_rows_are_those_of_the_array(path: Path, rows: object) -> None:
    stored = StoredArray(path)
    assert np.array_equal(stored[rows], ARRAY[rows])
    assert stored[rows].flags.writeable and stored[rows].dtype == ARRAY.dtype


def test_any_number_is_at_hand_and_no_file_is_open(path: Path) -> None:
    before = open_files()
    held = [StoredArray(path) for _ in range(50)]
    assert all(np.array_equal(stored[2], ARRAY[2]) for stored in held)
    assert open_files() == before
    assert np.array_equal(np.asarray(held[0]), ARRAY) and held[0].nbytes == ARRAY.nbytes
    assert (len(held[0]), held[0].ndim, held[0].shape) == (7, 3, ARRAY.shape)


def test_what_is_no_array_of_rows_is_named_with_the_remedy(path: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexError):
        StoredArray(path)[7]
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(ValueError, match=r"rows.npy lacks its last 5 bytes: delete it"):
        StoredArray(path)
    path.write_bytes(b"no array")
    with pytest.raises(ValueError, match=r"rows.npy is no array of numpy"):
        StoredArray(path)
    np.save(tmp_path / "turned.npy", np.asfortranarray(ARRAY))
    with pytest.raises(ValueError, match="not an array of rows"):
        StoredArray(tmp_path / "turned.npy")


def test_a_file_that_is_cut_short_meanwhile_is_named(path: Path) -> None:
    stored = StoredArray(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match="was cut short"):
        stored[6]


def test_rows_may_be_single_numbers(tmp_path: Path) -> None:
    numbers = np.arange(5, dtype=np.float64)
    np.save(tmp_path / "numbers.npy", numbers)
    stored = StoredArray(tmp_path / "numbers.npy")
    assert stored[3] == 3.0
    assert np.array_equal(stored[[4, 0]], [4.0, 0.0])
