"""Rematerialisation: `checkpoint`, its policies, reports of residuals, checkpointed scans.

Invariant: a recomputed value is equal to the value that was computed first.
"""
