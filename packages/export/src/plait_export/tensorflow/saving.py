"""SavedModels, which TensorFlow loads, serves, trains and differentiates without Plait.

Invariant: saved functions have names and call only functions that TensorFlow has; parameters are
variables, not constants.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import plait
from plait.ext.errors import ArgumentError, border
from plait.ext.lower import known_platforms
from plait.ext.tree import flatten, key_paths
from plait.ext.types import Aval, ShapeDtypeStruct

from ..artifact import Exported
from ..errors import NotExportable
from ..portable import ASSERTION
from ..writing import export
from .arguments import dtype_of
from .library import tensorflow, tf
from .operations import Graph, Module, Operation, differentiable, refusing, shape_there

SIGNATURE = "serving_default"
"""TensorFlow's name for the only function of a model."""


@border
def save(
    folder: str,
    fun: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    params: Any,
    types: Any,
    *,
    names: Any = None,
    with_gradient: bool = True,
    enable_graph: bool = False,
    platforms: Sequence[str] | None = None,
) -> None:
    """Write functions of parameters and arguments as a SavedModel: `fun(params, *args)`.

    Parameters become variables, `model.params`, in the same tree; those of inexact dtypes are
    trainable.  Every function becomes a function of the model, `model.NAME`, and a signature, which
    takes tensors by name and returns a dictionary of tensors.

    Args:
      folder: the folder to write.
      fun: a function of (params, *args), or a dictionary of functions by name; a single one is
        named "serving_default".
      params: a tree of arrays.
      types: a tuple of the arguments after `params`: trees of arrays or ShapeDtypeStructs, whose
        sizes may be symbolic (`symbolic_args_specs`).  For several functions, a dictionary of such
        tuples by function name.
      names: names for the leaves of these arguments; for several functions, a dictionary.  By
        default the function's parameter name and the path to the leaf: `x`, `batch_image`.  Results
        are named by their paths, with `out_` in front if that is not a name: `logits`, `out_0`.
      with_gradient: whether the loaded model can be differentiated; see `to_tf`.
      enable_graph: whether it consists of TensorFlow's ordinary operations; see `to_tf`.
      platforms: where it may run; by default the platform of this process.

    Raises ArgumentError for too few, too many or repeated names, and what `to_tf` raises, such as
    NotExportable for a function without a portable form.

    >>> import numpy as np, plait
    >>> w = np.ones((3, 2), np.float32)
    >>> x = plait.export.symbolic_args_specs(np.ones((4, 3), np.float32), "batch, 3")
    >>> plait.export.tensorflow.save(  # doctest: +SKIP
    ...     "model", lambda w, x: plait.numpy.tanh(x @ w), w, (x,))
    """
    tensorflow()
    several = isinstance(fun, Mapping)
    functions = dict(fun) if several else {SIGNATURE: fun}
    given = types if several else {SIGNATURE: types}
    said = (names if several else {SIGNATURE: names}) or {}
    if several and (not isinstance(types, Mapping) or set(types) != set(functions)):
        raise ArgumentError(
            f"there are functions {', '.join(functions)}, and types are not given for these",
            fix="write types={name: (type, ...)}, with the names of the functions",
        )
    wanted = None if platforms is None else known_platforms(platforms)
    leaves, tree = flatten(params)
    model = tf.Module()
    for name in functions:
        _expect_free(name, model)
    held = [_variable(x, f"params{p}") for x, p in zip(leaves, key_paths(params), strict=True)]
    model.params = tree.unflatten(held)
    kind = Graph if enable_graph else Module
    for name, f in functions.items():
        specs = [given[name]] if not isinstance(given[name], tuple | list) else given[name]
        traceable = f if hasattr(f, "clear_cache") else plait.jit(f)
        known = tree.unflatten([ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype) for x in leaves])
        module = kind(export(traceable, platforms=wanted, libraries=False)(known, *specs))
        operation = Operation(traceable, module, with_gradient)
        ins = argument_names(said.get(name), f, module.exported, len(held))
        setattr(model, name, served(operation, held, ins))
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=with_gradient)
    signatures = {name: getattr(model, name) for name in functions}
    tf.saved_model.save(model, str(folder), signatures=signatures, options=options)


_TAKEN = ("params", "signatures", "tensorflow_version", "tensorflow_git_version")
"""Attributes of models besides those of `tf.Module`."""


def _expect_free(name: str, model: object) -> None:
    """Raise ArgumentError for a name that a function of a model cannot have."""
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{name!r} is not the name of a function",
                            fix='write {"predict": fun}')  # fmt: skip
    if name in _TAKEN or hasattr(model, name):
        raise ArgumentError(
            f"a function of the model is named {name!r}, and models have something else there",
            fix=f'give it another name: {{"{name}_": fun}}',
        )


