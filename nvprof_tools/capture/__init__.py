"""Driving the profilers."""
