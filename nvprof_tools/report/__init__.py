"""Renderers: an Attribution in, text or a file out."""
