"""A Vulkan driver that renders on the CPU: Mesa's, of Debian's backports, unpacked into a folder beside the system."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from studies.worlds.environment import STAMP, Unavailable, call

RELEASE = "bookworm"
NEWER = (
    f"mesa-vulkan-drivers/{RELEASE}-backports",
    f"libdrm2/{RELEASE}-backports",
    f"libdrm-amdgpu1/{RELEASE}-backports",
)
"""From the backports: Debian 12's own Mesa is too old."""
ALWAYS = (*NEWER, "libvulkan1")
TIMEOUT_S = 600
_APT = """\
Dir::Etc::SourceList "{folder}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{folder}/lists";
Dir::Cache "{folder}/cache";
APT::Sandbox::User "root";
"""


def variables(folder: Path) -> dict[str, str]:
    """Environment variables with which a process finds the driver; it is unpacked below `folder` where it is not yet.

    Empty where `VK_ICD_FILENAMES` names a driver already. Raises `Unavailable`.
    """
    if "VK_ICD_FILENAMES" in os.environ:
        return {}
    folder = folder.absolute()
    root = folder / "root"
    if not (folder / STAMP).exists():
        _unpack(folder, root)
        (folder / STAMP).write_text("\n".join(ALWAYS), encoding="utf-8")
    drivers = sorted(root.glob("usr/share/vulkan/icd.d/lvp_icd*.json"))
    libraries = sorted({str(library.parent) for library in root.rglob("*.so*")})
    if not drivers:
        raise Unavailable(f"no CPU driver in what was unpacked in {folder}: remove it and run the command again")
    return {"VK_ICD_FILENAMES": str(drivers[0]), "LD_LIBRARY_PATH": ":".join(libraries)}


def _unpack(folder: Path, root: Path) -> None:
    """Download what is needed and not installed, and unpack it; nothing of the system is changed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise Unavailable(
            "no Vulkan driver for CPUs: this system has no apt-get to take Mesa's from; install Mesa 25 or newer with "
            "lavapipe and set VK_ICD_FILENAMES to its lvp_icd file"
        )
    shutil.rmtree(folder, ignore_errors=True)
    for part in (folder / "lists" / "partial", folder / "cache" / "archives" / "partial", folder / "packages", root):
        part.mkdir(parents=True)
    mirror = _mirror()
    (folder / "sources.list").write_text(
        "".join(f"deb {mirror} {suite} main\n" for suite in (RELEASE, f"{RELEASE}-backports")), encoding="utf-8"
    )
    (folder / "apt.conf").write_text(_APT.format(folder=folder), encoding="utf-8")
    _call(["apt-get", "update", "-q"], folder)
    wanted, known = list(ALWAYS), {name.partition("/")[0] for name in ALWAYS}
    while wanted:
        name = wanted.pop()
        _call(["apt-get", "download", "-q", name], folder)
        (package,) = (folder / "packages").glob(f"{name.partition('/')[0]}_*.deb")
        _call(["dpkg", "-x", str(package), str(root)], folder)
        missing = {other for other in _needed(package, folder) if not _installed(other)} - known
        wanted, known = [*wanted, *sorted(missing)], known | missing


def _mirror() -> str:
    """Where this system's own packages come from. Raises `Unavailable` where it is another release."""
    command = ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"]
    found = dict(line.split(maxsplit=1) for line in _call(command).splitlines() if len(line.split()) == 2)
    if RELEASE not in found:
        raise Unavailable(
            f"no Vulkan driver for CPUs: this is made for Debian {RELEASE}, and apt's sources are {sorted(found)}; "
            "install Mesa 25 or newer with lavapipe and set VK_ICD_FILENAMES to its lvp_icd file"
        )
    return found[RELEASE]


def _needed(package: Path, folder: Path) -> list[str]:
    """Names that a package depends on, the first of those that serve alike."""
    depends = _call(["dpkg", "-f", str(package), "Depends"], folder)
    return [part.split("|")[0].split()[0].partition(":")[0] for part in depends.split(",") if part.strip()]


def _installed(name: str) -> bool:
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", name], capture_output=True, text=True, check=False)
    return query.stdout.startswith("install ok")


def _call(command: list[str], folder: Path | None = None) -> str:
    failed = f"no Vulkan driver for CPUs: {' '.join(command)} failed"
    remedy = "check the connection to the package mirror and run the command again"
    if folder is None:
        return call(command, failed, remedy, TIMEOUT_S)
    return call(command, failed, remedy, TIMEOUT_S, folder / "packages", {"APT_CONFIG": str(folder / "apt.conf")})
