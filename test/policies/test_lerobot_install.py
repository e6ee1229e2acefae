"""Without LeRobot everything else works, and what needs it says what to install."""

import sys

import pytest

from trace_memory_ros.policies.lerobot.install import LerobotMissing, lerobot


def test_a_missing_lerobot_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", sys)
    for name in [name for name in sys.modules if name.partition(".")[0] == "lerobot"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(LerobotMissing, match=r"lerobot needs lerobot, which is not installed: pip install .*lerobot>"):
        lerobot()


def test_a_policy_module_is_imported_without_lerobot() -> None:
    import trace_memory_ros.policies.lerobot.files
    import trace_memory_ros.policies.lerobot.policy
    import trace_memory_ros.policies.lerobot.runner

    assert issubclass(LerobotMissing, ValueError)
    assert trace_memory_ros.policies.lerobot.policy.FAMILIES[:2] == ("act", "diffusion")
