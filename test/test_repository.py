"""What the repository promises as a whole: small files, no unsafe loads, and names that exist."""

import ast
import re
import shutil
import subprocess
import tomllib
import xml.etree.ElementTree as ElementTree
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import trace_memory_ros

ROOT = Path(__file__).parents[1]
MIB = 2**20
KEYS = {"opencv": "opencv-python-headless", "yaml": "pyyaml"}
"""Distribution of a rosdep key `python3-KEY` that is called otherwise."""
UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "joblib", "marshal", "shelve", "cloudpickle"}
UNSAFE_CALLS = {"torch.load", "torch.save", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "eval", "exec"}


def tracked_files() -> list[Path]:
    """Files in git or about to be; a source archive without git is checked as it lies."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        skipped = {".venv", "build", "install", "log", "out", "__pycache__"}
        found = (p for p in ROOT.rglob("*") if p.is_file() and not skipped & set(p.relative_to(ROOT).parts))
        return sorted(found)
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(path for path in (ROOT / name for name in names if name) if path.is_file())


FILES = tracked_files()
PYTHON_FILES = [file for file in FILES if file.suffix == ".py"]
PACKAGE_FILES = [file for file in PYTHON_FILES if file.is_relative_to(ROOT / "trace_memory_ros")]
PAGES = [file for file in FILES if file.suffix == ".md"]


def relative(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_no_file_is_large() -> None:
    assert {relative(f): f.stat().st_size for f in FILES if f.stat().st_size > 2 * MIB} == {}


def test_weights_are_small_and_safe() -> None:
    weights = [file for file in FILES if file.is_relative_to(ROOT / "weights")]
    assert sum(file.stat().st_size for file in weights) < 8 * MIB
    assert {file.suffix for file in weights} <= {".safetensors", ".yaml", ".md", ".json"}


def unsafe_uses(source: str) -> list[str]:
    """Modules and calls in `source` that can run code hidden in data."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE_MODULES:
            found.append(node.module or "")
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            given = {k.arg: ast.unparse(k.value) for k in node.keywords}
            allows_pickle = given.get("allow_pickle", "False") != "False"
            tensors_alone = called == "torch.load" and given.get("weights_only") == "True"
            if (called in UNSAFE_CALLS and not tensors_alone) or allows_pickle:
                found.append(called)
    return found


@pytest.mark.parametrize("file", PYTHON_FILES, ids=relative)
def test_nothing_loads_unsafely(file: Path) -> None:
    assert unsafe_uses(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "torch.load(p)",
        "torch.load(p, weights_only=False)",
        "yaml.load(f)",
        "np.load(p, allow_pickle=True)",
    ],
)
def test_an_unsafe_load_is_found(source: str) -> None:
    assert len(unsafe_uses(source)) == 1


def test_launch_and_config_files_that_are_named_exist() -> None:
    named = re.compile(r"\b(?:\w+\.launch\.py|(?:config|launch)/[\w/]+\.(?:yaml|rviz|py))\b")
    sources = [f for f in FILES if f.suffix in {".md", ".py", ".yaml", ".rviz"} and "test" not in f.parts]
    existing = {relative(file) for file in FILES}
    missing = {
        f"{relative(file)}: {name}"
        for file in sources
        for name in named.findall(file.read_text(encoding="utf-8"))
        if name not in existing and f"launch/{name}" not in existing
    }
    assert missing == set()


def test_links_between_pages_lead_somewhere() -> None:
    link = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
    broken = {
        f"{relative(page)}: {target}"
        for page in PAGES
        for target in link.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    }
    assert broken == set()


def headings(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).lower() for line in lines)
    return {re.sub(r"[^\w\- ]", "", line).replace(" ", "-") for line in plain}


def test_links_to_headings_lead_somewhere() -> None:
    link = re.compile(r"\]\(([^)\s:]+\.md)?#([^)\s]+)\)")
    known = {page.resolve(): headings(page) for page in PAGES}
    broken = {
        f"{relative(page)}: {target}#{anchor}"
        for page in PAGES
        for target, anchor in link.findall(page.read_text(encoding="utf-8"))
        if anchor not in known.get((page.parent / target).resolve() if target else page.resolve(), set())
    }
    assert broken == set()


def test_every_result_is_named_by_a_page() -> None:
    told = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    results = [file.name for file in FILES if file.parent == ROOT / "docs" / "results"]
    assert results and not [name for name in results if name not in told]


def test_package_xml_agrees_with_the_code() -> None:
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    assert package.findtext("name") == trace_memory_ros.__name__
    assert package.findtext("version") == trace_memory_ros.__version__
    declared = {element.text for element in package if element.tag in {"depend", "exec_depend"}}
    source = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE_FILES)
    imported = set(re.findall(r"^\s*from (\w+)\.(?:msg|srv|action) import", source, flags=re.MULTILINE))
    assert imported - declared == {trace_memory_ros.__name__}


def test_cmake_generates_every_message_and_starts_modules_that_exist() -> None:
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    messages = sorted(name for name in map(relative, FILES) if name.startswith("msg/"))
    assert re.findall(r'"(msg/\w+\.msg)"', cmake) == messages
    nodes = re.search(r"foreach\(node ([\w ]+)\)", cmake)
    assert nodes is not None
    for node in nodes[1].split():
        module = ast.parse((ROOT / "trace_memory_ros" / "nodes" / f"{node}.py").read_text(encoding="utf-8"))
        assert "main" in {item.name for item in module.body if isinstance(item, ast.FunctionDef)}, node


