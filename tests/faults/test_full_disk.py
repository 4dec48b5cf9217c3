"""Write number 1, 2, 3 … fails until one run succeeds: the old output or the new one is there, nothing else."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.commands import OUTPUTS, arguments, state

ROOT = Path(__file__).resolve().parents[2]
EACH = bool(os.environ.get("FAULT_EACH"))
"""Every write number, however many there are."""
ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT)

FAILING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>
/* Fails the Nth write, pwrite, writev or fsync of a file below FAULT_ROOT with FAULT_ERRNO. */
static long left = -1;
static int wrong(int fd) {
    char link[64], path[4096];
    const char *root = getenv("FAULT_ROOT");
    if (!root) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    if (strncmp(path, root, strlen(root)) != 0) return 0;
    if (left < 0) left = atol(getenv("FAULT_NUMBER"));
    if (__sync_sub_and_fetch(&left, 1) != 0) return 0;
    left = 1L << 40;
    FILE *told = fopen(getenv("FAULT_TOLD"), "w");
    if (told) fclose(told);
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}
#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
ssize_t write(int fd, const void *b, size_t n) { REAL(write); return wrong(fd) ? -1 : real(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { REAL(pwrite); return wrong(fd) ? -1 : real(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) {
    REAL(pwrite64);
    return wrong(fd) ? -1 : real(fd, b, n, o);
}
ssize_t writev(int fd, const struct iovec *v, int n) { REAL(writev); return wrong(fd) ? -1 : real(fd, v, n); }
int fsync(int fd) { REAL(fsync); return wrong(fd) ? -1 : real(fd); }
"""

RUNNER = """
import os, sys
sys.path[:0] = {paths!r}
from nvprof_tools.cli.main import run
import nvprof_tools.report.html, nvprof_tools.golden.record, pyarrow.parquet
argv = {argv!r}
# Forked once a write number: what is imported is imported once.
results = []
number, errors = 1, {errors!r}
while True:
    error = errors[number % len(errors)]
    child = os.fork()
    if child == 0:
        os.environ.update(FAULT_NUMBER=str(number), FAULT_ERRNO=str(error))
        os.environ["FAULT_ROOT"] = {root!r}
        os._exit(run(argv))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    from tests.faults.commands import state
    from pathlib import Path
    hit = os.path.exists({told!r})
    if hit:
        os.unlink({told!r})
    target = Path({target!r})
    print(error, number, code, int(hit), state(target), ",".join(sorted(p.name for p in target.parent.iterdir())))
    if not hit:
        break
    # Parquet makes hundreds of small writes: after the first ones, in growing steps.
    number += 1 if {each} or number < 3 else number
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library to preload that fails a chosen write below a chosen directory, whoever makes it: Python or Arrow."""
    folder = tmp_path_factory.mktemp("fault")
    (folder / "fault.c").write_text(FAILING)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", str(folder / "fault.so"), str(folder / "fault.c"), "-ldl"], check=True
    )
    return folder / "fault.so"


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_write_may_fail(name: str, library: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    target = place / name
    if name in {"tables", "golden"}:
        target.mkdir()
        (target / "old").write_bytes(b"what was there")
    else:
        target.write_bytes(b"what was there")
    old = state(target)
    program = RUNNER.format(
        paths=[str(ROOT), str(ROOT / "tests")], argv=arguments(target), errors=ERRORS, each=EACH, root=str(place),
        told=str(tmp_path / "told"), target=str(target),
    )  # fmt: skip
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAULT_TOLD": str(tmp_path / "told")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit() and len(line.split()) == 6]
    new = rows[-1][4]
    failures = successes = 0
    for error, number, code, hit, found, beside in rows:
        case = f"{name} error {error} write {number}"
        assert beside == name, case
        if hit == "1" and code != "0":
            assert int(code) == 3, case
            assert found in {old, new}, case
            failures += 1
        else:
            assert code == "0", case
            assert found == new != old, case
            successes += 1
    assert failures >= 2, rows
    assert successes >= 1
    said = [line for line in done.stderr.splitlines() if line.startswith("error[")]
    assert len(said) == failures
    assert {line.split("]")[0] for line in said} <= {"error[output-disk-full", "error[output-unwritable"}
    assert "Traceback" not in done.stderr


def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    """The kernel's own refusal, not an injected one."""

    def capped() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    target = tmp_path / "report.html"
    program = [sys.executable, "-c", "from nvprof_tools.cli.main import main; main()", *arguments(target)]
    done = subprocess.run(program, cwd=ROOT, preexec_fn=capped, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.split("]")[0]) == (3, "error[output-disk-full")
    assert list(tmp_path.iterdir()) == []


def test_the_fault_is_seen_by_plain_c_too(library: Path) -> None:
    """The harness itself: it loads, and does nothing where it is not asked to."""
    assert ctypes.CDLL(str(library)).fsync is not None
