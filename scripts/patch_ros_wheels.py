"""Point the ROS wheels' CMake files at this interpreter's headers.

The wheels were built in an image whose Python lived under `/opt/python`, and their exported CMake
targets still name its include folders. Running this twice changes nothing.
"""

import re
import sys
import sysconfig
from pathlib import Path

import numpy as np

STALE_NUMPY = re.compile(r"/opt/python/cp3\d+-cp3\d+/lib/python3\.\d+/site-packages/numpy/_?core/include")
STALE_PYTHON = re.compile(r"/opt/python/cp3\d+-cp3\d+/include/python3\.\d+")


def main() -> int:
    """Rewrite every stale path under `<sys.prefix>/share`; returns an exit status."""
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        print(f"{include}/Python.h is missing: install Python's headers (Debian: apt-get install python3-dev)")
        return 1
    patched = 0
    for file in Path(sys.prefix, "share").rglob("*.cmake"):
        text = file.read_text(encoding="utf-8")
        fresh = STALE_NUMPY.sub(lambda _: np.get_include(), text)
        fresh = STALE_PYTHON.sub(lambda _: str(include), fresh)
        if fresh != text:
            file.write_text(fresh, encoding="utf-8")
            patched += 1
    print(f"{patched} CMake files patched")
    return 0


if __name__ == "__main__":
    sys.exit(main())
