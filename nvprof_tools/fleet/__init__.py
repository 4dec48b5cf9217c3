"""Many traces at once: found, attributed on a cluster or on this machine's processors, gathered into one dataset."""
