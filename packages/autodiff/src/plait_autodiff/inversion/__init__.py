"""Reverse mode without residuals: operations are inverted, and their operands recovered.

Invariant: what an inverse rule recovers is checked in tests against what was there.
"""
