"""Coexistence with jax: placeholders that become bases of its typed scalars when it defines them.

Invariant: nothing here imports jax.  Of jax's modules only the one that defines its typed scalars
is executed in another way, once.
"""

import builtins
import importlib.util
import sys

import numpy as np


class Int(int):
    """Placeholder for jax's TypedInt."""


class Float(float):
    """Placeholder for jax's TypedFloat."""


class Complex(complex):
    """Placeholder for jax's TypedComplex."""


class Ndarray(np.ndarray):
    """Placeholder for jax's TypedNdArray."""


_PLACEHOLDERS = {
    "TypedInt": (int, Int),
    "TypedFloat": (float, Float),
    "TypedComplex": (complex, Complex),
    "TypedNdArray": (np.ndarray, Ndarray),
}
LITERALS = "jax._src.literals"
"""The module in which jax defines its typed scalars."""


def _build_class(func, name, *bases, **kw: object):
    if name in _PLACEHOLDERS:
        old, new = _PLACEHOLDERS[name]
        bases = tuple(new if b is old else b for b in bases)
    return builtins.__build_class__(func, name, *bases, **kw)


class Finder:
    """An import hook that gives jax's typed scalars the placeholders as bases."""

    def find_spec(self, name: str, path: object = None, target: object = None):
        if name != LITERALS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            scope = dict(builtins.__dict__, __build_class__=_build_class)
            module.__dict__["__builtins__"] = scope
            try:
                execute(module)
            finally:
                module.__dict__["__builtins__"] = builtins

        spec.loader.exec_module = exec_module
        return spec
