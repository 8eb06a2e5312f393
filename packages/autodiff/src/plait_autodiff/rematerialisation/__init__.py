"""Values that are computed again instead of kept: `checkpoint`, its policies, scans.

Invariant: what is computed again is equal to what was computed the first time.
"""
