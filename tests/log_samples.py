"""Logs to test with: written from figures, or drawn at random together with what they must read as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.model.trace import AppLog, LogRun, SourceInfo
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.sources.timeline_log import parse_log

LOGS = Path(__file__).resolve().parent.parent / "fixtures" / "logs"
SOURCE = SourceInfo("timeline-log", None, "0" * 64)
CUZK = load_pipeline("cuzk")
JOB = "7d3c1f7e-0000-4000-8000-000000000000"
OTHER = "0b7f6c1e-6c0e-4a52-9b62-2f0a6f3f9d10"
COLUMNS = ("synth_start_ms", "synth_end_ms", "sent_ms", "picked_ms", "gpu_start_ms", "gpu_end_ms")


def read(text: str | bytes, pipeline: Pipeline = CUZK) -> AppLog:
    """A log in memory."""
    return parse_log(text, pipeline, source=SOURCE)


def slugs(log: AppLog) -> dict[str, int]:
    """Quality items: slug → count, summed."""
    counts: dict[str, int] = {}
    for item in log.quality:
        counts[item.slug] = counts.get(item.slug, 0) + item.count
    return counts


def item(log: AppLog, slug: str) -> QualityItem:
    """The one item of that slug."""
    (found,) = [item for item in log.quality if item.slug == slug]
    return found


def rows(run: LogRun) -> list[dict[str, object]]:
    """The partition table as plain rows."""
    return run.partitions.to_pylist()


def events(run: LogRun) -> list[tuple[int, str, str, int | None]]:
    """(time, event, job, partition) in file order."""
    return [(row["time_ms"], row["event"], row["job"], row["partition"]) for row in run.events.to_pylist()]


@dataclass(frozen=True)
class Call:
    """One partition's way through the prover, on the engine's clock."""

    job: str
    partition: int | None
    worker: int
    synth_start: int
    synth_end: int
    sent: int
    picked: int
    start: int
    end: int

    def lines(self) -> list[tuple[int, str]]:
        """(time, line) of its six events, as the prover writes them."""
        part = "" if self.partition is None else f"partition={self.partition}"
        worker = f"worker={self.worker}" + (f",{part}" if part else "")
        synth = ",".join(word for word in (part, f"synth_ms={self.synth_end - self.synth_start}") if word)
        details = (
            (self.synth_start, "SYNTH_START", part or "kind=porep-c2"),
            (self.synth_end, "SYNTH_END", synth),
            (self.sent, "CHAN_SEND", part),
            (self.picked, "GPU_PICKUP", worker),
            (self.start, "GPU_START", worker),
            (self.end, "GPU_END", f"{worker},gpu_ms={self.end - self.start}"),
        )
        return [(when, f"TIMELINE,{when},{event},{self.job},{detail}") for when, event, detail in details]


def log_of(calls: Sequence[Call]) -> list[str]:
    """The lines of some calls in order of time; equal times in order of the calls and of each call's events."""
    return [line for _, line in sorted((pair for call in calls for pair in call.lines()), key=lambda pair: pair[0])]


def published_run() -> list[str]:
    """A log of 15 proofs of 10 partitions, one worker, of the published shape: first GPU_START at 274.1 s, last GPU_END
    at 885.5 s, 550.8 s of gpu_ms; the 60.6 s between are spread over the 149 gaps as evenly as whole ms allow."""
    calls, now = [], 274_100
    for number in range(150):
        job, partition = f"proof-{number // 10:02}", number % 10
        ready = 200_000 + 4_000 * (number // 10) + partition
        calls.append(Call(job, partition, 0, ready - 36_000, ready, ready, now, now, now + 3_672))
        now += 3_672 + (60_600 * (number + 1)) // 149 - (60_600 * number) // 149
    return log_of(calls)
