"""The native parts of the package: a short list, each built where its needs are met and left out with a note where not.

``pip install .`` never fails for lack of a compiler or a header. What was built, and why something was not, goes into
``nvtx_markers/_native_build.json``, which ``nvprof-tools doctor`` shows. ``NVPROF_TOOLS_NO_NATIVE=1`` leaves all out.

To add a part, add one entry to ``NATIVE``: a ``Native`` whose ``file_name`` is None is an ordinary extension module.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NOTE = "nvtx_markers/_native_build.json"


class NotHere(Exception):
    """A need of a native part is not met; the text says which."""


def nvtx_headers() -> Path:
    """The folder that holds ``nvtx3/nvToolsExt.h``: a CUDA toolkit's, or the ``nvidia-nvtx`` package's."""
    named = [os.environ.get(name, "") for name in ("NVTX_INCLUDE", "CUDA_HOME", "CUDA_PATH")]
    places = [Path(named[0])] if named[0] else []
    places += [Path(home) / "include" for home in (*named[1:], "/usr/local/cuda", "/opt/cuda") if home]
    nvcc = shutil.which("nvcc")
    if nvcc:
        places.append(Path(nvcc).resolve().parent.parent / "include")
    for entry in sys.path:
        places += sorted(Path(entry or ".").glob("nvidia/*/include"))
    places.append(Path("/usr/include"))
    for place in places:
        if (place / "nvtx3" / "nvToolsExt.h").is_file():
            return place
    raise NotHere("no NVTX v3 headers: install the CUDA toolkit or nvidia-nvtx, or set NVTX_INCLUDE")


def _headers(file: str, named: str, below: tuple[str, ...], missing: str) -> Path:
    """The folder of ``file``: where the variable ``named`` says, a CUDA toolkit's, or an ``nvidia`` package's."""
    places = [Path(os.environ[named])] if os.environ.get(named) else []
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda", "/opt/cuda"]
    nvcc = shutil.which("nvcc")
    homes += [str(Path(nvcc).resolve().parent.parent)] if nvcc else []
    places += [Path(home) / folder for home in homes if home for folder in below]
    for entry in sys.path:
        places += sorted(Path(entry or ".").glob("nvidia/*/include"))
    for place in places:
        if (place / file).is_file():
            return place
    raise NotHere(missing)


def cupti_headers() -> Path:
    """The folder that holds ``cupti.h``."""
    missing = "no CUPTI headers: install the CUDA toolkit or nvidia-cuda-cupti, or set CUPTI_INCLUDE"
    return _headers("cupti.h", "CUPTI_INCLUDE", ("extras/CUPTI/include", "include"), missing)


def cuda_headers() -> Path:
    """The folder that holds ``cuda.h``, which CUPTI's headers include."""
    missing = "no CUDA headers: install the CUDA toolkit or nvidia-cuda-runtime, or set CUDA_HOME"
    return _headers("cuda.h", "CUDA_INCLUDE", ("include",), missing)


