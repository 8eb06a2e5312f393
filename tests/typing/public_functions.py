"""The public functions of the project's packages.

Invariant: they are those that `__all__` of a module names, or its public names without one.
"""

import inspect
from collections.abc import Iterator
from importlib import import_module

import pytest

SURFACES = [
    "plait.lax", "plait.lax.linalg", "plait.numpy", "plait.numpy.fft", "plait.numpy.linalg",
    "plait.random", "plait.nn", "plait.nn.initializers", "plait.image", "plait.ops",
    "plait.scipy.special", "plait.scipy.linalg", "plait.scipy.stats", "plait.scipy.ndimage",
    "plait.scipy.signal", "plait.scipy.optimize", "plait.scipy.sparse.linalg",
    "plait.scipy.interpolate", "plait.scipy.integrate", "plait.scipy.fft",
    "plait.scipy.cluster.vq",
]  # fmt: skip
"""Modules of functions of arrays."""

OTHERS = [
    "plait", "plait.tree", "plait.tree_util", "plait.dtypes", "plait.debug",
    "plait.flatten_util", "plait.checks", "plait.events", "plait.ffi", "plait.testing",
    "plait.text", "plait_autodiff", "plait_batching", "plait_sharding",
    "plait_sharding.distributed", "plait_export", "plait_state", "plait.sparse",
]  # fmt: skip


def functions(modules: list[str]) -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the public functions of modules that Plait defines, each once."""
    seen: set[int] = set()
    for name in modules:
        module = pytest.importorskip(name) if name.startswith("plait_") else import_module(name)
        for public in getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]:
            f = inspect.unwrap(getattr(module, public))
            ours = inspect.isfunction(f) and f.__module__.startswith("plait")
            if ours and f.__module__ != "plait._api.surfaces" and id(f) not in seen:
                seen.add(id(f))
                yield f"{name}.{public}", inspect.signature(getattr(module, public))
