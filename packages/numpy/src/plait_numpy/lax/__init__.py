"""The part of `plait.lax` that belongs to the array library.

Invariant: importing this imports none of its modules.
"""