def _variable(x: Any, path: str) -> Any:
    """Return a parameter as a variable."""
    x = np.asarray(x)
    dtype = dtype_of(Aval(x.shape, x.dtype), path)
    name = _identifiers([path])[0]
    return tf.Variable(x, dtype=dtype, name=name, trainable=Aval((), x.dtype).inexact)


def served(operation: Operation, held: Sequence[Any], names: Sequence[str]) -> Any:
    """Return a `tf.function` of the arguments after the parameters, which are variables."""
    exported = operation.module.exported
    outs = result_names(exported)
    avals = exported.in_avals[len(held) :]
    taken = [tf.TensorSpec(shape_there(a), dtype_of(a, n), n) for a, n in zip(avals, names)]

    def serve(*args: object) -> dict[str, Any]:
        return dict(zip(outs, operation([*[v.value() for v in held], *args]), strict=True))

    serve.__name__ = exported.fun_name
    return tf.function(serve, input_signature=taken, autograph=False)


def argument_names(said: Any, f: Any, exported: Exported, params: int) -> list[str]:
    """Return names for the arguments after the parameters.

    Raises ArgumentError for given names that are too few, too many, repeated or invalid.
    """
    paths = exported.paths[params:]
    if said is None:
        return _identifiers([_as_named(p, f) for p in paths])
    found = [said] if isinstance(said, str) else list(said)
    if len(found) != len(paths) or len(set(found)) != len(found) or found != _identifiers(found):
        raise ArgumentError(
            f"names says {', '.join(map(str, found))}, and {exported.fun_name} takes "
            f"{', '.join(paths) or 'nothing'} after its parameters",
            fix="give each leaf of the arguments a name of its own, of letters, digits and _",
        )
    return found


def _as_named(path: str, f: object) -> str:
    """Return a path such as `args[1]['a']` with the function's own name for the argument."""
    found = re.match(r"args\[(\d+)\]", path)
    code = getattr(getattr(f, "__wrapped__", f), "__code__", None)
    if found is None or code is None or int(found[1]) >= code.co_argcount:
        return path
    return code.co_varnames[int(found[1])] + path[found.end() :]


def result_names(exported: Exported) -> list[str]:
    n = exported.out_tree.num_leaves
    said = key_paths(exported.out_tree.unflatten(range(n)))
    plain = [re.sub(r"\W+", "_", p).strip("_") for p in said]
    return _identifiers([p if p[:1].isalpha() else f"out_{p}" for p in plain])


def _identifiers(names: Sequence[str]) -> list[str]:
    """Return unique names of the characters that TensorFlow accepts."""
    found: list[str] = []
    for name in names:
        name = re.sub(r"\W+", "_", name).strip("_") or "_"
        while name in found:
            name += "_"
        found.append(name)
    return found


def save_artifact(
    exported: Exported, folder: str, arguments: Sequence[str], results: Sequence[str]
) -> None:
    """Write a function of flat arguments as a SavedModel with the signature `serve`.

    The signature takes tensors by name and returns a dictionary of tensors.

    Args:
      exported: the function; if it holds its derivative, TensorFlow can differentiate it once.
      folder: the folder to write.
      arguments, results: names of the arguments and results; characters that Python's names cannot
        contain become _.

    Raises PlaitError if TensorFlow is not installed, and NotExportable for a function that calls
    the libraries of a platform.  Raises OperandTypeError for types that TensorFlow does not have.
    """
    tensorflow()
    foreign = [name for name in exported.custom_calls if name != ASSERTION]
    if foreign:
        raise NotExportable(
            f"{exported.fun_name} calls functions that TensorFlow has not: {', '.join(foreign)}",
            fix="export it without: plait.export.export(f, libraries=False)",
        )
    ins, outs = _identifiers(arguments), _identifiers(results)
    module = Module(exported)
    taken = [
        tf.TensorSpec(shape_there(a), dtype_of(a, p), name)
        for a, p, name in zip(exported.in_avals, arguments, ins, strict=True)
    ]

    def serve(*args: object):
        found = _with_derivative(module, args)
        return dict(zip(outs, found, strict=True))

    serve.__name__ = exported.fun_name
    model = tf.Module()
    model.serve = tf.function(serve, input_signature=taken, autograph=False)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(model, folder, signatures={"serve": model.serve}, options=options)


def _with_derivative(module: Module, args: Sequence[Any]) -> list[Any]:
    """Return the results, differentiable if the function holds a derivative."""
    exported = module.exported
    if not exported.has_vjp():
        return refusing(module, args, f"{exported.fun_name} was saved without its derivative")

    def reverse(args: Sequence[Any], outs: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        inexact = iter(cts)
        given = [
            next(inexact) if a.inexact else tf.zeros_like(o, tf.bool)
            for o, a in zip(outs, exported.out_avals, strict=True)
        ]
        found = Module(exported.vjp()).run([*args, *given])
        return [ct for ct, a in zip(found, exported.in_avals, strict=True) if a.inexact]

    return differentiable(module, args, reverse)