def pins(name: str) -> dict[str, str]:
    """Version by normalised distribution name in `requirements/<name>.txt`; every line must pin exactly."""
    found = {}
    for line in (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", line)
            assert match is not None, f"requirements/{name}.txt: {line!r} is not an exact pin"
            found[normalised(match[1])] = match[2]
    return found


def normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


EXTRAS = ("sim", "diffusion", "video", "datasets", "vision", "timm", "ray", "tensorboard")


@pytest.mark.parametrize("name", ["core", "arrays", "dev", "peers", "ros", "colcon", *EXTRAS])
def test_requirements_are_pinned_locked_and_documented(name: str) -> None:
    wanted = pins(name)
    lock = pins("lock")
    assert {distribution: lock.get(distribution) for distribution in wanted} == wanted
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    rows = {normalised(m[1]): row for row in page.splitlines() if (m := re.match(r"\| `([\w.-]+)` \|", row))}
    undocumented = {d: v for d, v in wanted.items() if f"| {v} |" not in rows.get(d, "")}
    assert undocumented == {}


def ranges(extra: str = "") -> dict[str, Requirement]:
    """Requirements by normalised distribution name of the wheel, or of one of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {normalised(requirement.name): requirement for requirement in map(Requirement, lines)}


@pytest.mark.parametrize(
    ("extra", "files"),
    [
        ("", ("core", "arrays")),
        ("sim", ("sim",)),
        ("diffusion", ("diffusion",)),
        ("video", ("video",)),
        ("datasets", ("video", "datasets")),
        ("vision", ("vision",)),
        ("timm", ("timm",)),
        ("ray", ("ray",)),
        ("tensorboard", ("tensorboard",)),
    ],
    ids=lambda value: value or "wheel" if isinstance(value, str) else "",
)
def test_the_wheel_asks_for_ranges_that_hold_the_pins(extra: str, files: tuple[str, ...]) -> None:
    pinned = {name: version for file in files for name, version in pins(file).items()}
    wanted = ranges(extra)
    assert set(wanted) == set(pinned)
    assert {name: version for name, version in pinned.items() if version not in wanted[name].specifier} == {}
    assert [name for name, requirement in wanted.items() if "==" in str(requirement.specifier)] == []


def test_the_extra_of_lerobot_is_what_its_requirements_say() -> None:
    lines = (ROOT / "requirements" / "lerobot.txt").read_text(encoding="utf-8").splitlines()
    named = map(Requirement, (line for line in lines if line and not line.startswith("#")))
    wanted = ranges("lerobot")
    assert set(wanted) == {normalised(requirement.name) for requirement in named} | set(pins("diffusion"))
    assert {name: v for name, v in pins("diffusion").items() if v not in wanted[name].specifier} == {}


def test_the_contract_tests_run_with_the_pytest_of_the_suite() -> None:
    (pytest_range,) = ranges("testing").values()
    assert pins("dev")["pytest"] in pytest_range.specifier


def test_package_xml_says_where_every_python_package_comes_from() -> None:
    text = (ROOT / "package.xml").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    keys = {(element.text or "").removeprefix("python3-") for element in root if element.tag == "exec_depend"}
    keys = {KEYS.get(key, key) for key in keys}
    comments = {
        normalised(word) for comment in re.findall(r"<!--(.*?)-->", text, re.DOTALL) for word in comment.split()
    }
    wanted = {name for extra in ("", "sim", "diffusion", "video") for name in ranges(extra)}
    assert {name for name in wanted if name not in keys and name not in comments} == set()


def test_the_changelog_tells_of_this_version() -> None:
    lines = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8").splitlines()
    versions = [line.split()[0] for line, under in pairwise(lines) if re.fullmatch(r"-{5,}", under)]
    assert next(one for one in versions if one != "Forthcoming") == trace_memory_ros.__version__
    assert all(len(under) == len(line) for line, under in pairwise(lines) if re.fullmatch(r"-{5,}", under))


def test_set_up_installs_all_that_the_demo_tests_and_studies_import() -> None:
    script = (ROOT / "scripts" / "setup.sh").read_text(encoding="utf-8")
    installed = set(re.findall(r"-r requirements/(\w+)\.txt", script))
    extras = {"sim", "diffusion", "video", "vision", "timm"}
    assert installed == {"core", "arrays", "dev", "peers", "ros", "colcon"} | extras


def test_every_import_is_a_declared_dependency() -> None:
    extras = ("", *EXTRAS, "lerobot", "testing")
    declared = set(pins("ros")).union(*(ranges(extra) for extra in extras))
    distributions = packages_distributions()
    undeclared = set()
    for file in PACKAGE_FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in (n.split(".")[0] for n in names):
                owners = {normalised(owner) for owner in distributions.get(name, [])} - {"trace-memory-ros"}
                # What a third party runs under pytest may import pytest.
                known = declared | {"pytest"} if "testing" in file.parts else declared
                if owners and not owners & known:
                    undeclared.add(f"{relative(file)}: {name} ({', '.join(sorted(owners))})")
    assert undeclared == set()
