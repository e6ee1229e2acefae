"""Declarations, config files and the documentation say the same about every parameter."""

from pathlib import Path

import pytest
import yaml

from trace_memory_ros.arm.nodes.parameters import ArmSimNodeParameters, ControllerNodeParameters
from trace_memory_ros.nodes.markers.parameters import MarkerNodeParameters
from trace_memory_ros.nodes.memory.parameters import MemoryNodeParameters
from trace_memory_ros.nodes.parameters import review, specs, validate
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters

ROOT = Path(__file__).resolve().parents[2]
TABLES: dict[str, type] = {
    "memory_node": MemoryNodeParameters,
    "policy_node": PolicyNodeParameters,
    "marker_node": MarkerNodeParameters,
    "arm_sim_node": ArmSimNodeParameters,
    "controller_node": ControllerNodeParameters,
}
CHANGES = {"start": "at start", "configure": "unconfigured", "live": "any time"}


class Asked:
    """A parameter in a request to set it, as rclpy hands it over."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self.value = value


def documented(node: str) -> dict[str, list[str]]:
    text = (ROOT / "docs" / "nodes.md").read_text()
    section = text.split(f"\n## {node}\n", 1)[1].split("\n## ", 1)[0]
    table = section.split("| parameter |", 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0].strip("`"): row[1:] for row in rows}


@pytest.mark.parametrize("node", TABLES)
def test_config_file_states_every_parameter_with_its_default_and_a_comment(node: str) -> None:
    path = ROOT / "config" / f"{node}.yaml"
    text = path.read_text()
    given = yaml.safe_load(text)["/**"]["ros__parameters"]
    declared = {name: default for name, (default, _) in specs(TABLES[node]).items()}
    assert given == declared
    lines = text.splitlines()
    for name in declared:
        at = next(i for i, line in enumerate(lines) if line.strip().startswith(f"{name}:"))
        assert lines[at - 1].strip().startswith("#"), f"{path}: {name} has no comment"


@pytest.mark.parametrize("node", TABLES)
def test_config_file_names_the_unit_of_every_parameter_that_has_one(node: str) -> None:
    lines = (ROOT / "config" / f"{node}.yaml").read_text().splitlines()
    for name, (_, spec) in specs(TABLES[node]).items():
        at = next(i for i, line in enumerate(lines) if line.strip().startswith(f"{name}:"))
        start = at
        while lines[start - 1].strip().startswith("#"):
            start -= 1
        comment = " ".join(line.strip("# ") for line in lines[start:at])
        assert spec.description in comment
        assert spec.unit in comment
        assert spec.limits in comment


@pytest.mark.parametrize("node", TABLES)
def test_documentation_states_every_parameter(node: str) -> None:
    rows = documented(node)
    assert list(rows) == list(specs(TABLES[node]))
    for name, (default, spec) in specs(TABLES[node]).items():
        shown, unit, limits, changes, meaning = rows[name]
        assert yaml.safe_load(shown.strip("`")) == default
        assert (unit, limits, changes, meaning) == (spec.unit, spec.limits, CHANGES[spec.changes], spec.description)


@pytest.mark.parametrize("node", TABLES)
def test_defaults_are_valid_and_a_value_of_another_type_is_not(node: str) -> None:
    validate(TABLES[node]())
    with pytest.raises(ValueError, match="autostart = 1 is a int"):
        validate(TABLES[node](autostart=1))


def test_a_value_outside_its_limits_is_named() -> None:
    with pytest.raises(ValueError, match=r"input_wait_ms = -1 ms is outside 0 \.\. 10000"):
        PolicyNodeParameters(input_wait_ms=-1)


def test_a_value_of_another_type_is_named() -> None:
    with pytest.raises(ValueError, match=r"hold_ms = 2\.0 is a float"):
        PolicyNodeParameters(hold_ms=2.0)  # type: ignore[arg-type]


def test_an_unknown_choice_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="task = 'laundry' is unknown; choose one of origin, colour"):
        ArmSimNodeParameters(task="laundry")


def test_only_live_parameters_change_while_configured() -> None:
    fixed, live = Asked("checkpoint", "x"), Asked("snapshot_path", "x")
    assert review(MemoryNodeParameters, [fixed], configured=False).successful  # type: ignore[list-item]
    refusal = review(MemoryNodeParameters, [fixed], configured=True)  # type: ignore[list-item]
    assert not refusal.successful
    assert "checkpoint" in refusal.reason
    assert review(MemoryNodeParameters, [live], configured=True).successful  # type: ignore[list-item]
