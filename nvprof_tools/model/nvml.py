"""What the driver's management library showed while a program ran."""

from __future__ import annotations

import pyarrow as pa

NVML_SCHEMA = pa.schema(
    [
        pa.field("time_utc_ns", pa.int64(), False),
        pa.field("device", pa.int32(), False),
        pa.field("gpu_pct", pa.int32(), True),
        pa.field("memory_pct", pa.int32(), True),
        pa.field("used_bytes", pa.int64(), True),
        pa.field("sm_mhz", pa.int32(), True),
        pa.field("power_mw", pa.int32(), True),
        pa.field("throttle_reasons", pa.int64(), True),
    ]
)
"""One row a sample and GPU, in order of time; null: not told. A sample's figures are of the time before it.
``throttle_reasons`` is NVML's set of bits."""

THROTTLES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal limit (software)",
    0x40: "thermal limit (hardware)",
    0x80: "power brake",
}
"""Bits that mean the board is slower than it could be, against its user's will; idle and set clocks do not count."""
