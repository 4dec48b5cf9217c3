"""A slow, obvious answer to compare the real one with, and small random traces to ask both about."""
