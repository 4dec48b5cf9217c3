"""Runs over workers of Dask distributed: processes of this machine, or a cluster that is there already."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from nvprof_tools.errors import ToolError, UsageError
from nvprof_tools.fleet import ledger
from nvprof_tools.fleet.ledger import RunResult
from nvprof_tools.fleet.one import attribute_run
from nvprof_tools.fleet.runs import Run

LOCAL = "local"
WORKERS_SECONDS = 60
AHEAD = 4
"""Runs handed out a worker at once: the scheduler need not know of a million at a time."""


def attribute_all(
    runs: Sequence[Run],
    out: Path,
    options: Mapping[str, Any],
    *,
    scheduler: str = LOCAL,
    workers: int | None = None,
    seen: Callable[[RunResult], None] = lambda _: None,
) -> list[RunResult]:
    """Attribute every run that is not done yet; what became of all of them, in the order given.

    :param scheduler: ``local``, or a scheduler's address; its workers must see the same files under the same names.
    :param workers: local processes; default: one a processor.
    :param seen: told of each run as it is done, in any order.
    :raises ToolError: ``fleet-extra-missing``, ``scheduler-unreachable``, ``no-workers``, ``scheduler-lost``.
    """
    out = out.absolute()
    runs = [_absolute(run) for run in runs]
    known = {run.name: kept for run in runs if (kept := _kept(out, run, options)) is not None}
    for kept in known.values():
        seen(kept)
    left = [run for run in runs if run.name not in known]
    if left:
        with _client(scheduler, min(workers or len(os.sched_getaffinity(0)), len(left))) as client:
            for outcome in _outcomes(client, left, out, options):
                known[outcome.name] = outcome
                seen(outcome)
    return [known[run.name] for run in runs]


def _absolute(run: Run) -> Run:
    """Workers may have another working directory."""
    log = None if run.log is None else run.log.absolute()
    return Run(run.name, run.node, run.trace.absolute(), log)


def _kept(out: Path, run: Run, options: Mapping[str, Any]) -> RunResult | None:
    """What an earlier batch made of the same files and options; a run that failed is tried again."""
    kept = ledger.read(out, run.name)
    return kept if kept is not None and kept.done and kept.identity == ledger.identity(run, options) else None


def _outcomes(client: Any, runs: Sequence[Run], out: Path, options: Mapping[str, Any]) -> Iterator[RunResult]:
    from distributed import as_completed

    waiting = list(reversed(runs))
    of_key: dict[str, Run] = {}

    def submit() -> Any:
        run = waiting.pop()
        future = client.submit(attribute_run, run, out, options, pure=False, retries=1)
        of_key[future.key] = run
        return future

    coming = as_completed()
    while waiting or of_key:
        # Asked each time: workers come and go.
        ahead = AHEAD * max(len(client.nthreads()), 1)
        for _ in range(min(ahead - len(of_key), len(waiting))):
            coming.add(submit())
        future = next(coming)
        run = of_key.pop(future.key)
        if future.cancelled():
            raise ToolError(
                "scheduler-lost",
                f"the scheduler went away with {len(waiting) + len(of_key) + 1:,} runs left",
                "start it again and run the same command: what is done is kept",
            )
        error = future.exception()
        yield future.result() if error is None else _lost(out, run, options, error)


def _lost(out: Path, run: Run, options: Mapping[str, Any], error: BaseException) -> RunResult:
    """A worker that died over a run, or a bug: the batch goes on, and the run is listed."""
    message = f"its worker failed: {type(error).__name__}: {error}".splitlines()[0][:300]
    hint = "attribute it alone with --debug; if the worker ran out of memory, use fewer a machine"
    outcome = RunResult(run.name, run.node, ledger.identity(run, options), None, "worker-failed", message, hint)
    ledger.write(out, outcome)
    return outcome


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """A terminal interrupts all its processes at once. What is started meanwhile never hears of it, and is stopped in
    order by the one that does: this process, afterwards."""
    resource_tracker.ensure_running()  # it lets interrupts through again once it has started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _client(scheduler: str, workers: int) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as missing:
        raise ToolError(
            "fleet-extra-missing",
            "batch runs on Dask distributed, which is not installed",
            "pip install 'nvprof-tools[fleet]'",
        ) from missing
    # What goes wrong is told in the batch's own words.
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    with ExitStack() as stack:
        if scheduler == LOCAL:
            # Without a dashboard: what listens does so on this machine only, at ports that are free.
            with _interrupts_later():
                address: Any = stack.enter_context(
                    LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False},
                        memory_limit=0,
                        silence_logs=50,
                    )
                )
        else:
            address = scheduler
        try:
            client = stack.enter_context(Client(address, timeout="30s"))
        except (OSError, ValueError) as error:
            message = f"no scheduler answers at {scheduler!r}: {error}".splitlines()[0]
            raise UsageError("scheduler-unreachable", message, "check the address: tcp://HOST:8786") from error
        try:
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except (OSError, TimeoutError) as error:
            message = f"no worker came to the scheduler at {scheduler!r} within {WORKERS_SECONDS} s"
            raise ToolError("no-workers", message, "start workers: dask worker tcp://HOST:8786") from error
        yield client
