"""Rematerialisation: `checkpoint`, its policies, reports of residuals, checkpointed scans.

Invariant: what is computed again is equal to what was computed the first time.
"""
