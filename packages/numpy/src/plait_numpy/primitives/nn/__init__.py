"""Primitives of the namespace `nn`: attention.

Invariant: nothing of core's other primitives imports this package.
"""
