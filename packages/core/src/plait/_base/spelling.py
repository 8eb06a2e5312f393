"""Advice on names that do not exist: the closest name, or that of the method of another library.

Invariant: names are compared only when a message is read, for `hasattr` asks for missing names
often.
"""

import difflib
from collections.abc import Callable, Iterable

from .errors import MissingAttribute

__all__ = ["closest", "missing_method"]

_METHODS = {
    "unsqueeze": "plait.numpy.expand_dims(x, axis), or x[None]",
    "permute": "x.transpose(axes)",
    "expand": "plait.numpy.broadcast_to(x, shape)",
    "expand_as": "plait.numpy.broadcast_to(x, y.shape)",
    "numel": "x.size",
    "dim": "x.ndim",
    "cat": "plait.numpy.concatenate([x, y], axis)",
    "backward": "plait.grad(loss)(parameters), which returns the gradient of a function",
    "requires_grad": "plait.grad(f, argnums), which is given the argument to differentiate by",
    "grad": "plait.grad(f)(x), which returns the gradient of a function",
    "detach": "plait.lax.stop_gradient(x)",
    "cpu": "plait.device_put(x, plait.devices('cpu')[0])",
    "cuda": "plait.device_put(x, plait.devices()[0])",
    "contiguous": "x itself: every array is contiguous",
    "clone": "x.copy()",
    "float": "x.astype('float32')",
    "double": "x.astype('float64')",
    "half": "x.astype('float16')",
    "bfloat16": "x.astype('bfloat16')",
    "int": "x.astype('int32')",
    "long": "x.astype('int64')",
    "bool": "x.astype(bool)",
    "mm": "x @ y",
    "bmm": "x @ y",
    "matmul": "x @ y",
    "abs": "abs(x)",
    "norm": "plait.numpy.linalg.norm(x)",
    "softmax": "plait.nn.softmax(x, axis)",
    "relu": "plait.nn.relu(x)",
    "sigmoid": "plait.nn.sigmoid(x)",
    "masked_fill": "plait.numpy.where(mask, value, x)",
    "gather": "plait.numpy.take_along_axis(x, indices, axis)",
    "scatter": "x.at[indices].set(values)",
    "index_select": "plait.numpy.take(x, indices, axis)",
    "topk": "plait.lax.top_k(x, k)",
    "repeat_interleave": "plait.numpy.repeat(x, n, axis)",
    "chunk": "plait.numpy.split(x, n, axis)",
    "eq": "x == y",
    "to": "x.astype(dtype), or plait.device_put(x, device)",
    "append": "plait.numpy.append(x, y), or plait.numpy.stack of a list of arrays",
}
"""Methods that other libraries' arrays have -> what to write here."""


def missing_method(x: object, name: str) -> AttributeError:
    """Return the error for an attribute that values lack."""
    kind = type(x).__name__
    if name in _METHODS:
        fix = f"write {_METHODS[name]}"
    elif name.endswith("_") and not name.startswith("_"):
        new = name.rstrip("_")
        fix = f"arrays do not change: write x = x.{new}(...) or an operator, or x.at[i].set(y)"
    else:
        return AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=x)
    return MissingAttribute(f"{kind!r} object has no attribute {name!r}", fix=fix)


def closest(module: str, name: str, known: Callable[[], Iterable[str]]) -> Callable[[], str]:
    """Return a function that says which names of a module are like one that it lacks."""

    def fix() -> str:
        found = difflib.get_close_matches(name, sorted(known()), n=2)
        if not found:
            return f"dir({module}) lists what there is"
        return f"did you mean {' or '.join(f'{module}.{n}' for n in found)}?"

    return fix
