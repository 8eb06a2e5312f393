"""Calls of public functions of JAX, and what comes of them, as JSON.

A call names a function and holds its arguments: arrays of numpy, of the library that is judged,
weakly typed ones, numbers, keys, dtypes, and tuples and lists of these.

Invariant: this module imports neither Plait nor jax, so that both sides read and write alike.
"""

import functools
import importlib
import json
import lzma
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

MOST = 96  # elements of a result that are compared


@dataclass(frozen=True)
class Made:
    """An argument that is made for the call: what kind of value, its dtype, shape and elements."""

    kind: str  # "np", "jnp", "weak", "scalar" (numpy's), "key", "dtype"
    dtype: str = ""
    shape: tuple[int, ...] = ()
    values: tuple[Any, ...] = ()


def number(x: Any) -> Any:
    """Return a number as JSON holds it: few digits, a complex one as a pair."""
    if isinstance(x, (complex, np.complexfloating)):
        return [number(x.real), number(x.imag)]
    if isinstance(x, (bool, np.bool_)):
        return int(x)
    if isinstance(x, (int, np.integer)):
        return int(x)
    return float(f"{float(x):.9g}")


def pack(x: Any) -> Any:
    """Return an argument as JSON."""
    if isinstance(x, Made):
        return {x.kind: [x.dtype, list(x.shape), list(x.values)]}
    if isinstance(x, tuple):
        return {"tuple": [pack(v) for v in x]}
    if isinstance(x, list):
        return [pack(v) for v in x]
    if isinstance(x, complex):
        return {"complex": [x.real, x.imag]}
    return x


def unpack(x: Any, jax: Any) -> Any:
    """Return the argument that JSON describes, made with the module `jax`."""
    if isinstance(x, list):
        return [unpack(v, jax) for v in x]
    if not isinstance(x, dict):
        return x
    ((kind, what),) = x.items()
    if kind == "tuple":
        return tuple(unpack(v, jax) for v in what)
    if kind == "complex":
        return complex(*what)
    dtype, shape, values = what
    if kind == "dtype":
        return as_dtype(dtype)
    if kind == "key":
        return jax.random.key(values[0])
    if kind == "weak":
        return jax.numpy.asarray(complex(*values[0]) if isinstance(values[0], list) else values[0])
    flat = [complex(*v) for v in values] if dtype.startswith("complex") else values
    array = np.array(flat, as_dtype(dtype)).reshape(shape)
    if kind == "scalar":
        return array[()]
    return array if kind == "np" else jax.numpy.asarray(array)


def as_dtype(name: str) -> np.dtype:
    """Return a dtype by its name."""
    return np.dtype(getattr(ml_dtypes, name)) if name in ("bfloat16",) else np.dtype(name)


def find(path: str) -> Any:
    """Return the function at a path."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:
        return getattr(find(module), name)


def answer(call: dict[str, Any], jax: Any) -> Any:
    """Return what a call gives: the tree of its results, or the classes of its error."""
    with warnings.catch_warnings(), jax.enable_x64(call["x64"]):
        warnings.simplefilter("ignore")
        try:
            args = [unpack(x, jax) for x in call["args"]]
            named = {name: unpack(x, jax) for name, x in call["named"].items()}
            return result(find(call["path"])(*args, **named), jax)
        except Exception as e:
            return {
                "raises": [c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"][:-2]
            }


def result(x: Any, jax: Any) -> Any:
    """Return results as JSON."""
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"python": type(x).__name__, "value": x if isinstance(x, str | None) else number(x)}
    if isinstance(x, (tuple, list)):
        return {type(x).__name__ if isinstance(x, list) else "tuple": [result(v, jax) for v in x]}
    if isinstance(x, dict):
        return {"tuple": [result(x[k], jax) for k in sorted(x)]}
    if isinstance(x, (np.dtype, type)):
        return {"dtype": np.dtype(x).name}
    if isinstance(x, jax.Array) and jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
        return {"key": result(jax.random.key_data(x), jax)}
    if isinstance(x, (jax.Array, np.ndarray, np.generic)):
        array = np.asarray(x)
        owner = "array" if isinstance(x, jax.Array) else "numpy"
        flat = array.reshape(-1)[:MOST]
        return {owner: [array.dtype.name, list(array.shape), bool(getattr(x, "weak_type", False)),
                        [number(v) for v in flat]]}  # fmt: skip
    return {"object": type(x).__name__}


DIGITS = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 5e-5, "complex64": 5e-5, "float64": 1e-8,
          "complex128": 1e-8}  # fmt: skip


def difference(ours: Any, theirs: Any) -> str:
    """Return in what an answer differs, "" for nothing: one word, and what was found."""
    if "raises" in theirs and "raises" in ours:
        common = set(theirs["raises"]) & set(ours["raises"]) - {"Exception"}
        return (
            ""
            if common or not theirs["raises"]
            else f"class {ours['raises']} for {theirs['raises']}"
        )
    if "raises" in ours:
        return "refused"
    if "raises" in theirs:
        return "accepted"
    (a, x), (b, y) = next(iter(ours.items())), next(iter(theirs.items()))
    if {a, b} == {"tuple", "list"}:
        a = b
    if a != b:
        return f"kind {a} for {b}"
    if a in ("tuple", "list"):
        if len(x) != len(y):
            return f"length {len(x)} for {len(y)}"
        return next(filter(None, map(difference, x, y)), "")
    if a == "key":
        return difference(x, y)
    if a not in ("array", "numpy"):
        return "" if ours == theirs else f"value {ours} for {theirs}"
    for word, i in (("dtype", 0), ("shape", 1), ("weak", 2)):
        if x[i] != y[i]:
            return f"{word} {x[i]} for {y[i]}"
    return values_differ(x[3], y[3], x[0])


def values_differ(x: list[Any], y: list[Any], dtype: str) -> str:
    """Return in what the elements of two arrays differ."""
    a, b = (np.array([complex(*v) if isinstance(v, list) else v for v in s]) for s in (x, y))
    if not a.size or dtype not in DIGITS:
        return "" if x == y else f"value {x} for {y}"
    finite = np.isfinite(b)
    scale = np.abs(b[finite]).max(initial=0)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= DIGITS[dtype] * np.maximum(np.abs(b), scale / 16) + 1e-37
    alike = np.where(finite, near, (a == b) | (np.isnan(a) & np.isnan(b)))
    if alike.all():
        return ""
    i = int(np.argmin(alike))
    return f"value [{i}] {a[i]} for {b[i]}"


@functools.cache
def load(path: str) -> list[dict[str, Any]]:
    """Return the calls that a file holds, each with its answer."""
    return json.loads(lzma.decompress(Path(path).read_bytes()))
