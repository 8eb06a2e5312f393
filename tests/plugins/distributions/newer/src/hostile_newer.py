"""Tells that it was imported, which it must not be: its metadata asks for another core.

Invariant: importing it is seen in `sys.modules` and raises nothing.
"""


def from_the_future():
    """Never reached."""
