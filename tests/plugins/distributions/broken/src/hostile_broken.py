"""Raises when it is imported.

Invariant: nothing of it can be used.
"""

raise RuntimeError("the broken plugin was imported")
