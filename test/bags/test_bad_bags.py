"""Whatever is wrong with a bag, the verdict says what, where and how to repair it; nothing is lost without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from bags import bad_contents, bad_storage, bad_streams
from bags.bad import BAD, BadBag

from trace_memory_ros.bags.build import decode_bag

MODULES = (bad_storage, bad_streams, bad_contents)


def test_there_are_many() -> None:
    assert len(BAD) >= 25
    assert {case.make.__module__ for case in BAD.values()} == {m.__name__ for m in MODULES}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_bag_gets_a_clear_verdict(tmp_path: Path, name: str) -> None:
    case: BadBag = BAD[name]
    bag = tmp_path / "bag"
    case.make(bag)
    episodes, verdict = decode_bag(bag, case.recording)
    text = str(verdict)
    assert verdict.grade is case.grade, text
    fitting = [f for f in verdict.faults if case.what in f.what and case.where in f.where and case.remedy in f.remedy]
    assert fitting, text
    for fault in verdict.faults:
        assert fault.what and fault.where and fault.remedy, text
    found = (sum(e.ticks for e in episodes), sum(int(e.usable.sum()) for e in episodes))
    assert found == (case.ticks, case.usable), text
