"""Mechanisms by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryDims
from trace_memory_ros.memory.none import NoneMemory

DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)


def test_names() -> None:
    assert {"trace", "gru", "none"} <= set(registry.names())


def test_unknown_name_names_the_closest() -> None:
    with pytest.raises(ValueError, match=r"'trcae' is unknown: did you mean 'trace'\? Known are .*gru.*trace"):
        registry.build("trcae", DIMS)


def test_unknown_option_names_the_closest() -> None:
    with pytest.raises(ValueError, match=r"mechanism 'trace': unknown key 'temprature'.*did you mean 'temperature'\?"):
        registry.build("trace", DIMS, {"temprature": 1.0})
    with pytest.raises(ValueError, match=r"memory mechanism 'none': unknown key 'depth'; there is none to choose"):
        registry.build("none", DIMS, {"depth": 2})


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("gru", {"hidden": 64.0}, r"'gru': hidden = 64\.0: must be an integer"),
        ("aura", {"ib_weight": "1e-3"}, r"'aura': ib_weight = '1e-3': must be a number"),
        ("aura", {"action_ib": "off"}, r"'aura': action_ib = 'off': must be a truth value"),
        ("prism", {"width": "wide"}, r"'prism': width = 'wide': must be an integer or null"),
        ("lru", {"decay": None}, r"'lru': decay = None: must be a number"),
        ("last_k", {"frames": True}, r"'last_k': frames = True: must be an integer"),
        ("gru+gate", {"writes_per_s": "fast"}, r"'gru\+gate': writes_per_s = 'fast': must be a number or null"),
        ("gru+cache+gate", {"inner": {"window": 9.5}}, r"'gru\+cache': window = 9\.5: must be an integer"),
        ("gru+gate", {"inner": "hidden"}, r"'gru\+gate': inner = 'hidden': must be a mapping of the options of gru"),
        ("gru+cache+gate", {"inner": {"inner": 3}}, r"'gru\+cache': inner = 3: must be a mapping of the options of"),
        ("gru+cache", {"inner": []}, r"'gru\+cache': inner = \[\]: must be a mapping of the options of gru"),
    ],
)
def test_an_option_of_another_type_is_named(name: str, options: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        registry.build(name, DIMS, options)


def test_whole_numbers_and_null_stand_where_they_may() -> None:
    registry.build("aura", DIMS, {"temperature": 1, "encoder_hidden": None})
    registry.build("gru+gate", DIMS, {"writes_per_s": None, "write_weight": 2})
    registry.build("lru", DIMS, {"match_slope": 4, "match_bias": 0, "sharpness": 10})


def test_an_option_that_has_no_default_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Config:
        keep: float

    monkeypatch.setitem(registry._MECHANISMS, "mine", registry.Mechanism(Config, NoneMemory))
    with pytest.raises(ValueError, match=r"options of memory mechanism 'mine': key 'keep' is missing; add it"):
        registry.build("mine", DIMS)


def test_an_incomplete_configuration_is_refused() -> None:
    config = registry.config_of(registry.build("gru", DIMS))
    with pytest.raises(ValueError, match="lacks dims"):
        registry.from_config({key: value for key, value in config.items() if key != "dims"})
    with pytest.raises(ValueError, match=r"memory dims are \['content'\]"):
        registry.from_config({**config, "dims": {"content": 5}})


def test_third_parties_can_register(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class EchoConfig:
        volume: int = 1

    class EchoMemory(NoneMemory):
        name = "echo"

        def __init__(self, dims: MemoryDims, config: EchoConfig) -> None:
            Memory.__init__(self, dims, config)

    monkeypatch.setattr(registry, "_MECHANISMS", dict(registry._MECHANISMS))
    registry.register("echo", EchoConfig, EchoMemory)
    assert registry.config_of(registry.build("echo", DIMS, {"volume": 2}))["options"] == {"volume": 2}
    with pytest.raises(ValueError, match="'echo' is registered already"):
        registry.register("echo", EchoConfig, EchoMemory)


@pytest.mark.parametrize("field", ["content", "width", "slots"])
def test_impossible_sizes_are_named(field: str) -> None:
    sizes = {"content": 1, "signature": 0, "width": 1, "slots": 1, field: 0}
    with pytest.raises(ValueError, match=f"MemoryDims.{field} = 0"):
        MemoryDims(**sizes)