def glibc_linux() -> None:
    """Preloaded and injected libraries are for Linux with the GNU C library."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        raise NotHere("only on Linux with glibc")


class Native(Extension):
    """A native part.

    :param file_name: the file's own name for a plain shared library, or None for a Python extension module.
    :param needs: called before building; each returns an include folder or None, or raises :class:`NotHere`.
    """

    def __init__(
        self,
        name: str,
        sources: list[str],
        *,
        file_name: str | None = None,
        needs: Iterable[Callable[[], Path | None]] = (),
        **options: Any,
    ) -> None:
        super().__init__(name, sources, optional=True, **options)
        self.file_name = file_name
        self.needs = tuple(needs)


NATIVE = [
    Native(
        "nvtx_markers.libnvtx_markers_preload",
        sorted(str(path) for path in Path("nvtx_markers/native").glob("*.c")),
        file_name="libnvtx_markers_preload.so",
        needs=(glibc_linux, nvtx_headers),
        depends=[
            *sorted(str(path) for path in Path("nvtx_markers/native").glob("*.h")),
            "nvtx_markers/include/nvtx_markers_abi.h",
        ],
        # Frames that can be unwound, and no guesses about printf and fwrite: the library defines them.
        extra_compile_args=[
            *("-std=gnu11", "-O2", "-g0", "-fvisibility=hidden"),
            *("-fexceptions", "-fno-builtin", "-U_FORTIFY_SOURCE"),
        ],
        # Bound at load: nothing is looked up in the middle of a lock wait.
        extra_link_args=["-Wl,-z,nodelete", "-Wl,-z,now"],
        libraries=["dl", "pthread"] if sys.platform == "linux" else [],
    ),
    Native(
        "nvprof_tools.native.libnvprof_native",
        sorted(str(path) for path in Path("nvprof_tools/native").rglob("*.cpp")),
        file_name="libnvprof_native.so",
        depends=sorted(str(path) for path in Path("nvprof_tools/native").rglob("*.h")),
        language="c++",
        extra_compile_args=["-std=c++17", "-O2", "-g0", "-fvisibility=hidden", "-pthread"],
        extra_link_args=["-pthread"],
    ),
    Native(
        "nvprof_tools.native_collector.libnvprof_collector",
        sorted(str(path) for path in Path("nvprof_tools/native_collector").glob("*.cpp")),
        file_name="libnvprof_collector.so",
        needs=(glibc_linux, cupti_headers, cuda_headers, nvtx_headers),
        depends=sorted(str(path) for path in Path("nvprof_tools/native_collector").glob("*.h")),
        language="c++",
        extra_compile_args=["-std=c++17", "-O2", "-g0", "-fvisibility=hidden", "-pthread"],
        # Never unloaded: threads of the program may be inside at any time.
        extra_link_args=["-pthread", "-Wl,-z,nodelete", "-Wl,-z,now"],
        libraries=["dl"] if sys.platform == "linux" else [],
    ),
]  # fmt: skip


class BuildNative(build_ext):
    """Builds what can be built here and writes down the rest."""

    def get_ext_filename(self, fullname: str) -> str:
        """Plain shared libraries keep their own name."""
        for native in NATIVE:
            if native.file_name is not None and fullname in {native.name, native.name.rpartition(".")[2]}:
                folder = native.name.rpartition(".")[0].replace(".", "/") if "." in fullname else ""
                return str(Path(folder) / native.file_name)
        return str(super().get_ext_filename(fullname))

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Only extension modules export an initialiser."""
        return [] if getattr(ext, "file_name", None) else list(super().get_export_symbols(ext))

    def run(self) -> None:
        self.said: dict[str, str] = {}
        if os.environ.get("NVPROF_TOOLS_NO_NATIVE"):
            self.said = {
                native.file_name or native.name: "left out: NVPROF_TOOLS_NO_NATIVE is set" for native in NATIVE
            }
            self.extensions: list[Extension] = []
        else:
            super().run()
        target = Path(NOTE) if self.inplace or self.editable_mode else Path(self.build_lib) / NOTE
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(self.said, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def build_extension(self, ext: Extension) -> None:
        label = getattr(ext, "file_name", None) or ext.name
        try:
            ext.include_dirs += [str(path) for need in getattr(ext, "needs", ()) if (path := need()) is not None]
            super().build_extension(ext)
        except NotHere as missing:
            self.said[label] = f"not built: {missing}"
        except Exception as error:  # whatever a compiler or its absence may raise: the package goes on without
            self.said[label] = f"not built: the C compiler failed or is missing ({type(error).__name__})"
            self.announce(f"{label}: {error}", level=3)
        else:
            self.said[label] = "built"

    def get_outputs(self) -> list[str]:
        """What is there, and the note."""
        made = [path for path in super().get_outputs() if Path(path).exists()]
        return [*made, *([] if self.inplace else [str(Path(self.build_lib) / NOTE)])]


def build_needs() -> list[str]:
    """NVTX's headers as a build requirement, where no toolkit has them."""
    if os.environ.get("NVPROF_TOOLS_NO_NATIVE") or sys.platform != "linux":
        return []
    try:
        nvtx_headers()
    except NotHere:
        return ["nvidia-nvtx"]
    return []


setup(ext_modules=NATIVE, cmdclass={"build_ext": BuildNative}, setup_requires=build_needs())
