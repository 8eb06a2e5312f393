"""Claims the public name `grad`.

Invariant: its `grad` is recognised by what it returns.
"""


def grad(f):
    """The rival's idea of a derivative."""
    return "rival"
