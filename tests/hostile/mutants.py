"""Damages a file in many ways and imports each, in a process of its own with capped memory.

    python -m tests.hostile.mutants FILE --seed 1 --count 400

Prints one JSON object: how many gave the same tables, other tables, an error by slug; what else happened; the slowest.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from nvprof_tools.errors import ToolError
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.normalise import load_trace
from tests.hostile.peak import peak_bytes


def digest(trace: Trace) -> str:
    """A digest of everything the tables say."""
    import pyarrow as pa

    found = hashlib.sha256()
    for name, table in trace.tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        found.update(name.encode() + sink.getvalue())
    return found.hexdigest()


def mutate(data: bytes, source: random.Random) -> bytes:
    """One kind of damage, at random."""
    out = bytearray(data)
    kind = source.choice(["flip", "flip", "byte", "run", "cut", "grow", "swap", "header", "pointer"])
    if kind == "flip":
        for _ in range(source.choice([1, 1, 2, 8, 64])):
            out[source.randrange(len(out))] ^= 1 << source.randrange(8)
    elif kind == "byte":
        for _ in range(source.choice([1, 4, 16])):
            out[source.randrange(len(out))] = source.choice([0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)])
    elif kind == "run":
        at, length = source.randrange(len(out)), source.choice([4, 64, 512, 4096])
        out[at : at + length] = bytes([source.choice([0, 0xFF])]) * len(out[at : at + length])
    elif kind == "cut":
        del out[source.randrange(len(out)) :]
    elif kind == "grow":
        at = source.randrange(len(out))
        out[at:at] = source.randbytes(source.choice([1, 16, 4096]))
    elif kind == "swap":
        pages = len(out) // 4096
        a, b = source.randrange(pages) * 4096, source.randrange(pages) * 4096
        out[a : a + 4096], out[b : b + 4096] = out[b : b + 4096], out[a : a + 4096]
    elif kind == "header":
        out[source.randrange(100)] = source.randrange(256)
    else:  # the head of a page: its type, cell count and pointers
        at = source.randrange(len(out) // 4096) * 4096 + source.randrange(64)
        out[at] = source.randrange(256)
    return bytes(out)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--memory", type=int, default=2 << 30)
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (options.memory, options.memory))
    data = options.file.read_bytes()
    plain = digest(load_trace(options.file))
    source = random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    other: list[str] = []
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.sqlite"
        for number in range(options.count):
            path.write_bytes(mutate(data, source))
            started = time.perf_counter()
            try:
                outcomes["same" if digest(load_trace(path)) == plain else "differs"] += 1
            except ToolError as error:
                outcomes[error.slug] += 1
            except BaseException as error:
                other.append(f"seed {options.seed} mutant {number}: {error!r}"[:300])
            slowest = max(slowest, time.perf_counter() - started)
    print(json.dumps({"outcomes": outcomes, "other": other, "slowest_s": slowest, "peak_bytes": peak_bytes()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
