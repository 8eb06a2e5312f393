"""Primitives of the array library for rules of other packages, by namespace.

Invariant: nothing is defined here.
"""
