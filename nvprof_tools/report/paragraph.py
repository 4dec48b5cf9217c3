"""The answer in words: one finding, one paragraph, made of the figures alone. What was not measured is left out."""

from __future__ import annotations

from nvprof_tools.model.attribution import Attribution, KernelCounters, Rung
from nvprof_tools.report import figures
from nvprof_tools.report.words import (
    COPYING,
    PHRASES,
    PINNING,
    RUNG_PHRASES,
    duration,
    percent,
    plural,
    spoken_ms,
    spoken_percent,
)

_CLAIMS = (("timeline_bracket", "The log says {}"), ("nvml_utilisation", "nvidia-smi says {}"))
_REALITY = (
    ("sm_active", "SMs were active {}"),
    ("gr_active", "the GPU's engine was active {}"),
    ("kernel_busy", "kernels ran {}"),
    ("device_busy", "the device worked {}"),
)
_NOTABLE = 0.01
"""A cause under this share of the device time is not worth a headline."""
_MORE_THAN_KERNELS = 0.02
_STEP = 0.002
"""A step of the ladder under this share of the device time is not worth a sentence."""


def finding(a: Attribution) -> str:
    """The one sentence a reader takes away."""
    claim = _first(a, _CLAIMS) or _plain_claim(a)
    # Samples of a part of the window are no answer to a claim about all of it.
    partly = any(item.slug == "gpu-metrics-partial" for item in a.quality)
    reality = _first(a, _REALITY[2:] if partly else _REALITY)
    if not reality:
        return "No GPU work was measured: there is no utilisation to explain."
    text = ", ".join(dict.fromkeys([*claim, *reality]))
    if not _first(a, _CLAIMS):
        text += " of the window"
    if len(a.devices) > 1:
        text = f"averaged over {len(a.devices)} devices, {text[0].lower() + text[1:]}"
    cause = _main_cause(a)
    return text[0].upper() + text[1:] + (f"; {cause}." if cause else ".")


def sentences(a: Attribution) -> list[str]:
    """The paragraph, a sentence an entry, the finding first."""
    return [finding(a), *_ladder(a), *_locks(a), *_stages(a), *_bound(a), *_doubt(a)]


def paragraph(a: Attribution) -> str:
    """The answer to "the log says 90 %, the silicon half of that: where did it go?" in one paragraph."""
    return " ".join(sentences(a))


def _first(a: Attribution, choices: tuple[tuple[str, str], ...]) -> list[str]:
    for name, words in choices:
        fraction = figures.rung_fraction(a, name)
        if fraction is not None:
            return [words.format(spoken_percent(fraction))]
    return []


def _plain_claim(a: Attribution) -> list[str]:
    """Without a log: what the device did, where that is more than its kernels."""
    busy, kernel = (figures.rung_fraction(a, name) for name in ("device_busy", "kernel_busy"))
    if busy is not None and kernel is not None and busy - kernel >= _MORE_THAN_KERNELS:
        return [f"the device worked {spoken_percent(busy)}", f"kernels ran {spoken_percent(kernel)}"]
    return _first(a, _REALITY[2:])


def _main_cause(a: Attribution) -> str | None:
    wall = sum(d.wall_ns for d in a.devices)
    parts = figures.idle_parts(a.devices)
    parts |= {c: figures.device_total(a, c) for c in COPYING}
    top, length = next(iter(figures.largest_first(parts)), ("", 0))
    pinning = figures.pinning(a)
    if pinning is not None and pinning.own_ns + pinning.inflicted_ns >= max(length, _NOTABLE * wall):
        more = f" and {spoken_ms(pinning.inflicted_ns)} more through the driver's lock" if pinning.inflicted_ns else ""
        return f"pinning costs {spoken_ms(pinning.own_ns)} itself{more}"
    if not wall or length < _NOTABLE * wall:
        return None
    if top in COPYING:
        return f"{COPYING[top]} with no kernel running take {spoken_ms(length)}"
    where = "the device" if len(a.devices) == 1 else f"{len(a.devices)} devices together"
    return f"{where} idled {spoken_ms(length)} for {PHRASES.get(top, top)}"


def _ladder(a: Attribution) -> list[str]:
    out = []
    above: Rung | None = None
    wall = sum(d.wall_ns for d in a.devices)
    for rung in figures.whole_ladder(a):
        if rung.fraction is None:
            continue
        if sum(rung.drop.values()) >= _STEP * wall > 0:
            out.append(_step(above, rung))
        if rung.rung in RUNG_PHRASES:
            above = rung
    if any(item.slug == "gpu-metrics-partial" for item in a.quality):
        return out
    return out + _samples({r.rung: r.fraction for r in figures.whole_ladder(a) if r.fraction is not None})


