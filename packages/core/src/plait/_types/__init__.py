"""Types of values: avals, opaque dtypes, and sizes known by name.

Invariant: nothing here holds a value.
"""
