"""Goldens as tests: ``pytest --golden DIR`` checks each golden below DIR, and the ``golden`` fixture hands them to
tests of one's own. Loaded by every pytest run of an environment, so nothing heavy is imported before it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from nvprof_tools.golden.assertions import Golden

MANIFEST: Final = "golden.toml"
OPTION: Final = "--golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--golden PATH``, may be repeated."""
    parser.getgroup("nvprof-tools").addoption(
        OPTION, action="append", default=[], metavar="PATH", help="check the golden traces below PATH"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker that names a test's golden, and the paths to collect from."""
    config.addinivalue_line("markers", "golden(path, ...): golden directories that the `golden` fixture stands for")
    known = {Path(os.path.realpath(arg.split("::")[0])) for arg in config.args}
    for path in config.getoption(OPTION):
        if Path(os.path.realpath(path)) not in known:
            config.args.append(str(path))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A ``golden.toml`` below a ``--golden`` path is a test."""
    if file_path.name != MANIFEST or not any(_below(file_path, path) for path in parent.config.getoption(OPTION)):
        return None
    found: pytest.Collector = GoldenFile.from_parent(parent, path=file_path)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run of a test a golden: those of its marker, else those below ``--golden``."""
    if "golden" not in metafunc.fixturenames or not _is_ours(metafunc):
        return
    marker = metafunc.definition.get_closest_marker("golden")
    roots = marker.args if marker is not None else metafunc.config.getoption(OPTION)
    folders = sorted({folder for root in roots for folder in _goldens(metafunc.config.rootpath / root)})
    metafunc.parametrize("golden", folders, indirect=True, ids=[folder.name for folder in folders])


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Golden:
    """A golden to assert on: ``golden.assert_share("host_register", below=0.05)``."""
    from nvprof_tools.golden.assertions import Golden

    return Golden(request.param)


class GoldenFile(pytest.File):
    """One golden directory."""

    def collect(self) -> Iterator[pytest.Item]:
        """Its check."""
        item: pytest.Item = GoldenItem.from_parent(self, name=self.path.parent.name)
        yield item


class GoldenFailure(Exception):
    """A golden that deviates; its text is the diff."""


class GoldenItem(pytest.Item):
    """``golden check`` of one directory."""

    def runtest(self) -> None:
        """Check it; raises with the diff."""
        from nvprof_tools.cli.golden_forms import forms
        from nvprof_tools.golden.check import check

        result = check(self.path.parent, forms())
        if not result.passed:
            raise GoldenFailure("\n".join(result.lines()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The diff alone, without a traceback."""
        if isinstance(excinfo.value, GoldenFailure):
            hint = "`nvprof-tools golden check --update` rewrites it"
            return f"golden {self.path.parent} deviates:\n{excinfo.value}\n({hint})"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where a report points to."""
        return self.path, None, f"golden {self.name}"


def _is_ours(metafunc: pytest.Metafunc) -> bool:
    """Whether the test's ``golden`` is this plugin's fixture and not one that its authors wrote."""
    known = metafunc.definition._fixtureinfo.name2fixturedefs.get("golden", ())
    return bool(known) and known[-1].func.__module__ == __name__


def _below(path: Path, root: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _goldens(root: Path) -> Iterator[Path]:
    """Golden directories at or below a path, sorted."""
    if (root / MANIFEST).is_file():
        yield root
        return
    yield from sorted(path.parent for path in root.rglob(MANIFEST))
