"""Readers of untrusted inputs: each says what a file holds, typed and unaltered."""