def _step(above: Rung | None, rung: Rung) -> str:
    parts = figures.largest_first(rung.drop)
    shown = [f"{name} {spoken_ms(length)}" for name, length in parts[:4]]
    rest = sum(length for _, length in parts[4:])
    if rest:
        shown.append(f"{plural(len(parts) - 4, 'other')} {spoken_ms(rest)}")
    total = spoken_ms(sum(length for _, length in parts))
    listed = shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
    if above is None:
        return f"Outside {_name(rung)} ({percent(rung.fraction)}) lie {total}: {listed}."
    share = f"{percent(above.fraction)} to {percent(rung.fraction)}"
    return f"Between {_name(above)} and {_name(rung)} ({share}) lie {total}: {listed}."


def _samples(known: dict[str, float]) -> list[str]:
    kernel, active, issue = known.get("kernel_busy"), known.get("sm_active"), known.get("sm_issue")
    text = ""
    if kernel is not None and active is not None and kernel > active:
        text = f"while kernels ran ({percent(kernel)}), SMs were active {percent(active)} of the window"
        if issue is not None:
            text += f" and issued in {percent(issue)} of their slots"
    elif issue is not None:
        text = f"SMs issued in {percent(issue)} of their slots"
    return [text[0].upper() + text[1:] + "."] if text else []


def _locks(a: Attribution) -> list[str]:
    total = figures.driver_locks_ns(a)
    if not total:
        return []
    by = figures.blocked_ns(a)
    pinned = sum(by.get(c, 0) for c in PINNING)
    tail = f", {spoken_ms(pinned)} of them while another thread pins or unpins" if pinned else ""
    return [f"In all, {spoken_ms(total)} of the sections pass waiting on locks inside the driver{tail}."]


def _stages(a: Attribution) -> list[str]:
    stages = figures.largest_first(figures.stage_totals(a))
    total = sum(length for _, length in stages)
    if not total:
        return []
    shown = ", ".join(f"{name} {spoken_ms(v)} ({spoken_percent(v / total)})" for name, v in stages[:3])
    return [f"Kernel time by stage: {shown}."]


def _bound(a: Attribution) -> list[str]:
    best: KernelCounters | None = None
    for k in a.counters:
        if k.bound is not None and k.matched_launches and (best is None or k.matched_ns > best.matched_ns):
            best = k
    if best is None:
        return []
    facts = [
        f"{label} {value:.0f} %"
        for label, value in (
            ("SM throughput", best.sm_throughput_pct),
            ("DRAM throughput", best.dram_throughput_pct),
            ("occupancy", best.occupancy_pct),
        )
        if value is not None
    ]
    what = best.stage if best.kernel is None else f"{best.kernel} ({best.stage})"
    return [f"By its counters {what} is {best.bound}-bound" + (f" ({', '.join(facts)})." if facts else ".")]


def _doubt(a: Attribution) -> list[str]:
    out = []
    unattributed = figures.device_total(a, "unattributed")
    if unattributed:
        out.append(f"{spoken_ms(unattributed)} of device time have no evidence and stay unattributed.")
    clock = a.clock
    how = {
        "marks": "marks that carry both clocks",
        "anchor": "its wall-clock line",
        "constraints": "what must lie inside its brackets",
    }
    if clock.method in how:
        text = f"The log is on the trace's clock by {how[clock.method]}"
        if clock.uncertainty_ns is not None:
            text += f", ± {duration(clock.uncertainty_ns)}: a log-based figure smaller than that is not sure"
        out.append(text + ".")
        if clock.anchor_rejected and clock.anchor_ns is not None and clock.offset_ns is not None:
            off = abs(clock.anchor_ns - clock.offset_ns)
            out.append(f"Its wall-clock line is {spoken_ms(off)} off and was rejected.")
    elif a.inputs.log is not None:
        out.append("The log could not be placed on the trace's clock: only figures of one or the other are given.")
    losses = figures.lost(a)
    if losses:
        out.append(f"The capture is not whole ({plural(len(losses), 'item')} of data loss): see data quality.")
    return out


def _name(rung: Rung) -> str:
    return RUNG_PHRASES.get(rung.rung, rung.rung)
