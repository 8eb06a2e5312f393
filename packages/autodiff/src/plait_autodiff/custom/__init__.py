"""Functions that bring derivative rules of their own.

Invariant: a rule is the user's; it is called with what its signature says, and believed.
"""
