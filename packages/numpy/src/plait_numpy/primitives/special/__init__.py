"""Primitives of the namespace `special`: special functions, and samples of distributions.

Invariant: nothing of core's other primitives imports this package.
"""
