"""The library's own code under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

It is compiled into the test program: sanitizers want to be the first library, and so would it. The full figure of 8
threads times a million operations is run by hand (``docs/markers.md``); here they are fewer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.conftest import NATIVE, PROGRAMS, Kit

SANITIZERS = {"address,undefined": ["-fno-sanitize-recover=undefined"], "thread": []}
CODES = {"lines": 4, "forks": 6, "exits": 9}
# What these do on purpose is a report of its own: unlock a free mutex, or another thread's; end with one locked.
NOT_UNDER = {"thread": {"kinds", "crossing", "robust"}, "address,undefined": set()}
SCENARIOS = (
    "contend",
    "kinds",
    "robust",
    "conditions",
    "crossing",
    "hammer",
    "lines",
    "signals",
    "forks",
    "exits",
    "errno",
)


@pytest.fixture(scope="session", params=list(SANITIZERS))
def sanitized(request: pytest.FixtureRequest, kit: Kit) -> tuple[str, Path]:
    """The sanitizer's name, and the scenarios with the library and it compiled in."""
    name: str = request.param
    flags = ["-std=gnu11", "-O1", "-g", "-fexceptions", "-fno-builtin", "-Wno-builtin-declaration-mismatch"]
    program = kit.folder / f"sanitized-{name.replace(',', '-')}"
    sources = [PROGRAMS / "scenario.c", *sorted(NATIVE.glob("*.c"))]
    try:
        kit.compile("gcc", program, sources, *flags, f"-fsanitize={name}", *SANITIZERS[name])
    except AssertionError as error:
        if "cannot find" not in str(error):
            raise
        pytest.skip(f"no -fsanitize={name} here")
    return name, program


@pytest.mark.parametrize("scenario_name", SCENARIOS)
def test_nothing_is_reported(kit: Kit, sanitized: tuple[str, Path], scenario_name: str) -> None:
    name, program = sanitized
    if scenario_name in NOT_UNDER[name]:
        pytest.skip("reported for what the scenario does itself")
    env = {"NVTX_MARKERS_HOLD_SYMBOLS": "gpu_mutex", "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_bugs=1"}
    run = kit.run([program, scenario_name, "4000"], preload=[], env=env)
    report = run.err.decode(errors="replace")
    assert "Sanitizer" not in report, report[:4000]
    assert "runtime error" not in report, report[:4000]
    assert run.code == CODES.get(scenario_name, 0)
    assert any(event.text for event in run.events), "it was at work"
