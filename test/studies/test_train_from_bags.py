"""`bench train-from-bags`: rows by name, and twins put beside each other for the comparison of measures alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from learning.tiny_bags import recording, write_bags

from studies.engine import option_parser
from studies.train_from_bags import study as train_from_bags
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.training import prepare, read_bags
from trace_memory_ros.learning.data.batches import EpisodeBatch
from trace_memory_ros.learning.data.dataset import UnpairedSet
from trace_memory_ros.learning.recipe import Recipe


def test_an_unknown_row_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    parser = option_parser("train-from-bags", train_from_bags)
    assert parser.parse_args(["--rows", "origin 75,colour 75"]).rows == ("origin 75", "colour 75")
    with pytest.raises(SystemExit):
        parser.parse_args(["--rows", "origin 3"])
    assert "origin 3: choose from origin 150" in capsys.readouterr().err


def test_both_measures_judge_an_expert_right_in_any_order(tmp_path: Path) -> None:
    config = recording()
    write_bags(tmp_path / "bags", 6, config)
    data, _ = read_bags(sorted((tmp_path / "bags").iterdir()), config, tmp_path / "cache")
    held = prepare(data, config, BagOptions("none", chunk=4), Recipe(), 0.5).held_out
    shuffled = replace(held, data=UnpairedSet([held.data.episodes[i] for i in (3, 0, 5, 1, 4, 2)]))

    def expert(batch: EpisodeBatch) -> torch.Tensor:
        return held.statistics.normalise_actions(batch.actions)

    assert train_from_bags._by_twins(expert, shuffled).tolist() == [1.0] * 6
    assert train_from_bags._by_labels(expert, shuffled, 1.0).tolist() == [1.0] * 6
