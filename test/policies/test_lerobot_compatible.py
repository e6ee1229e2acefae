"""A LeRobot that builds its policies in another way is refused by name; one that does not is admitted."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from policies.lerobot_examples import SHAPE, policy, remembering
from torch import nn

from trace_memory_ros.policies.lerobot.compatible import TESTED, IncompatibleLerobot, check_base, differences
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.policy import MemoryOptions, MemoryPolicy


@pytest.fixture(scope="module")
def bases() -> dict[str, Any]:
    return {family: policy(family) for family in ("act", "diffusion")}


@pytest.fixture
def act(bases: dict[str, Any]) -> Any:
    return copy.deepcopy(bases["act"])


def test_what_is_installed_fits(bases: dict[str, Any]) -> None:
    assert not [text for base in bases.values() for text in differences(base)]
    assert lerobot().__version__ in TESTED


def test_a_renamed_module_is_named_with_the_remedy(act: Any) -> None:
    layer = act.model.decoder.layers[0]
    layer.cross_attention = layer.multihead_attn
    del layer.multihead_attn
    with pytest.raises(IncompatibleLerobot) as refused:
        MemoryPolicy(act, MemoryOptions(SHAPE))
    text = str(refused.value)
    assert "model.decoder.layers.0.multihead_attn is not there (multihead_attn is missing)" in text
    assert f"Tested with {TESTED[0]}" in text and 'pip install --no-deps "lerobot>=0.4.4,<0.5"' in text


def test_another_kind_of_attention_and_another_width_are_named(act: Any) -> None:
    act.model.encoder.layers[0].self_attn = nn.Linear(32, 32)
    act.model.encoder.layers[1].self_attn = nn.MultiheadAttention(16, 4, batch_first=True)
    assert differences(act) == [
        "model.encoder.layers.0.self_attn is a Linear, expected MultiheadAttention",
        "width of model.encoder.layers.1.self_attn is 16, expected 32",
        "model.encoder.layers.1.self_attn.batch_first is True, expected False",
    ]


def test_a_changed_signature_is_named(bases: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    base = bases["diffusion"]

    def forward(self: Any, x: torch.Tensor, timestep: torch.Tensor, condition: torch.Tensor) -> None: ...

    monkeypatch.setattr(type(base.diffusion.unet), "forward", forward)
    with pytest.raises(IncompatibleLerobot, match=r"unet\.forward takes \(x, timestep, condition\), expected \(global"):
        check_base(base)


def test_a_condition_of_another_width_is_named(bases: dict[str, Any]) -> None:
    base = copy.deepcopy(bases["diffusion"])
    film = base.diffusion.unet.down_modules[0][0].cond_encoder
    film[1] = nn.Linear(film[1].in_features + 4, film[1].out_features)
    (text,) = differences(base)
    assert "cond_encoder.1 is" in text


def test_a_newer_version_that_fits_is_admitted_with_a_warning(act: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lerobot(), "__version__", "0.6.0")
    with pytest.warns(UserWarning, match=r"LeRobot 0\.6\.0 was not tested .* names and shapes that it should have"):
        remembering(act)
    del act.model.encoder
    with pytest.raises(IncompatibleLerobot, match=r"LeRobot 0\.6\.0 .*encoder is missing"):
        MemoryPolicy(act, MemoryOptions(SHAPE))
