"""`from_tf`: conversion of a function of TensorFlow to one of Plait, through StableHLO.

Invariant: TensorFlow's module is checked against the requested types.  StableHLO does not hold the
user's derivatives (`tf.custom_gradient`).  TensorFlow computes them, unless the user permits that
they are dropped.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import plait
from plait.ext.errors import ArgumentError, ShapeError, border
from plait.ext.lower import lock
from plait.ext.sizes import is_symbolic
from plait.ext.trace import name_of
from plait.ext.tree import flatten
from plait.ext.types import Aval, float0
from plait.ext.values import as_value

from .. import portable
from ..artifact import Exported
from ..errors import NotReadable
from ..loading import with_rules
from ..writing import default_export_platform
from .arguments import dtype_of, paths_of, plain_tree
from .compiled import result_shapes, stablehlo_of, unsaid
from .library import tensorflow, tf
from .tapes import pullback_of, traced


class _Flat:
    """A function of flat tensors, compiled for given types.

    Attributes:
      name: its name.
      fun: the function.
      exported: the function of its arguments, followed by the captured values.
      captured: the variables that it reads, and other tensors that TensorFlow makes arguments.
      variables: the variables among them.
      types: the types of its arguments.
    """

    __slots__ = ("name", "fun", "exported", "captured", "variables", "types", "_back")

    def __init__(
        self, name: str, fun: Callable[..., list[Any]], exported: Exported,
        captured: Sequence[Any], variables: Sequence[Any],
    ):  # fmt: skip
        self.name, self.fun, self.exported = name, fun, exported
        self.captured, self.variables = tuple(captured), tuple(variables)
        self.types = exported.in_avals[: len(exported.in_avals) - len(self.captured)]
        self._back: _Flat | None = None

    def pullback(self) -> "_Flat":
        """Return the function that computes its cotangents by a tape; see `pullback_of`."""
        if self._back is None:
            outs = self.exported.out_avals
            back = pullback_of(self.name, self.fun, self.types, outs, self.variables)
            types = [*self.types, *[o for o in outs if o.inexact]]
            taken = [tf.TensorSpec(a.shape, dtype_of(a, "an argument")) for a in types]
            self._back = _compiled(back.__name__, back, types, taken, False)
        return self._back


class _Read(NamedTuple):
    """A function for given types, with the structure of its results."""

    flat: _Flat
    out_tree: Any


class FromTensorFlow:
    """A function of TensorFlow as a function of arrays.

    It may be called inside any transformation.  `f(*args)` reads the variables when it is called,
    and so when it is traced; `f.of(values, *args)` takes their values as its first argument, and
    `f.variables(*args)` returns them.
    """

    __slots__ = ("fun", "lose_custom_rules", "_read", "__name__", "__weakref__")
    fun: Callable[..., Any]
    lose_custom_rules: bool
    __name__: str

    def __init__(self, fun: Callable[..., Any], lose_custom_rules: bool):
        self.fun, self.lose_custom_rules = fun, lose_custom_rules
        self._read: dict[Any, _Read] = {}
        self.__name__ = name_of(fun)

    @border
    def __call__(self, *args: Any, **kwargs: object) -> Any:
        """Return the result for the current values of the variables."""
        read = self._for(args, kwargs)
        return self._called(read, [v.numpy() for v in read.flat.variables], args, kwargs)

    @border
    def variables(self, *args: object, **kwargs: object) -> list[Any]:
        """Return the values of the variables that it reads for arguments of these types."""
        return [plait.numpy.asarray(v.numpy()) for v in self._for(args, kwargs).flat.variables]

    @border
    def of(self, variables: Sequence[Any], *args: object, **kwargs: object) -> Any:
        """Return the result for other values of the variables.

        It can be differentiated with respect to them.
        """
        read = self._for(args, kwargs)
        held = read.flat.variables
        if len(variables) != len(held):
            names = ", ".join(v.name for v in held)
            raise ArgumentError(
                f"{self.__name__} reads {len(held)} variables, and {len(variables)} "
                f"values are given: {names or 'it reads none'}",
                fix="give a list of values, as f.variables(*args) returns",
            )
        return self._called(read, list(variables), args, kwargs)

    def _called(self, read: _Read, values: list[Any], args: tuple, kwargs: dict) -> Any:
        leaves = flatten((args, kwargs))[0]
        xs = [*leaves, *_besides(read.flat, values)]
        return read.out_tree.unflatten(_applied(read.flat, xs))

    def _for(self, args: tuple, kwargs: dict) -> _Read:
        leaves, tree = flatten((args, kwargs))
        avals = [as_value(x).aval.strong() for x in leaves]
        for aval, path in zip(avals, paths_of(args, kwargs), strict=True):
            if is_symbolic(aval.shape):
                raise ShapeError(
                    f"{path} is {aval!r}, and TensorFlow says StableHLO of known sizes only",
                    fix="call it with sizes that are numbers, or by call_tf",
                )
        key = tree, tuple(avals)
        if key not in self._read:
            self._read[key] = self._asked(tree, avals, paths_of(args, kwargs))
        return self._read[key]

    def _asked(self, tree: Any, avals: Sequence[Aval], paths: Sequence[str]) -> _Read:
        """Compile the function with TensorFlow, and read its StableHLO."""
        said: list[Any] = []

        def flat(*leaves: Any) -> list[Any]:
            args, kwargs = tree.unflatten(leaves)
            outs, out_tree = flatten(plain_tree(self.fun(*args, **kwargs)))
            said[:] = [out_tree]
            return [tf.convert_to_tensor(o) for o in outs]

        taken = [tf.TensorSpec(a.shape, dtype_of(a, p)) for a, p in zip(avals, paths, strict=True)]
        return _Read(_compiled(self.__name__, flat, avals, taken, self.lose_custom_rules), said[0])


def _compiled(
    name: str,
    flat: Callable[..., list[Any]],
    avals: Sequence[Aval],
    taken: Sequence[Any],
    lose: bool,
) -> _Flat:
    """Compile a function of flat tensors with TensorFlow, and read its StableHLO."""
    function = tf.function(flat, jit_compile=True, autograph=False)
    concrete = traced(name, function, taken)
    _expect_results_only(name, concrete)
    # Errors of the user's function were raised above, so an error here is the compiler's.
    code = stablehlo_of(name, function, taken)
    shapes = result_shapes(name, code, concrete.outputs)
    held = {id(v.handle): v for v in concrete.graph.variables}
    captured = [held.get(id(c), c) for c in concrete.captured_inputs]
    read = [c for c in captured if any(c is v for v in held.values())]
    ins = [*avals, *[Aval(tuple(v.shape), v.dtype.as_numpy_dtype) for v in captured]]
    outs = [Aval(s, o.dtype.as_numpy_dtype) for s, o in zip(shapes, concrete.outputs, strict=True)]
    rules = () if not any(_custom(concrete.graph)) else ("tf.custom_gradient of a function",)
    exported = with_rules(_exported(name, code, ins, outs, rules), lose)
    return _Flat(name, flat, exported, captured, read)


def _besides(flat: _Flat, values: Sequence[Any]) -> list[Any]:
    """Return the captured values of a function, for these values of its variables."""
    given = dict(zip(map(id, flat.variables), values, strict=True))
    return [given[id(c)] if id(c) in given else c.numpy() for c in flat.captured]


def _applied(flat: _Flat, xs: Sequence[Any]) -> list[Any]:
    """Apply a function to flat arrays and captured values.

    TensorFlow differentiates a function with custom derivatives, in reverse mode and to any order
    that it has.
    """
    exported = flat.exported
    if not exported.custom_rules or exported.rules_may_go:
        return exported.call(*xs)
    differentiable = plait.custom_vjp(lambda *ys: exported.call(*ys))
    differentiable.defvjp(
        lambda *ys: (_applied(flat, ys), ys), lambda ys, cts: _cotangents(flat, ys, cts)
    )
    return differentiable(*xs)


def _cotangents(flat: _Flat, xs: Sequence[Any], cts: Sequence[Any]) -> tuple:
    """Return the cotangents of the arguments and captured values, by a tape of TensorFlow."""
    exported, front, back = flat.exported, len(flat.types), flat.pullback()
    seeds = [ct for ct, o in zip(cts, exported.out_avals, strict=True) if o.inexact]
    values = dict(zip(map(id, flat.captured), xs[front:], strict=True))
    besides = _besides(back, [values[id(v)] for v in back.variables])
    found = iter(_applied(back, [*xs[:front], *seeds, *besides]))
    of_args = [next(found) if a.inexact else np.zeros(a.shape, float0) for a in flat.types]
    held = [v for v in flat.variables if Aval((), v.dtype.as_numpy_dtype).inexact]
    of_variables = {id(v): next(found) for v in held}
    zeros = [plait.numpy.zeros(a.shape, a.dtype) if a.inexact else np.zeros(a.shape, float0)
             for a in exported.in_avals[front:]]  # fmt: skip
    return *of_args, *[of_variables.get(id(c), z) for c, z in zip(flat.captured, zeros)]


def _expect_results_only(name: str, concrete: Any) -> None:
    """Refuse a function that changes variables, with NotReadable."""
    written = sorted({op.type for op in _operations(concrete.graph) if _WRITES.match(op.type)})
    if written:
        raise NotReadable(
            f"{name} writes variables, by {', '.join(written)}, and only results are read",
            fix="return the new values, and assign them where it is called",
        )


_WRITES = re.compile(r"Assign\w*VariableOp|Resource(Scatter|Apply|StridedSliceAssign)")
"""Operations that change variables."""


def _operations(graph: Any) -> Iterator[Any]:
    """Yield the operations of a graph and of its functions."""
    inner = [f.graph for f in graph._functions.values() if hasattr(f, "graph")]
    for g in (graph, *inner):
        yield from g.get_operations()


def _exported(
    name: str, code: bytes, ins: Sequence[Aval], outs: Sequence[Aval], rules: Sequence[str]
) -> Exported:
    """Return TensorFlow's module as an `Exported`.

    Raises NotReadable if it takes or returns other types, or has custom calls.
    """
    artifact, _ = portable.rewritten(portable.artifact_of(code, False), False)
    with lock:
        module = portable.parsed(artifact)
        fits, calls = portable.is_for(module, ins, outs, False), portable.custom_calls(module)
    if not fits or calls:
        why = f"it calls {', '.join(calls)}" if calls else "it takes or returns something else"
        raise unsaid(name, why)
    trees = [flatten(t)[1] for t in (((0,) * len(ins), {}), [0] * len(outs))]
    return Exported(
        name, ins, trees[0], outs, trees[1], (default_export_platform(),), None, artifact, (),
        False, custom_rules=rules,
    )  # fmt: skip


def _custom(graph: Any) -> Iterator[Any]:
    """Return the operations with custom gradients, also those in functions of the graph."""
    return (op for op in _operations(graph) if "_gradient_op_type" in op.node_def.attr)


@border
def from_tf(fun: Callable[..., Any], *, lose_custom_rules: bool = False) -> FromTensorFlow:
    """Convert a function of TensorFlow to one of Plait, through StableHLO that TensorFlow makes.

    Args:
      fun: a function of trees of tensors, which may read variables.  TensorFlow compiles it
        (`jit_compile=True`) for each list of types.
      lose_custom_rules: whether its custom derivatives (`tf.custom_gradient`, as in `tf.nn.silu`)
        may be replaced by derivatives of its operations, which have any order and mode.  By
        default TensorFlow's tapes differentiate such a function, in reverse mode only.

    Returns a function of trees of arrays.  It is read back as a program, so all transformations
    apply to it as to any other.

    Raises PlaitError if TensorFlow is not installed.  When called, raises ShapeError for symbolic
    sizes, and OperandTypeError for types that TensorFlow does not have.  Raises NotReadable for
    functions that it cannot lower to StableHLO, and what `fun` raises.

    >>> import numpy as np, plait
    >>> import tensorflow as tf  # doctest: +SKIP
    >>> f = plait.export.tensorflow.from_tf(tf.math.lgamma)  # doctest: +SKIP
    >>> plait.grad(f)(np.float32(2))  # doctest: +SKIP
    Array(0.4227843, dtype=float32)
    """
    tensorflow()
    if not callable(fun):
        raise ArgumentError(f"from_tf needs a function, not {fun!r}", fix="write from_tf(f)(*args)")
    return FromTensorFlow(fun, lose_custom_rules)
