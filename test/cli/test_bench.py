"""`trace-memory bench`: runs the studies of a checkout, and says where they are where only the package is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trace_memory_ros.cli import bench
from trace_memory_ros.cli.main import main
from trace_memory_ros.measure.summary import read_summary

STUDY = '''"""How loud an echo is."""


def add_options(parser):
    parser.add_argument("--words", type=int, default=1)


def run(out_dir, quick, words):
    return {"words": words, "quick": quick}


def tables(figures):
    yield f"{figures['words']} words were said"
'''
COMMAND = "import sys; from trace_memory_ros.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that holds the package and no studies, as an installation does."""
    package = Path(bench.__file__).parents[1]
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def trace_memory(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the package in `root`, from a folder where nothing else can be imported."""
    elsewhere = root / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        cwd=elsewhere,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )


def test_an_installed_package_says_where_the_studies_are(installed: Path) -> None:
    refused = trace_memory(installed, "bench", "signature", "--quick")
    assert refused.returncode == 1
    assert refused.stderr.startswith("trace-memory bench: signature: studies are not installed with the package")
    assert "a checkout of trace_memory_ros" in refused.stderr
    explained = trace_memory(installed, "bench", "--help")
    assert explained.returncode == 0
    assert "a checkout of trace_memory_ros" in explained.stdout


def test_a_checkout_runs_its_studies(installed: Path) -> None:
    checkout = Path(bench.__file__).parents[2]
    shutil.copytree(checkout / "studies", installed / "studies", ignore=shutil.ignore_patterns("[a-z]*/"))
    (installed / "studies" / "echo_back").mkdir()
    (installed / "studies" / "echo_back" / "__init__.py").touch()
    (installed / "studies" / "echo_back" / "study.py").write_text(STUDY, encoding="utf-8")
    done = trace_memory(installed, "bench", "echo-back", "--quick", "--words", "3", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "3 words were said" in done.stdout
    summary = read_summary(installed / "elsewhere" / "out")
    assert summary.figures == {"words": 3, "quick": True}
    assert summary.command == "trace-memory bench echo-back --quick --words 3 --out out"


def test_an_unknown_study_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "telepathy"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("trace-memory bench: 'telepathy' is no study of ")
    assert "memory-modules, memory-sequence" in error
