"""Compiles the native library in place, for a checkout that is used without being installed.

    python tools/build_native.py [--into FOLDER] [--flags "-O1 -g"]

Exits with 0 and says so where there is no compiler: everything works without it, slower.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

NATIVE = Path(__file__).resolve().parent.parent / "nvprof_tools" / "native"
SOURCES = sorted(NATIVE.rglob("*.cpp"))
NAME = "libnvprof_native.so"
FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
)


def compiler() -> str | None:
    """The C++ compiler: ``$CXX``, else the first usual one."""
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        found = shutil.which(name)
        if found is not None:
            return found
        if name == os.environ.get("CXX"):
            return None
    return None


def unit() -> str:
    """All sources as one unit: the library headers they share are then read once."""
    return "".join(f'#include "{source}"\n' for source in SOURCES)


def build(into: Path, extra: tuple[str, ...] = ()) -> Path | None:
    """The library in ``into``; None where there is no compiler.

    :raises subprocess.CalledProcessError: the compiler refuses the sources.
    """
    found = compiler()
    if found is None:
        return None
    target = into / NAME
    fresh = into / f".{NAME}.{os.getpid()}"
    subprocess.run(
        [found, *FLAGS, *extra, "-shared", "-x", "c++", "-", "-o", str(fresh)], check=True, input=unit().encode()
    )
    fresh.replace(target)
    return target


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=NATIVE)
    parser.add_argument("--flags", default="", help="more compiler flags, in one string")
    options = parser.parse_args()
    built = build(options.into, tuple(shlex.split(options.flags)))
    sys.stdout.write(
        "no C++ compiler: everything works without the library, slower\n"
        if built is None
        else f"{built.name} is built\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
