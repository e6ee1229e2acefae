"""Is a LeRobot policy built as the one that a memory is attached to? Names, signatures and shapes, not versions."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from torch import nn

from trace_memory_ros.policies.lerobot.install import INSTALL, lerobot
from trace_memory_ros.policies.lerobot.prefix import EXPERTS, prefix_width

TESTED = ("0.4.4",)
"""Versions of LeRobot that the tests have run with."""
_QKV = ("query", "key", "value")
_PREFIX = ("images", "img_masks")


class IncompatibleLerobot(ValueError):
    """A LeRobot policy is not built as those that a memory can be attached to; the message names what differs."""


def check_base(base: Any) -> None:
    """Raise IncompatibleLerobot naming every hooked module that is missing, or has another signature or shape.

    A version that was never tested is admitted with a warning where nothing differs.
    """
    version = lerobot().__version__
    found = differences(base)
    if found:
        raise IncompatibleLerobot(
            f"LeRobot {version} builds its {base.name} policy in another way than the one that a memory is attached "
            f"to: {'; '.join(found)}. Tested with {', '.join(TESTED)}: {INSTALL}"
        )
    if version not in TESTED:
        warnings.warn(
            f"LeRobot {version} was not tested ({', '.join(TESTED)} were). What a memory is attached to in its "
            f"{base.name} policy has the names and shapes that it should have, so it is used.",
            stacklevel=3,
        )


def differences(base: Any) -> list[str]:
    """What differs in a policy of a known family; empty where nothing does."""
    checks = {"act": _act, "diffusion": _diffusion}.get(base.name, _prefix)
    found: list[str] = []
    try:
        found.extend(checks(base))
    except _Missing as missing:
        found.append(str(missing))
    return found


class _Missing(Exception):
    """An attribute is not where it was."""


def _at(base: Any, path: str) -> Any:
    """What lies at a path of attribute names and indices. Raises _Missing naming the first part that is not there."""

    def step(owner: Any, name: str) -> Any:
        try:
            return owner[int(name)] if name.isdigit() else getattr(owner, name)
        except (AttributeError, IndexError, TypeError) as error:
            raise _Missing(f"{path} is not there ({name} is missing)") from error

    return reduce(step, path.split("."), base)


def _takes(base: Any, path: str, first: tuple[str, ...] = (), keywords: tuple[str, ...] = ()) -> Iterator[str]:
    """What is wrong with the parameters of the function at `path`."""
    function: Callable[..., Any] = _at(base, path)
    if not callable(function):
        yield f"{path} is a {type(function).__name__}, not a function"
        return
    names = tuple(inspect.signature(function).parameters)
    if names[: len(first)] != first or not set(keywords) <= set(names):
        yield f"{path} takes ({', '.join(names)}), expected ({', '.join((*first, *keywords))}) among them"


def _is(what: str, got: Any, wanted: Any) -> Iterator[str]:
    if got != wanted:
        yield f"{what} is {got}, expected {wanted}"


def _act(base: Any) -> Iterator[str]:
    width = _at(base, "config.dim_model")
    yield from _is("config.n_heads is positive", _at(base, "config.n_heads") > 0, True)
    for layers, name in (("model.encoder.layers", "self_attn"), ("model.decoder.layers", "multihead_attn")):
        for index in range(len(_at(base, layers))):
            path = f"{layers}.{index}.{name}"
            layer = _at(base, path)
            if not isinstance(layer, nn.MultiheadAttention):
                yield f"{path} is a {type(layer).__name__}, expected MultiheadAttention"
                continue
            yield from _is(f"width of {path}", layer.embed_dim, width)
            yield from _is(f"{path}.batch_first", layer.batch_first, False)
            yield from _is(f"{path}.in_proj_weight is there", layer.in_proj_weight is not None, True)
            yield from _takes(base, f"{path}.forward", _QKV)


def _diffusion(base: Any) -> Iterator[str]:
    yield from _takes(base, "diffusion.unet.forward", keywords=("global_cond",))
    from trace_memory_ros.policies.lerobot.diffusion import condition_width

    film = _at(base, "diffusion.unet.down_modules.0.0.cond_encoder.1")
    want = _at(base, "config.diffusion_step_embed_dim") + condition_width(base)
    yield from _is("input width of diffusion.unet.down_modules.0.0.cond_encoder.1", film.in_features, want)


def _prefix(base: Any) -> Iterator[str]:
    expert = f"model.{EXPERTS[base.name]}"
    yield from _takes(base, "model.embed_prefix", _PREFIX)
    yield from _takes(base, f"{expert}.forward", keywords=("attention_mask", "position_ids", "inputs_embeds"))
    if base.name == "smolvla":
        attention = ("attention_mask", "batch_size", "head_dim", "query_states", "key_states", "value_states")
        yield from _takes(base, f"{expert}.eager_attention_forward", attention)
        _at(base, f"{expert}.config.text_config.hidden_size")
        table = _at(base, f"{expert}.vlm.model.text_model.embed_tokens")
    else:
        yield from _takes(base, "model._prepare_attention_masks_4d", ("att_2d_masks",))
        _at(base, f"{expert}.paligemma.config.text_config.hidden_size")
        table = _at(base, f"{expert}.paligemma.language_model.embed_tokens")
    yield from _is(f"width of {expert}'s word embeddings", table.embedding_dim, prefix_width(base))
