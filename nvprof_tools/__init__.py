"""nvprof_tools: where every nanosecond of a GPU pipeline went."""

__version__ = "0.1.0"
