"""Advice on names that do not exist: the closest name, or that of the method of another library.

Invariant: names are compared only when a message is read, for `hasattr` asks for missing names
often.
"""

import difflib
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .errors import MissingAttribute

__all__ = ["closest", "missing_method", "no_name"]

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
    "tensor": "plait.numpy.asarray(values)",
    "from_numpy": "plait.numpy.asarray(x)",
    "clamp": "plait.numpy.clip(x, low, high)",
    "no_grad": "plait.lax.stop_gradient(x); nothing is recorded outside of plait.grad",
    "append": "plait.numpy.append(x, y), or plait.numpy.stack of a list of arrays",
}
"""Methods that other libraries' arrays have -> what to write here."""
_IN_PLACE = {
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "pow": "x**y", "neg": "-x",
    "zero": "plait.numpy.zeros_like(x)", "fill": "plait.numpy.full_like(x, value)", "copy": "y",
    "clamp": "x.clip(low, high)", "exp": "plait.numpy.exp(x)", "sqrt": "plait.numpy.sqrt(x)",
    "addmm": "x + y @ z", "normal": "plait.random.normal(key, x.shape)",
    "uniform": "plait.random.uniform(key, x.shape)",
}  # fmt: skip
_TOP = {
    "optim": "import plait_jax; plait_jax.install(); import optax   (optimisers are optax's)",
    "tensor": "plait.numpy.array(values)",
    "manual_seed": "key = plait.random.key(seed), and pass the key to the functions that draw",
    "no_grad": "nothing: only functions given to plait.grad are differentiated",
    "compile": "plait.jit(f)",
    "tree_map": "plait.tree.map(f, tree)",
    "save": "numpy.savez(path, **arrays), or pickle.dump(tree, file)",
}
_LAYERS = {
    "Module": "a function of parameters and inputs, f(params, x); parameters are a tree of arrays",
    "Parameter": "plait.numpy.array(values), a leaf of the tree of parameters",
    "Sequential": "functions one after the other: g(params[1], f(params[0], x))",
    "Linear": 'x @ params["w"] + params["b"]',
    "Embedding": 'params["w"][labels]',
    "Conv1d": "plait.lax.conv_general_dilated(x, kernel, strides, padding)",
    "Conv2d": "plait.lax.conv_general_dilated(x, kernel, strides, padding)",
    "LayerNorm": "plait.nn.standardize(x)",
    "BatchNorm2d": "plait.nn.standardize(x, axis=(0, 1, 2)), and keep the statistics as values",
    "MultiheadAttention": "plait.nn.dot_product_attention(q, k, v)",
    "dropout": "plait.numpy.where(plait.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0)",
    "cross_entropy": "-(plait.nn.log_softmax(x) * plait.nn.one_hot(labels, n)).sum(-1).mean()",
    "mse_loss": "((x - y) ** 2).mean()",
}
"""Layers and losses of other libraries -> what to write here."""
_LAYERS |= {
    "Dropout": _LAYERS["dropout"],
    "layer_norm": _LAYERS["LayerNorm"],
    "softmax_cross_entropy": _LAYERS["cross_entropy"],
    "CrossEntropyLoss": _LAYERS["cross_entropy"],
    "MSELoss": _LAYERS["mse_loss"],
    "scaled_dot_product_attention": _LAYERS["MultiheadAttention"],
}
_DRAWS = {
    "randn": "plait.random.normal(key, shape)",
    "standard_normal": "plait.random.normal(key, shape)",
    "rand": "plait.random.uniform(key, shape)",
    "random": "plait.random.uniform(key, shape)",
    "seed": "key = plait.random.key(seed), and pass the key to the functions that draw",
    "default_rng": "key = plait.random.key(seed), and pass the key to the functions that draw",
    "randperm": "plait.random.permutation(key, n)",
    "shuffle": "plait.random.permutation(key, x), which returns a new array",
}
_NAMES = {"plait": _TOP, "plait.nn": _LAYERS, "plait.random": _DRAWS}
"""Names that other libraries have in a module -> what to write here, by the module here."""
_HOMES = (
    "plait", "plait.numpy", "plait.nn", "plait.lax", "plait.random", "plait.tree",
    "plait.numpy.linalg", "plait.numpy.fft", "plait.scipy.special", "plait.scipy.linalg",
)  # fmt: skip
"""The modules in which a name is looked for that another of them lacks, the likeliest first."""


def missing_method(x: object, name: str) -> AttributeError:
    """Return the error for an attribute that values lack."""
    kind = type(x).__name__
    if name in _METHODS:
        fix = f"write {_METHODS[name]}"
    elif name.endswith("_") and not name.startswith("_"):
        new = name.rstrip("_")
        written = _IN_PLACE.get(new) or (f"x.{new}(...)" if hasattr(type(x), new) else None)
        first = f"x = {written}, or " if written else ""
        fix = f"arrays do not change: write {first}x = x.at[i].set(y) for a part"
    else:
        return AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=x)
    return MissingAttribute(f"{kind!r} object has no attribute {name!r}", fix=fix)


def no_name(module: str, name: str, known: Callable[[], Iterable[str]]) -> MissingAttribute:
    """Return the error for a name that a module lacks."""
    return MissingAttribute(f"{module} has no {name!r}", fix=closest(module, name, known))


def closest(module: str, name: str, known: Callable[[], Iterable[str]]) -> Callable[[], str]:
    """Return a function that says which names of a module are like one that it lacks."""

    def fix() -> str:
        written = _NAMES.get(module, {}).get(name) or _LAYERS.get(name)
        if written is not None:
            return f"write {written}"
        lower = {n.lower(): n for n in sorted(known(), reverse=True)}
        home = _home(name, module)
        if home is not None:
            return f"write {home}.{name}"
        if name in _METHODS:
            return f"write {_METHODS[name]}"
        same = [lower[name.lower()]] if name.lower() in lower else []
        found = same or [lower[n] for n in difflib.get_close_matches(name.lower(), lower, n=2)]
        if not found:
            return f"dir({module}) lists what there is"
        return f"did you mean {' or '.join(f'{module}.{n}' for n in found)}?"

    return fix


def _home(name: str, lacking: str) -> str | None:
    """Return the module of ours that has a name, if one has it and is installed."""
    for module in _HOMES:
        if module != lacking and not name.startswith("_"):
            there: Any = sys.modules["plait"]
            for part in module.split(".")[1:]:
                there = getattr(there, part, None)  # None where its plugin is not installed
            if name in (getattr(there, "__all__", None) or dir(there)):
                return module
    return None
