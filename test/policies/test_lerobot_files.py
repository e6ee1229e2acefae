"""LeRobot policies with a memory, saved, loaded and run between LeRobot's processors."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from policies.lerobot_examples import (
    ACTIONS,
    CAMERAS,
    FAMILIES,
    SHAPE,
    SIDE,
    SMALL,
    STATE,
    policy,
    readout,
    remembering,
    tick,
)
from torch import Tensor

from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.policies.families import family
from trace_memory_ros.policies.lerobot import config as building
from trace_memory_ros.policies.lerobot import files as lerobot_files
from trace_memory_ros.policies.lerobot.chunks import BuiltChunks
from trace_memory_ros.policies.lerobot.config import LerobotConfig
from trace_memory_ros.policies.lerobot.family import options_of
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint, LerobotCheckpointError
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.policy import memory_batch
from trace_memory_ros.policies.lerobot.runner import LerobotRunner

NAMES = tuple(f"joint_{i}" for i in range(ACTIONS))
MEAN, STD = 3.0, 0.5


def statistics() -> dict[str, dict[str, Tensor]]:
    """Statistics as a LeRobotDataset has them; of actions they are no identity."""
    numbers = {"observation.state": STATE, "action": ACTIONS}
    stats = {
        key: {"mean": torch.full((n,), MEAN), "std": torch.full((n,), STD), "min": torch.zeros(n), "max": torch.ones(n)}
        for key, n in numbers.items()
    }
    pixels = dict(mean=torch.full((3, 1, 1), 0.5), std=torch.full((3, 1, 1), 0.25))
    return stats | {f"observation.images.{name}": pixels for name in CAMERAS}


def checkpoint(family: str, **options: object) -> LerobotCheckpoint:
    """An untrained policy whose adapter is no longer fresh, with processors."""
    ours = remembering(policy(family), **options)
    torch.manual_seed(2)
    for parameter in ours.adapter.parameters():
        parameter.data.add_(torch.randn_like(parameter))
    pre, post = lerobot("lerobot.policies.factory").make_pre_post_processors(ours.config, dataset_stats=statistics())
    return LerobotCheckpoint(ours.eval(), pre, post, NAMES, "f" * 64)


class Seen:
    """An observation and a condition in one."""

    def __init__(self, seed: int) -> None:
        noise = np.random.default_rng(seed)
        self.images = {name: noise.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8) for name in CAMERAS}
        self.state = noise.standard_normal(STATE)
        memory = readout(1, seed)
        self.tokens, self.vector, self.read_weights, self.address = (f[0].detach().numpy() for f in memory)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_policy_acts_as_before_and_the_base_is_lerobots_alone(family: str, tmp_path: Path) -> None:
    saved = checkpoint(family)
    lerobot_files.save(tmp_path, saved)
    loaded = lerobot_files.load(tmp_path)
    assert loaded.action_names == NAMES and loaded.memory_model_id == "f" * 64
    assert loaded.policy.options == saved.policy.options and not loaded.policy.training
    actions = []
    for one in (saved, loaded):
        runner = LerobotRunner(one)
        runner.reset()
        torch.manual_seed(4)
        actions.append(np.stack([runner.act(Seen(t), Seen(t)) for t in range(6)]))
    assert np.array_equal(*actions)

    classes = lerobot("lerobot.policies.factory").get_policy_class(family)
    alone = classes.from_pretrained(tmp_path / "lerobot")
    plain = []
    for base in (alone, saved.policy.base):
        base.reset()
        torch.manual_seed(4)
        plain.append(base.select_action(tick(1, 0)))
    assert torch.equal(*plain) and plain[0].shape == (1, ACTIONS)


def test_inputs_and_outputs_go_through_lerobots_processors() -> None:
    ours = checkpoint("act")
    seen = Seen(0)
    batch = {"observation.state": (torch.from_numpy(seen.state).float()[None] - MEAN) / STD}
    for name, image in seen.images.items():
        pixels = torch.from_numpy(image).permute(2, 0, 1).float()[None] / 255
        batch[f"observation.images.{name}"] = (pixels - 0.5) / 0.25
    batch |= memory_batch(readout(1, 0))
    normal = ours.policy.predict_action_chunk(batch)[0, 0]
    ours.policy.reset()
    acted = torch.from_numpy(LerobotRunner(ours).act(seen, seen))
    torch.testing.assert_close(acted, normal * STD + MEAN, rtol=1e-4, atol=1e-4)


def test_a_trained_base_is_saved_with_its_memory(tmp_path: Path) -> None:
    ours = checkpoint("act", frozen=False)
    before = copy.deepcopy(ours.policy.base.state_dict())
    ours.policy.base.model.action_head.weight.data.add_(1.0)
    lerobot_files.save(tmp_path, ours)
    loaded = lerobot_files.load(tmp_path).policy.base.state_dict()
    changed = {name for name, value in loaded.items() if not torch.equal(value, before[name])}
    assert changed == {"model.action_head.weight"}


def test_a_folder_whose_parts_do_not_belong_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LerobotCheckpointError, match="is not a LeRobot policy with a memory"):
        lerobot_files.load(tmp_path)
    lerobot_files.save(tmp_path, checkpoint("act"))
    config = tmp_path / "adapter.yaml"
    good = config.read_text()
    values = yaml.safe_load(good)
    config.write_text(yaml.safe_dump({k: v for k, v in values.items() if k != "memory"}))
    with pytest.raises(LerobotCheckpointError, match="lacks memory; copy the whole folder again"):
        lerobot_files.load(tmp_path)
    config.write_text(yaml.safe_dump(values | {"memory": {**values["memory"], "hidden": 4}}))
    with pytest.raises(LerobotCheckpointError, match=r"does not fit adapter\.yaml"):
        lerobot_files.load(tmp_path)
    config.write_text(good)
    weights = tmp_path / "lerobot" / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b" ")
    with pytest.raises(LerobotCheckpointError, match="base_sha256 is"):
        lerobot_files.load(tmp_path)


def test_a_checkpoint_names_a_lerobot_policy_and_is_bound_to_it(tmp_path: Path) -> None:
    ours = checkpoint("act")
    lerobot_files.save(tmp_path / "policy", ours)
    options = options_of(tmp_path / "policy")
    run = family("lerobot").load
    acting = run(options, {})
    assert acting.action_names == NAMES and acting.condition == SHAPE
    assert np.array_equal(acting.act(Seen(0), Seen(0)), LerobotRunner(ours).act(Seen(0), Seen(0)))
    with pytest.raises(ValueError, match="lack base_sha256"):
        run({key: value for key, value in options.items() if key != "base_sha256"}, {})
    with torch.no_grad():
        ours.policy.adapter.gate.add_(1.0)
    lerobot_files.save(tmp_path / "policy", ours)
    with pytest.raises(ValueError, match=f"this checkpoint was written for {options['adapter_sha256']}"):
        run(options, {})


def test_action_names_must_be_as_many_as_actions(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 action names"):
        lerobot_files.save(tmp_path, replace(checkpoint("act"), action_names=NAMES[:2]))


def test_what_a_policy_cannot_look_at_is_refused_naming_both_sides() -> None:
    runner, seen = LerobotRunner(checkpoint("act")), Seen(0)
    seen.images = {"left": seen.images["left"]}
    with pytest.raises(ValueError, match=r"looks at observation\.images\.right, the observation has the cameras left"):
        runner.act(seen, seen)
    seen = Seen(0)
    seen.images["left"] = seen.images["left"][:-1]
    with pytest.raises(ValueError, match=r"takes \(3, 48, 48\), the observation's image is \(47, 48, 3\)"):
        runner.act(seen, seen)
    seen = Seen(0)
    seen.tokens = seen.tokens[:-1]
    with pytest.raises(ConditionMismatch, match=f"{SHAPE.tokens} tokens of {SHAPE.width}"):
        runner.act(seen, seen)


def test_a_policy_that_was_trained_on_a_gpu_runs_and_is_begun_from_on_a_cpu(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU, and the policy runs on it")
    lerobot_files.save(tmp_path, checkpoint("act"))
    for name in ("config.json", "policy_preprocessor.json"):
        file = tmp_path / "lerobot" / name
        there = file.read_text().replace('"device": "cpu"', '"device": "cuda"')
        assert there != file.read_text()
        file.write_text(there)
    loaded = lerobot_files.load(tmp_path)
    assert np.isfinite(LerobotRunner(loaded).act(Seen(0), Seen(0))).all()
    sizes = dict(cameras=CAMERAS, action_names=NAMES, state=STATE, image_px=SIDE, chunk=6)
    begun = building.begin(LerobotConfig(**sizes, base=str(tmp_path / "lerobot")))  # type: ignore[arg-type]
    assert begun.statistics is not None and begun.statistics["observation.state"]["mean"] == [MEAN] * STATE


def test_what_does_not_fit_a_policy_that_was_trained_here_is_named() -> None:
    sizes = dict(cameras=CAMERAS, action_names=NAMES, state=STATE, image_px=SIDE, chunk=4)
    shape = dict(memory_tokens=2, memory_width=4, memory_address=3)
    module = BuiltChunks(LerobotConfig(**sizes, **shape, lerobot=SMALL["act"] | {"chunk_size": 4}))  # type: ignore[arg-type]
    options, tensors = module.config.to_dict(), module.state_dict()
    assert family("lerobot").load(options, tensors).action_names == NAMES
    lacking = {name: tensor for name, tensor in tensors.items() if name != "state_mean"}
    with pytest.raises(ValueError, match=r"(?s)tensors do not fit.*state_mean"):
        family("lerobot").load(options, lacking)
    with pytest.raises(ValueError, match="sharpness"):
        family("lerobot").load({**options, "sharpness": 2}, tensors)
