"""The study of what looking costs."""

from pathlib import Path

from studies.eyes.study import run, tables


def test_a_quick_run_gives_its_table(tmp_path: Path) -> None:
    figures = run(tmp_path, quick=True)
    assert {name: row["width"] for name, row in figures["backbones"].items()} == {
        "small of a memory": 64,
        "small of a policy": 64,
    }
    assert all(ms > 0 for row in figures["backbones"].values() for ms in row["ms"].values())
    assert len(list(tables(figures))) == 2
