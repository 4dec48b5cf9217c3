"""One clock: normalised times, interval algebra, NVTX, threads, the log aligned."""
