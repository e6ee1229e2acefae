"""What the policy allows is what the nodes declare, no less and hardly more."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from nodes.graph import allowed, declared, read, unused
from nodes.robot import Robot

from trace_memory_ros.cli.main import main
from trace_memory_ros.nodes.permissions import CALLED, OPERATOR

ROOT = Path(__file__).resolve().parents[2]
OPTIONAL = {"/clock", "/SPACE/policy_node/dry_run/command"}
"""Used with use_sim_time, and in a dry run."""


@pytest.mark.parametrize(
    ("node", "space", "robot"), [("memory_node", "memory", "memory_robot"), ("policy_node", "policy", "policy_robot")]
)
def test_a_node_that_runs_declares_what_its_policy_allows(
    node: str, space: str, robot: str, request: pytest.FixtureRequest, checkpoints: dict[str, Path]
) -> None:
    found: Robot = request.getfixturevalue(robot)
    used = declared(found.client.node, node, space)
    rights = allowed(str(checkpoints["trace"]), node, space)
    for right, names in used.items():
        assert names <= rights[right], right
    assert unused(rights, used) <= {name.replace("SPACE", space) for name in OPTIONAL}
    assert len(used["reply"]) > 12 and len(used["subscribe"]) >= 4


def test_a_dry_run_gives_no_right_to_command(checkpoints: dict[str, Path]) -> None:
    usual, dry = (allowed(str(checkpoints["trace"]), "policy_node", "cell", dry_run) for dry_run in (False, True))
    assert unused(usual, dry) == {"/cell/command"}
    assert unused(dry, usual) == set()


def test_only_the_operator_may_call_and_every_service_of_the_nodes(checkpoints: dict[str, Path]) -> None:
    offered = {node: allowed(str(checkpoints["trace"]), node, "cell") for node in CALLED}
    assert not any(rights["request"] for rights in offered.values())
    operator = allowed(str(checkpoints["trace"]), OPERATOR, "cell")
    assert operator["request"] == set().union(*(rights["reply"] for rights in offered.values()))
    assert "/cell/policy_node/stop" in operator["publish"] & offered["policy_node"]["subscribe"]
    assert "/cell/command" not in operator["publish"]


def test_the_shipped_policy_is_what_the_command_writes(tmp_path: Path) -> None:
    assert main(["permissions", "origin_trace", "--out", str(tmp_path / "policy.xml")]) == 0
    text = (tmp_path / "policy.xml").read_text()
    assert text == (ROOT / "config" / "security" / "policy.xml").read_text()
    assert (
        main(
            [
                "permissions",
                "origin_trace",
                "--out",
                str(tmp_path / "other.xml"),
                "--streams",
                "{overhead: /front/image}",
            ]
        )
        == 0
    )
    other = ElementTree.parse(tmp_path / "other.xml").getroot()
    for node in ("memory_node", "policy_node"):
        assert "/front/image" in read(other, node)["subscribe"]
        assert "/camera/overhead/image_raw" not in read(other, node)["subscribe"]
    assert "/front/image" not in read(other, "marker_node")["subscribe"]
    assert [enclave.get("path") for enclave in other.iter("enclave")] == [
        "/memory_node",
        "/policy_node",
        "/marker_node",
        "/operator",
    ]


@pytest.mark.parametrize("namespace", ["two words", "/lab/1st", "~own", "a//b"])
def test_what_is_no_namespace_is_refused(namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "origin_trace", "--namespace", namespace]) == 1
    assert f"namespace '{namespace}': ROS takes none such" in capsys.readouterr().err
    assert main(["permissions", "origin_trace", "--namespace", "/lab/robot_1/"]) == 0


def test_a_policy_that_was_edited_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["permissions", "origin_trace", "--out", str(tmp_path / "policy.xml")]
    assert main(words) == 0 and main([*words, "--dry-run"]) == 0
    edited = (tmp_path / "policy.xml").read_text().replace("policy_node/stop", "policy_node/halt")
    (tmp_path / "policy.xml").write_text(edited)
    assert main(words) == 1
    assert "or was edited: give another file by --out" in capsys.readouterr().err
    assert (tmp_path / "policy.xml").read_text() == edited
