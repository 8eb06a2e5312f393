"""Functions for TensorFlow: what is exported, as one operation of a graph of TensorFlow's.

    f_tf = plait.export.tensorflow.to_tf(f, polymorphic_shapes="b, ...")
    tf.function(f_tf)(tf.ones((4, 3)))            # runs, compiles, is saved, is differentiated

TensorFlow is imported when `to_tf` is first called.  What runs StableHLO there,
XlaCallModule, has no public name; `_run` is the only place that knows where it is.

Invariant: the operation's module takes and returns what TensorFlow is told, and is called outside
of Plait's transformations only; a derivative is Plait's, in TensorFlow's convention, or refused by
name.
"""

import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import plait
from plait.ext.errors import (
    ArgumentError,
    OperandTypeError,
    PlaitError,
    ShapeError,
    border,
    hide,
)
from plait.ext.lower import (
    known_platforms,
)
from plait.ext.sizes import (
    Dim,
    Scope,
    symbolic_dims,
)
from plait.ext.trace import (
    GROUND,
    current,
)
from plait.ext.tree import (
    flatten,
    key_paths,
    spread,
)
from plait.ext.types import (
    Aval,
    ShapeDtypeStruct,
    float0,
)
from plait.ext.values import (
    as_value,
    is_tracer,
)

from .artifact import Exported
from .errors import NotExportable
from .portable import ASSERTION
from .symbols import filled
from .writing import export

_NEWEST = 10
"""The version of the operation that is asked for; older releases of TensorFlow have older ones."""


@cache
def _tensorflow() -> Any:
    """TensorFlow.  Raises PlaitError if it is not installed."""
    try:
        import tensorflow as found  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as e:
        if e.name != "tensorflow":
            raise
        raise PlaitError(
            "plait.export.tensorflow calls TensorFlow, which is not installed",
            fix='python -m pip install "plait-export[tensorflow]"',
        ) from None
    hide(os.path.dirname(str(found.__file__)))  # it lies between a user's line and ours
    return found


@border
def to_tf(
    fun: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    platforms: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """A function of TensorFlow's values that computes what `fun` does of arrays.

    Args:
      fun: a function of arrays, in trees, jitted or not, with whatever transformations in it.
      polymorphic_shapes: names for the sizes of the arguments, as `symbolic_args_specs` takes them:
        a text for all of them, or a tuple with a text, a tree of texts, or None for each.  Sizes
        that TensorFlow does not know, which are None in its shapes, need a name.
      polymorphic_constraints: what is known of these sizes, such as "b >= 8".
      with_gradient: whether TensorFlow may differentiate it: in reverse mode and as often as it
        likes, and once after it was saved and loaded again; this needs plait-autodiff.  If not,
        doing so is an error there that names `fun`.
      platforms: where it may run: "cpu", "cuda", "rocm", "tpu".  By default that of this process.

    Returns a function of trees of tensors, variables, numpy arrays and numbers, that returns a
    tree of tensors, eagerly and in `tf.function`.  `fun` is traced when it is called with types
    that are new to it, and never computed by Plait.  Types without values (`float0`) are booleans
    in TensorFlow.  Save what calls it with `tf.saved_model.SaveOptions(
    experimental_custom_gradients=True)`, to differentiate it when it is loaded.

    Raises PlaitError if TensorFlow is not installed.  When called, raises NotExportable inside a
    transformation of Plait's and for what has no portable form; ShapeError for an argument with
    unknown sizes that are not named, OperandTypeError for one of a type that only one side has, and
    what tracing raises.

    >>> import numpy as np, plait
    >>> double = plait.export.tensorflow.to_tf(lambda x: 2 * x)  # doctest: +SKIP
    >>> double(np.ones(2))  # doctest: +SKIP
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([2., 2.])>
    """
    if not callable(fun):
        raise ArgumentError(f"to_tf needs a function, not {fun!r}", fix="write to_tf(f)(*args)")
    tf = _tensorflow()
    wanted = None if platforms is None else known_platforms(platforms)
    traceable = fun if hasattr(fun, "clear_cache") else plait.jit(fun)
    name = getattr(fun, "__name__", type(fun).__name__)
    name = "lambda" if name == "<lambda>" else name
    made: dict[Any, _Operation] = {}

    @border
    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten(_plain((args, kwargs)))
        if current() is not GROUND or any(map(is_tracer, leaves)):
            raise NotExportable(
                f"{name} was converted for TensorFlow, and is called inside a transformation",
                fix="transform first, and convert that: to_tf(plait.grad(f))",
            )
        paths = _paths(args, kwargs)
        operands = [_tensor(x, p) for x, p in zip(leaves, paths, strict=True)]
        scope = Scope(polymorphic_constraints)
        texts = _texts(polymorphic_shapes, args, tree.num_leaves)
        types = [
            _type(x, t, text, p, scope)
            for x, t, text, p in zip(leaves, operands, texts, paths, strict=True)
        ]
        key = tree, tuple([(str(t.shape), t.dtype, t.weak_type) for t in types])
        if key not in made:
            told_args, told_kwargs = tree.unflatten(types)
            exporting = export(traceable, platforms=wanted, libraries=False)
            made[key] = _Operation(traceable, exporting(*told_args, **told_kwargs), with_gradient)
        operation = made[key]
        return operation.exported.out_tree.unflatten(operation(operands))

    called.__name__ = called.__qualname__ = name
    return tf.autograph.experimental.do_not_convert(called)


def save(exported: Exported, folder: str, arguments: Sequence[str], results: Sequence[str]) -> None:
    """Write a function of flat arguments as a SavedModel, whose signature `serve` takes tensors by
    name and returns a dictionary of tensors.

    Args:
      exported: the function; with the derivative that it holds TensorFlow differentiates it once.
      folder: where it is written.
      arguments, results: names of the arguments and results; what no name in Python has becomes _.

    Raises PlaitError if TensorFlow is not installed, NotExportable for a function that calls the
    libraries of a platform, and OperandTypeError for types that TensorFlow has not.
    """
    tf = _tensorflow()
    foreign = [name for name in exported.custom_calls if name != ASSERTION]
    if foreign:
        raise NotExportable(
            f"{exported.fun_name} calls functions that TensorFlow has not: {', '.join(foreign)}",
            fix="export it without: plait.export.export(f, libraries=False)",
        )
    ins, outs = _identifiers(arguments), _identifiers(results)
    taken = [
        tf.TensorSpec([n if n.__class__ is int else None for n in a.shape], _dtype(a, p), name)
        for a, p, name in zip(exported.in_avals, arguments, ins, strict=True)
    ]

    def serve(*args):
        found = _with_derivative(exported, args)
        return dict(zip(outs, found, strict=True))

    serve.__name__ = exported.fun_name
    module = tf.Module()
    module.serve = tf.function(serve, input_signature=taken, autograph=False)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, folder, signatures={"serve": module.serve}, options=options)


