"""The ``golden`` commands and the pytest plugin, as a stranger would use them."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from nvprof_tools.cli.budgets import require_budget
from nvprof_tools.cli.main import run
from nvprof_tools.errors import CheckFailed
from nvprof_tools.sources.arrow_dir import write_tables
from tests.attribution_samples import rich
from tests.golden.generated import generated

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two small traces as import directories."""
    place = tmp_path_factory.mktemp("traces")
    for seed in (1, 2):
        write_tables(generated(seed, steps=8), place / f"seed{seed}")
    return place / "seed1", place / "seed2"


@pytest.fixture(scope="module")
def recorded(traces: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("goldens") / "small"
    assert run(["golden", "record", str(traces[0]), "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def copied(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded, tmp_path / "goldens" / "small")
    return tmp_path / "goldens" / "small"


def spoil(folder: Path) -> None:
    path = folder / "expected.json"
    path.write_bytes(path.read_bytes().replace(b'"pipeline": "generic"', b'"pipeline": "genetic"'))


def test_check_says_ok_and_fails_with_the_reason(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["golden", "check", str(copied.parent)]) == 0
    out, err = capsys.readouterr()
    assert out == f"ok     {copied}\n"
    assert err == "1 of 1 goldens as recorded\n"
    spoil(copied)
    assert run(["golden", "check", str(copied)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"FAILED {copied}"
    assert "golden-changed: the golden's files are not as recorded: expected.json" in out
    assert err == "0 of 1 goldens as recorded\n"


def test_a_broken_budget_fails_the_check(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "budget.toml").write_text('[budget]\nkernel = "< 1 %"\n')
    assert run(["golden", "check", str(copied)]) == 1
    assert "budget of kernel broken: " in capsys.readouterr().out


def test_a_budget_nobody_can_read_fails_its_golden_only(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(copied, copied.parent / "other")
    (copied / "budget.toml").write_text('[budget]\nkernel = "little"\n')
    assert run(["golden", "check", str(copied.parent)]) == 1
    out = capsys.readouterr().out
    assert "budget-invalid: " in out
    assert f"ok     {copied.parent / 'other'}" in out


def test_what_a_ci_reads(copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(copied)
    assert run(["golden", "check", str(copied), "--junit", str(tmp_path / "out.xml"), "--github"]) == 1
    assert f"::error file={copied.as_posix()}/expected.md,title=golden small::golden-changed" in capsys.readouterr().out
    assert ET.parse(tmp_path / "out.xml").getroot().get("errors") == "1"


def test_update_never_blesses_a_spoilt_file(copied: Path) -> None:
    spoil(copied)
    before = (copied / "expected.json").read_bytes()
    assert run(["golden", "check", str(copied), "--update"]) == 1
    assert (copied / "expected.json").read_bytes() == before


def test_diff_of_its_own_trace_and_of_another(
    copied: Path, traces: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["golden", "diff", str(copied), str(traces[0])]) == 0
    assert capsys.readouterr().out == ""
    assert run(["golden", "diff", str(copied), str(traces[1])]) == 1
    out = capsys.readouterr().out
    assert "ladder 0.device_busy: busy_ns " in out
    assert "first differing device segment: expected " in out


def test_goldens_are_compared_like_traces(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(Path(__file__).resolve().parents[2] / "fixtures" / "golden" / "p9_nonvtx")
    assert run(["compare", folder, folder]) in {0, 5}
    out = capsys.readouterr().out
    assert "A p9_nonvtx: golden, cuzk, 2 proofs of 4 partitions" in out
    assert "B is" not in out


@pytest.mark.parametrize(
    ("args", "code", "slug"),
    [
        (["check", "nowhere"], 3, "golden-missing"),
        (["record", "nowhere", "-o", "x"], 3, "file-missing"),
        (["diff", "nowhere", "nowhere"], 3, "golden-damaged"),
    ],
)
def test_wrong_requests_are_two_lines(
    capsys: pytest.CaptureFixture[str], args: list[str], code: int, slug: str
) -> None:
    assert run(["golden", *args]) == code
    err = capsys.readouterr().err
    assert err.startswith(f"error[{slug}]: ")
    assert len(err.splitlines()) == 2


def test_an_existing_directory_is_not_overwritten_unasked(
    copied: Path, traces: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["golden", "record", str(traces[0]), "-o", str(copied)]
    assert run(args) != 0
    assert "error[output-exists]" in capsys.readouterr().err
    assert run([*args, "--replace"]) == 0


# --- the plugin ------------------------------------------------------------------------------------------------------


def test_goldens_are_collected_as_tests(pytester: pytest.Pytester, copied: Path) -> None:
    pytester.makepyfile(test_empty="def test_nothing(): pass")
    result = pytester.runpytest_inprocess("--golden", str(copied.parent), "test_empty.py", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    spoil(copied)
    result = pytester.runpytest_inprocess("--golden", str(copied.parent), "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*golden */small deviates:", "golden-changed: *expected.json*"])


def test_without_the_option_nothing_is_collected(pytester: pytest.Pytester, copied: Path) -> None:
    shutil.copytree(copied, pytester.path / "small")
    pytester.makepyfile("def test_nothing(): pass")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_fixture_serves_peoples_own_assertions(pytester: pytest.Pytester, copied: Path) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_holds(golden):
            golden.assert_share("host_register", below=0.5)
            golden.assert_share("kernel", above=0.1, of="devices")
            golden.assert_rung("kernel_busy", above=0.5)
            golden.assert_budget("unattributed", "< 5 %")

        def test_fails(golden):
            golden.assert_share("kernel", below=0.01)

        def test_not_measured(golden):
            with pytest.raises(AssertionError, match="sm_active was not measured"):
                golden.assert_rung("sm_active", above=0)
        """
    )
    result = pytester.runpytest_inprocess("--golden", str(copied), "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, failed=1)  # with the golden's own check
    result.stdout.fnmatch_lines(["*AssertionError: small: share of kernel in the sections is *, not below 1.00%"])


def test_a_marker_names_goldens_and_an_own_fixture_of_that_name_stays(pytester: pytest.Pytester, copied: Path) -> None:
    shutil.copytree(copied, pytester.path / "traces" / "small")
    pytester.makepyfile(
        test_marked="""
        import pytest

        @pytest.mark.golden("traces")
        def test_marked(golden):
            golden.assert_share("kernel", above=0.0)
        """,
        test_own="""
        import pytest

        @pytest.fixture
        def golden():
            return 7

        def test_own(golden):
            assert golden == 7
        """,
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers").assert_outcomes(passed=2)


# --- budgets of any run ----------------------------------------------------------------------------------------------


def test_a_budget_of_any_run_is_told_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "budget.toml").write_text('[budget]\nhost_register = "< 90 %"\nsm_active = "> 99 %"\n')
    with pytest.raises(CheckFailed) as caught:
        require_budget(rich(), tmp_path / "budget.toml")
    assert caught.value.exit_code == 1
    assert caught.value.message == "1 of 2 budget lines broken: sm_active"
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("budget of host_register kept: ")
    assert second.startswith("budget of sm_active broken: ")
