"""Looking into bags is measured in processes of its own, and the bags are gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.inspect import study


@pytest.mark.parametrize("case", study.CASES)
def test_each_kind_of_bag_is_looked_into(case: str, tmp_path: Path) -> None:
    figures = study.run(tmp_path, True, (case,), 3, 500)
    found = figures["cases"][case]
    assert found["cpu_s"] > 0 and 20 < found["mebibytes"] < 1_000
    assert not any((tmp_path / "bags").iterdir())
    (shown,) = study.tables(figures)
    assert shown.row_count == 1


def test_a_bag_that_cannot_be_looked_into_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with pytest.raises(RuntimeError, match="ended with 1"):
        study.inspect(tmp_path / "bag")
