"""Pipeline files: one TOML a pipeline, and their loader."""
