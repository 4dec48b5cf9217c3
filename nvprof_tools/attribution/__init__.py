"""Disjoint segments that fill each wall exactly, and the figures made of them."""
