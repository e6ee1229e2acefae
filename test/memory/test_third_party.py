"""Memories that other packages bring, really installed into a folder of their own."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from policies.installed import install

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.testing.inputs import mechanisms

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "leaky_memory"
DIMS = MemoryDims(content=5, signature=0, width=6, slots=1)

BROKEN_SOURCE = '''
import torch
from leaky_memory import LeakyConfig, LeakyMemory
from trace_memory_ros.memory.registry import Mechanism


class FilesSeparately(LeakyMemory):
    """Its embedding is as wide as it likes, and its address another width."""

    name = "filed"
    address_width = 2

    def embed(self, x):
        return x if x.embedded is not None else x._replace(embedded=x.content.repeat_interleave(3, dim=-1))

    def read(self, x, state):
        return super().read(x, state)._replace(address=x.content[:, :2])


class Mixing(LeakyMemory):
    """Adds what the batch's other episodes saw."""

    name = "mixing"

    def write(self, x, state):
        return super().write(x._replace(content=x.content.mean(dim=0, keepdim=True).expand_as(x.content)), state)


class Misnamed(LeakyMemory):
    name = "leaky"


FILED = Mechanism(LeakyConfig, FilesSeparately)
MIXING = Mechanism(LeakyConfig, Mixing)
MISNAMED = Mechanism(LeakyConfig, Misnamed)
NOT_A_MECHANISM = LeakyMemory
'''

BROKEN_PROJECT = """
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "odd_memories"
version = "1.0.0"

[project.entry-points."trace_memory_ros.memories"]
filed = "odd_memories:FILED"
mixing = "odd_memories:MIXING"
misnamed = "odd_memories:MISNAMED"
class = "odd_memories:NOT_A_MECHANISM"
absent = "memories_of_nobody:MEMORY"

[tool.setuptools]
py-modules = ["odd_memories"]
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the example and a package of odd memories are installed to."""
    folder = tmp_path_factory.mktemp("installed")
    for name, files in {
        # Copied, since building a project leaves files beside it.
        "example": {file.name: file.read_text(encoding="utf-8") for file in EXAMPLE.iterdir() if file.is_file()},
        "odd": {"pyproject.toml": BROKEN_PROJECT, "odd_memories.py": BROKEN_SOURCE},
    }.items():
        (folder / name).mkdir()
        for file, text in files.items():
            (folder / name / file).write_text(text, encoding="utf-8")
        install(folder / "site", folder / name)
    return folder / "site"


@pytest.fixture
def installed(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(shelf)
    importlib.invalidate_caches()
    yield
    for name in ("leaky_memory", "odd_memories"):
        sys.modules.pop(name, None)


def test_good_memories_pass_the_contract_and_a_bad_one_is_found(shelf: Path, tmp_path: Path) -> None:
    """As another package's author runs the suite, on three memories at once."""
    names = ("leaky", "filed", "mixing")
    command = [sys.executable, "-m", "pytest", "-q", "-rfp", "-p", "no:cacheprovider"]
    command += ["--pyargs", "trace_memory_ros.testing", "-p", "trace_memory_ros.testing.options"]
    command += [word for name in names for word in ("--memory", name)]
    paths = filter(None, [str(shelf), str(ROOT), os.environ.get("PYTHONPATH")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    failed, passed = (
        set(re.findall(rf"^{word} .*::(\S+\])", done.stdout, re.MULTILINE)) for word in ("FAILED", "PASSED")
    )
    assert {f"test_episodes_of_a_batch_do_not_mix[mixing{behind}]" for behind in ("", "+cache", "+gate")} <= failed
    assert all("[mixing" in test for test in failed), done.stdout
    of = {name: {test for test in passed | failed if f"[{name}" in test or f"-{name}" in test} for name in names}
    assert len(of["leaky"]) == len(of["filed"]) == len(of["mixing"]) > 30
    assert len(passed | failed) == sum(map(len, of.values()))


def test_without_a_name_every_known_memory_is_tested(installed: None) -> None:
    bare, behind = mechanisms(None)
    assert {"leaky", "filed", "trace", "prism"} <= set(bare) == set(registry.names())
    assert behind == [f"{name}+gate" for name in bare]
    assert mechanisms(["leaky+gate", "leaky"]) == (["leaky"], ["leaky+gate"])


def test_a_memory_of_an_installed_package_is_known_by_name(installed: None) -> None:
    assert {"leaky", "filed", "trace"} <= set(registry.names())
    memory = registry.build("leaky", DIMS, {"keep": 0.5})
    described = registry.config_of(memory)
    assert described["options"] == {"keep": 0.5}
    rebuilt = registry.from_config(described)
    rebuilt.load_state_dict(memory.state_dict())
    x = torch.ones(1, 5)
    assert torch.equal(rebuilt.seen(x), memory.seen(x))
    assert registry.build("leaky+gate", DIMS).name == "leaky+gate"
    with pytest.raises(ValueError, match=r"options of memory mechanism 'leaky': unknown key 'kep'.*'keep'"):
        registry.build("leaky", DIMS, {"kep": 0.5})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", r"'absent' of odd_memories cannot be imported from memories_of_nobody:MEMORY.*No module named"),
        ("class", r"'class' of odd_memories: odd_memories:NOT_A_MECHANISM is a type, but must be a .*Mechanism"),
        ("misnamed", r"'misnamed' calls itself 'leaky'.*let Misnamed.name be 'misnamed'"),
        ("leeky", r"'leeky' is unknown: did you mean 'leaky'\?.*entry point of the group trace_memory_ros.memories"),
    ],
)
def test_a_broken_package_is_named(installed: None, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        registry.build(name, DIMS)


def test_the_example_stays_short() -> None:
    assert len((EXAMPLE / "leaky_memory.py").read_text(encoding="utf-8").splitlines()) <= 50
