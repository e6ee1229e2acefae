"""Tiny vision-language-action policies of LeRobot with random weights, built from local configurations alone."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from policies.lerobot_examples import ACTIONS, STATE, features
from torch import Tensor, nn

transformers = pytest.importorskip("transformers", reason="vision-language-action policies need transformers")

from trace_memory_ros.policies.lerobot.install import lerobot  # noqa: E402

WIDTH, VOCABULARY, WORDS, CHUNK, PIXELS = 32, 24, 5, 4, 16
FAMILIES = ("smolvla", "pi0", "pi05")
_TEXT = dict(
    hidden_size=WIDTH,
    intermediate_size=48,
    num_hidden_layers=2,
    num_key_value_heads=2,
    vocab_size=VOCABULARY,
    pad_token_id=0,
)
_EYES = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, image_size=PIXELS, patch_size=8
)
_SMALL = dict(chunk_size=CHUNK, n_action_steps=CHUNK, max_state_dim=STATE, max_action_dim=ACTIONS, device="cpu")
_PI = dict(image_resolution=(PIXELS, PIXELS), num_inference_steps=3)
_MORE: dict[str, dict[str, Any]] = {
    "smolvla": dict(num_vlm_layers=2, resize_imgs_with_padding=(PIXELS, PIXELS), num_steps=3),
    "pi0": _PI,
    "pi05": _PI,
}


def vla(family: str, **options: Any) -> Any:
    """A policy of the family with weights that depend on nothing but the seed, in evaluation mode.

    pi0 and pi0.5 ask for a fork of transformers whose Gemma norms take a condition; a stand-in of these norms is put
    into the transformers at hand while this runs and stays, which changes no Gemma that is called without a condition.
    """
    with built_small(family):
        torch.manual_seed(0)
        config, policy = (_smolvla if family == "smolvla" else _pi)(family)
        return policy(config(**{**features(), **_SMALL, **_MORE[family], **options})).eval()


@contextmanager
def built_small(family: str) -> Iterator[None]:
    """Within, LeRobot builds policies of the family as small as these, and asks no hub."""
    with pytest.MonkeyPatch.context() as patch:
        (_small_smolvla if family == "smolvla" else _small_pi)(family, patch)
        yield


def _smolvla(_: str) -> tuple[Any, Any]:
    module = lerobot("lerobot.policies.smolvla.modeling_smolvla")
    return lerobot("lerobot.policies.smolvla.configuration_smolvla").SmolVLAConfig, module.SmolVLAPolicy


def _pi(family: str) -> tuple[Any, Any]:
    name = family.upper()
    config = getattr(lerobot(f"lerobot.policies.{family}.configuration_{family}"), f"{name}Config")
    return config, getattr(lerobot(f"lerobot.policies.{family}.modeling_{family}"), f"{name}Policy")


def _small_smolvla(_: str, patch: pytest.MonkeyPatch) -> None:
    built = lerobot("lerobot.policies.smolvla.smolvlm_with_expert")
    text = {**_TEXT, "model_type": "llama", "num_attention_heads": 4, "head_dim": 8}
    config = transformers.SmolVLMConfig(text_config=text, vision_config=_EYES, scale_factor=1)
    words = SimpleNamespace(tokenizer=SimpleNamespace(fake_image_token_id=1, global_image_token_id=2))
    patch.setattr(built, "AutoConfig", SimpleNamespace(from_pretrained=lambda _: config))
    patch.setattr(built, "AutoProcessor", SimpleNamespace(from_pretrained=lambda _: words))


def _small_pi(family: str, patch: pytest.MonkeyPatch) -> None:
    module = lerobot(f"lerobot.policies.{family}.modeling_{family}")
    forked_norms()
    patch.setattr(module, "get_gemma_config", lambda _: module.GemmaConfig(WIDTH, 2, 48, 8, 1, 8))
    patch.setattr(module, "PaliGemmaForConditionalGeneration", _shrunk(module.PaliGemmaForConditionalGeneration))
    patch.setattr(module, "GemmaForCausalLM", _shrunk(module.GemmaForCausalLM))


def _shrunk(kind: Callable[..., Any]) -> Callable[..., Any]:
    """A model class that is built small: LeRobot writes down the sizes of words and eyes."""

    def build(config: Any) -> Any:
        text = getattr(config, "text_config", config)
        text.vocab_size, text.pad_token_id = VOCABULARY, 0
        if text is not config:
            config.image_token_index = config._vocab_size = VOCABULARY
            for key, value in {**_EYES, "projection_dim": WIDTH}.items():
                setattr(config.vision_config, key, value)
        model = kind(config=config)
        if getattr(config, "use_adarms", False):
            for module in model.modules():
                if isinstance(module, type(model.model.norm)):
                    module.dense = nn.Linear(config.adarms_cond_dim, 2 * WIDTH)
        return model

    return build


def forked_norms() -> None:
    """Gemma norms that take a condition: `(normalised, gate)` where one is given, the usual tensor where none is."""
    from transformers.models.gemma import modeling_gemma as gemma
    from transformers.models.siglip import modeling_siglip

    if hasattr(gemma, "_gated_residual"):
        return
    plain, whole, none_given = gemma.GemmaRMSNorm.forward, gemma.GemmaModel.forward, object()

    def norm(self: Any, x: Tensor, cond: Any = none_given) -> Any:
        asked = cond is not none_given
        cond = cond if asked else getattr(self, "condition", None)
        out = plain(self, x)
        if hasattr(self, "dense"):
            scale, shift = self.dense(cond)[:, None].chunk(2, -1)
            out = out * (1 + scale) + shift
        return (out, None) if asked else out

    def model(self: Any, *args: Any, adarms_cond: Tensor | None = None, **kwargs: Any) -> Any:
        for module in self.modules():
            if isinstance(module, gemma.GemmaRMSNorm):
                module.condition = adarms_cond
        if kwargs.get("inputs_embeds") is None:
            return whole(self, *args, **kwargs)
        # The fork scales no embeddings, and adds nothing to a cache that it is told not to use.
        kwargs["inputs_embeds"] = kwargs["inputs_embeds"] / self.config.hidden_size**0.5
        kept = (
            kwargs.get("past_key_values") if kwargs.get("use_cache") else copy.deepcopy(kwargs.get("past_key_values"))
        )
        return whole(self, *args, **{**kwargs, "past_key_values": kept})

    gemma.GemmaRMSNorm.forward, gemma.GemmaModel.forward = norm, model
    gemma._gated_residual = lambda x, y, gate: x + y
    check = SimpleNamespace(check_whether_transformers_replace_is_installed_correctly=lambda: True)
    sys.modules["transformers.models.siglip.check"] = check  # type: ignore[assignment]
    modeling_siglip.check = check
    sys.modules["transformers.models.siglip"].check = check  # type: ignore[attr-defined]


def words(size: int) -> dict[str, Tensor]:
    """What a tokenizer gives for `size` tasks, the last word of the second being padding."""
    mask = torch.ones(size, WORDS, dtype=torch.bool)
    mask[1:2, -1] = False
    tokens = torch.arange(3, 3 + size * WORDS).view(size, WORDS) % VOCABULARY
    return {"observation.language.tokens": tokens, "observation.language.attention_mask": mask}