def _identifiers(names: Sequence[str]) -> list[str]:
    """Names that TensorFlow takes, each once."""
    found: list[str] = []
    for name in names:
        name = re.sub(r"\W+", "_", name).strip("_") or "_"
        while name in found:
            name += "_"
        found.append(name)
    return found


def _with_derivative(exported: Exported, args: Sequence[Any]) -> list[Any]:
    """The results, which can be differentiated if the function holds a derivative."""
    if not exported.has_vjp():
        return _refusing(exported, args, f"{exported.fun_name} was saved without its derivative")

    def reverse(args: Sequence[Any], outs: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        inexact, nothing = iter(cts), _tensorflow().bool
        given = [
            next(inexact) if a.inexact else _tensorflow().zeros_like(o, nothing)
            for o, a in zip(outs, exported.out_avals, strict=True)
        ]
        found = _run(exported.vjp(), [*args, *given])
        return [ct for ct, a in zip(found, exported.in_avals, strict=True) if a.inexact]

    return _differentiable(exported, args, reverse)


# ---- one operation -------------------------------------------------------------------------


def _refusing(exported: Exported, args: Sequence[Any], said: str) -> list[Any]:
    """The results, which TensorFlow refuses to differentiate, and says why."""
    prevent = _tensorflow().raw_ops.PreventGradient
    return [prevent(input=o, message=said) for o in _run(exported, args)]


def _differentiable(
    exported: Exported, args: Sequence[Any], reverse: Callable[..., Sequence[Any]]
) -> list[Any]:
    """The results, which TensorFlow can differentiate.

    TensorFlow's cotangents are the complex conjugates of ours: it multiplies by the conjugate of a
    holomorphic derivative.

    Args:
      exported: the function.
      args: its arguments.
      reverse: (arguments, results, cotangents of the inexact results) -> cotangents of the inexact
        arguments, all as ours are.
    """
    tf = _tensorflow()
    ins = [i for i, a in enumerate(exported.in_avals) if a.inexact]

    @tf.custom_gradient
    def differentiable(*args):
        outs = [tf.identity(o) for o in _run(exported, args)]

        def gradient(*cts, variables=None):
            given = [
                _conjugate(tf.zeros_like(o) if ct is None else ct)
                for o, ct, a in zip(outs, cts, exported.out_avals, strict=True)
                if a.inexact
            ]
            found = map(_conjugate, reverse(args, outs, given))
            return [*map(dict(zip(ins, found)).get, range(len(args)))]

        return tuple(outs), gradient

    return list(differentiable(*args))


class _Operation:
    """An exported function, called on tensors; its derivative is exported when it is first asked
    for.

    Attributes:
      fun: the function that was exported.
      exported: it.
      with_gradient: whether it has a derivative.
    """

    __slots__ = ("fun", "exported", "with_gradient", "_ins", "_outs", "_pullback")

    def __init__(self, fun: Callable[..., Any], exported: Exported, with_gradient: bool):
        for avals, paths in ((exported.in_avals, exported.paths), (exported.out_avals, None)):
            for i, a in enumerate(avals):
                _dtype(a, "the result" if paths is None else paths[i])
        self.fun, self.exported, self.with_gradient = fun, exported, with_gradient
        self._ins = [i for i, a in enumerate(exported.in_avals) if a.inexact]
        self._outs = [i for i, a in enumerate(exported.out_avals) if a.inexact]
        self._pullback: _Operation | None = None

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """The results, flat."""
        exported = self.exported
        if not self.with_gradient:
            said = f"{exported.fun_name} was converted with to_tf(..., with_gradient=False)"
            return _refusing(exported, args, said)
        if not self._ins or not self._outs:
            return _run(exported, args)
        return _differentiable(exported, args, self._cotangents)

    def _cotangents(self, args: Sequence[Any], outs: Sequence[Any], cts: Sequence[Any]) -> Any:
        """Cotangents of the inexact arguments."""
        if self._pullback is None:
            self._pullback = self._reversed()
        return self._pullback([*args, *cts])

    def _reversed(self) -> "_Operation":
        """The operation of (arguments, cotangents of the inexact results), which returns cotangents
        of the inexact arguments."""
        fun, exported, ins, outs = self.fun, self.exported, self._ins, self._outs

        def pullback(xs: list, cts: list) -> list:
            def chosen(*inexact: Any) -> list:
                every = list(xs)
                for i, x in zip(ins, inexact, strict=True):
                    every[i] = x
                args, kwargs = exported.in_tree.unflatten(every)
                results = flatten(fun(*args, **kwargs))[0]
                return [results[i] for i in outs]

            return list(plait.vjp(chosen, *[xs[i] for i in ins])[1](cts))

        pullback.__name__ = f"pullback_of_{exported.fun_name}"
        types = [_said(a) for a in exported.in_avals]
        cotangents = [_said(exported.out_avals[i].strong()) for i in outs]
        made = export(pullback, platforms=exported.platforms, libraries=False)
        return _Operation(plait.jit(pullback), made(types, cotangents), True)


def _said(aval: Aval) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def _conjugate(x: Any) -> Any:
    return _tensorflow().math.conj(x) if x.dtype.is_complex else x


def _run(exported: Exported, args: Sequence[Any]) -> list[Any]:
    """The results of an exported function of tensors, by XlaCallModule."""
    xla = _xla()
    version = min(_NEWEST, xla.call_module_maximum_supported_version())
    more = {"use_shardy_partitioner": True} if version >= 10 else {}
    outs = exported.out_avals
    return list(
        xla.call_module(
            tuple(args),
            version=version,
            module=exported.mlir_module_serialized,
            Tout=[_dtype(a, "the result") for a in outs],
            Sout=[tuple([n if n.__class__ is int else None for n in a.shape]) for a in outs],
            platforms=[p.upper() for p in exported.platforms],
            function_list=[],
            has_token_input_output=False,
            disabled_checks=[],
            **more,
        )
    )


@cache
def _xla() -> Any:
    """The module of TensorFlow's that has `call_module`."""
    _tensorflow()
    try:
        from tensorflow.compiler.tf2xla.python import (  # pyright: ignore[reportMissingImports]
            xla,
        )
    except ImportError as e:
        raise PlaitError(
            f"this release of TensorFlow does not run StableHLO where others do: {e}",
            fix='python -m pip install --upgrade "plait-export[tensorflow]"',
        ) from None
    return xla


# ---- arguments -----------------------------------------------------------------------------


def _plain(x: Any) -> Any:
    """A tree without the containers that TensorFlow puts in the place of those that modules
    hold."""
    cls = type(x)
    if cls in (dict, list, tuple) or cls.__module__.startswith("tensorflow.python.trackable"):
        if isinstance(x, dict):
            return {k: _plain(v) for k, v in x.items()}
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return getattr(x, "__wrapped__", x)
        if isinstance(x, list | tuple):
            return (list if isinstance(x, list) else tuple)(map(_plain, x))
    return x


def _paths(args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """How every leaf is written."""
    return [f"args{p}" for p in key_paths(_plain(args))] + [
        f"kwargs{p}" for p in key_paths(_plain(kwargs))
    ]


def _tensor(x: Any, path: str) -> Any:
    """A leaf as a tensor."""
    tf = _tensorflow()
    if getattr(x, "dtype", None) == float0:
        return tf.zeros(x.shape, tf.bool)
    try:
        return tf.convert_to_tensor(x)
    except (TypeError, ValueError) as e:
        raise OperandTypeError(
            f"{path} is {x!r}, of which no tensor can be made: {str(e).splitlines()[0]}",
            fix="pass tensors, variables, numpy arrays and numbers, in trees",
        ) from None


def _texts(shapes: Any, args: tuple, count: int) -> list[str | None]:
    """What is said of the sizes of each leaf; nothing, of those of arguments by name."""
    if shapes is None:
        return [None] * count
    if isinstance(shapes, list):
        shapes = tuple(shapes)
    is_text = lambda t: t is None or isinstance(t, str)  # noqa: E731
    found = spread(shapes, _plain(args), "polymorphic_shapes", is_text, "a text or None")
    return [*found, *[None] * (count - len(found))]


def _type(x: Any, tensor: Any, text: str | None, path: str, scope: Scope) -> ShapeDtypeStruct:
    """The type of an argument, with the names that are given to its sizes."""
    dtype, weak = _our_dtype(x, tensor, path)
    if tensor.shape.rank is None:
        raise ShapeError(
            f"{path} has a shape of which TensorFlow does not know how many axes it has",
            fix=f"tell it with tf.ensure_shape, or an input_signature; here it is {path}",
        )
    shape = tensor.shape.as_list()
    try:
        texts = filled("..." if text is None else text, shape)
        sizes = symbolic_dims(", ".join(texts).replace("None", "0"), scope)
    except PlaitError as e:
        raise ShapeError(f"polymorphic_shapes of {path}: {e.what}", fix=e.fix) from None
    known = [n is not None or d.__class__ is Dim for n, d in zip(shape, sizes)]
    if not all(known):
        raise ShapeError(
            f"{path} has the shape {tuple(shape)}, and polymorphic_shapes gives no name for its "
            f"axis {known.index(False)}",
            fix='name every size that TensorFlow does not know, as in polymorphic_shapes="b, ..."',
        )
    told = len(sizes) == len(shape) and all(n == d or n is None or d.__class__ is Dim
                                            for n, d in zip(shape, sizes))  # fmt: skip
    if not told:
        raise ShapeError(
            f"{path} has the shape {tuple(shape)}, and polymorphic_shapes says {text!r}",
            fix="write as many sizes as there are axes, each a number that it has, a name, or '_'",
        )
    return ShapeDtypeStruct(sizes, dtype, weak_type=weak)


def _our_dtype(x: Any, tensor: Any, path: str) -> tuple[Any, bool]:
    """(dtype, whether it is a Python number's)."""
    if getattr(x, "dtype", None) == float0:
        return float0, False
    if x.__class__ in (bool, int, float, complex):
        aval = as_value(x).aval
        return aval.dtype, aval.weak_type
    try:
        return Aval((), tensor.dtype.as_numpy_dtype).dtype, False
    except (PlaitError, TypeError, ValueError, AttributeError):
        raise OperandTypeError(
            f"{path} is a tensor of {tensor.dtype.name}, which Plait has not",
            fix="pass booleans and numbers; do with others what is to be done in TensorFlow",
        ) from None


def _dtype(aval: Aval, where: str) -> Any:
    """The dtype that TensorFlow has for a type of ours."""
    tf = _tensorflow()
    if aval.dtype == float0:
        return tf.bool
    try:
        return tf.as_dtype(aval.dtype)
    except (TypeError, KeyError):
        raise OperandTypeError(
            f"TensorFlow has no {aval.dtype.name}, of which {where} is",
            fix="take and return others: plait.random.key_data(key) for a key, astype for numbers",
        ) from None
