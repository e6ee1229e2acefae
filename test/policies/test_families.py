"""Policy families by name: built in, brought by an installed package, unknown, broken."""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fixtures import tiny_checkpoint
from policies.installed import EXAMPLE, copy_of_example, install, slow_project

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.policies import families
from trace_memory_ros.policies.act.policy import ActConfig, ActPolicy
from trace_memory_ros.policies.base import ActionMismatch, ChunkPolicy, check_actions
from trace_memory_ros.policies.families import UnknownFamily, family
from trace_memory_ros.runtime.checkpoint import load

OPTIONS = {"action_names": ["a", "b"], "condition": {"tokens": 1, "width": 3, "address": 0}}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    install(folder / "site", copy_of_example(folder / "example"), slow_project(folder / "slow"))
    return folder / "site"


@pytest.fixture
def installed(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(shelf)
    importlib.invalidate_caches()
    yield
    for name in ("linear_policy", "slow_policy"):
        sys.modules.pop(name, None)


def test_both_families_of_this_package_are_there() -> None:
    assert {"act", "diffusion"} <= set(families.names())
    options = ActConfig(cameras=("c",), action_names=("a",), image_px=16, model=16, heads=2).to_dict()
    assert isinstance(family("act").build(options), ActPolicy)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"haeds": 2}, "unknown key 'haeds'; did you mean 'heads'"), ({"heads": "x"}, r"'act': '<' not .*correct \{")],
)
def test_options_that_a_family_does_not_have_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        family("act").build({"cameras": ("c",), "action_names": ("a",), **options})


def test_an_unknown_family_is_refused_naming_those_that_are_there() -> None:
    with pytest.raises(UnknownFamily, match=r"'linear' is unknown here: there are act, diffusion.*entry point"):
        family("linear")


def test_a_family_of_an_installed_package_acts(installed: None) -> None:
    assert {"linear", "slow"} <= set(families.names())
    tensors = {"weight": torch.ones(2, 5), "bias": torch.tensor([0.0, 1.0])}
    policy = family("linear").load(OPTIONS, tensors)
    observation = SimpleNamespace(state=np.array([1.0, 2.0]), images={})
    condition = SimpleNamespace(vector=np.array([0.5, 0.5, 0.5], np.float32))
    np.testing.assert_allclose(policy.act(observation, condition), [4.5, 5.5])
    assert not isinstance(policy, ChunkPolicy)


def test_what_the_page_says_keeps_every_bit_of_a_policy(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "how-to" / "policies.md").read_text(encoding="utf-8")
    (program,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "save(" in block)
    taken = tiny_checkpoint(tmp_path / "out/train/colour_trace_0")
    numbers = "weight, bias = torch.full((2, 5), 1 / 3), torch.tensor([90.37, 1234.6])"
    given = f"import torch\n{numbers}\noptions = {OPTIONS}\n"
    subprocess.run([sys.executable, "-c", given + program], cwd=tmp_path, check=True)
    before, saved = load(tmp_path / "out/train/colour_trace_0"), load(tmp_path / "linear")
    assert before.model_id == taken
    assert torch.equal(saved.tensors["policy.weight"], torch.full((2, 5), 1 / 3))
    assert torch.equal(saved.tensors["policy.bias"], torch.tensor([90.37, 1234.6]))
    memory = {name: tensor for name, tensor in saved.tensors.items() if not name.startswith("policy.")}
    assert memory and all(torch.equal(tensor, before.tensors[name]) for name, tensor in memory.items())


def test_a_policy_with_a_horizon_is_one_of_chunks(installed: None) -> None:
    policy = family("slow").load({**OPTIONS, "ticks": 4, "seconds": 0.0, "execute": 2}, {})
    assert isinstance(policy, ChunkPolicy)


def test_a_family_without_a_module_cannot_be_trained_here(installed: None) -> None:
    with pytest.raises(UnknownFamily, match=r"'linear' can be run here but not trained"):
        family("linear").build({})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", r"'absent' of slow_policy cannot be imported.*No module named 'slow_policy_of_nobody'"),
        ("number", r"slow_policy:NOT_A_POLICY is a int, but must be a PolicyFamily or a function"),
    ],
)
def test_a_broken_package_is_named(installed: None, name: str, message: str) -> None:
    with pytest.raises(UnknownFamily, match=message):
        family(name)


def test_the_example_stays_short() -> None:
    assert len((EXAMPLE / "linear_policy.py").read_text(encoding="utf-8").splitlines()) <= 30


def test_actions_of_another_robot_are_refused_naming_both() -> None:
    check_actions(("b", "a"), ("a", "b"), "the arm")
    with pytest.raises(
        ActionMismatch, match=r"commands c that the arm does not have and nothing for b of the arm.*a, b"
    ):
        check_actions(("a", "c"), ("a", "b"), "the arm")
