"""Example calls for the docstrings of functions that are made from tables.

Invariant: each example shows the result of its call; a test runs every one of them.
"""

_CALLS = {
    "absolute": ("-2", "2"),
    "add": ("1, 2", "3"),
    "arccos": ("1.0", "0.0"),
    "arccosh": ("1.0", "0.0"),
    "arcsin": ("0.0", "0.0"),
    "arcsinh": ("0.0", "0.0"),
    "arctan": ("0.0", "0.0"),
    "arctan2": ("0.0, 1.0", "0.0"),
    "arctanh": ("0.0", "0.0"),
    "bitwise_and": ("6, 3", "2"),
    "bitwise_or": ("6, 3", "7"),
    "bitwise_xor": ("6, 3", "5"),
    "cbrt": ("0.0", "0.0"),
    "ceil": ("1.2", "2.0"),
    "cos": ("0.0", "1.0"),
    "cosh": ("0.0", "1.0"),
    "divide": ("1.0, 4.0", "0.25"),
    "equal": ("1, 2", "False"),
    "exp": ("0.0", "1.0"),
    "expm1": ("0.0", "0.0"),
    "floor": ("1.7", "1.0"),
    "greater": ("1, 2", "False"),
    "greater_equal": ("2, 2", "True"),
    "invert": ("5", "-6"),
    "isfinite": ("1.5", "True"),
    "left_shift": ("1, 3", "8"),
    "less": ("1, 2", "True"),
    "less_equal": ("2, 2", "True"),
    "log": ("1.0", "0.0"),
    "log1p": ("0.0", "0.0"),
    "logical_and": ("1, 0", "False"),
    "logical_or": ("1, 0", "True"),
    "logical_xor": ("1, 0", "True"),
    "maximum": ("1, 2", "2"),
    "minimum": ("1, 2", "1"),
    "multiply": ("2, 3", "6"),
    "negative": ("2", "-2"),
    "nextafter": ("1.0, 1.0", "1.0"),
    "not_equal": ("1, 2", "True"),
    "sign": ("-2.5", "-1.0"),
    "sin": ("0.0", "0.0"),
    "sinh": ("0.0", "0.0"),
    "sqrt": ("4.0", "2.0"),
    "subtract": ("3, 1", "2"),
    "tan": ("0.0", "0.0"),
    "tanh": ("0.0", "0.0"),
}
"""Arguments and result, by the name of the function."""


def shown(name: str) -> str:
    """Return the end of a docstring: an example call of `plait.numpy`'s function of that name."""
    arguments, result = _CALLS[name]
    return f"\n\n>>> import plait\n>>> plait.numpy.{name}({arguments}).item()\n{result}"
