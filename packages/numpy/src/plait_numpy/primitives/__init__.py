"""Primitives of the array library, in the namespaces `linalg`, `special` and `nn`.

Invariant: importing this defines none of them.
"""
