"""Golden traces: record, check, compare."""
