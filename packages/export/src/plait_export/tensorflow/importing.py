"""`from_tf`: conversion of a function of TensorFlow to one of Plait, through StableHLO.

Invariant: TensorFlow's module is checked against the requested types.  StableHLO does not hold the
user's derivatives (`tf.custom_gradient`); they are dropped only with the user's permission.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import plait
from plait.ext.errors import ArgumentError, ShapeError, border
from plait.ext.lower import lock, mlir
from plait.ext.sizes import is_symbolic
from plait.ext.trace import name_of
from plait.ext.tree import flatten
from plait.ext.types import Aval
from plait.ext.values import as_value

from .. import portable
from ..artifact import Exported
from ..errors import NotReadable
from ..loading import with_rules
from ..writing import default_export_platform
from .arguments import dtype_of, paths_of, plain_tree
from .library import tensorflow, tf


class _Read(NamedTuple):
    """A function for given types.

    Attributes:
      exported: the function of the flat arguments, followed by the captured values.
      captured: the variables that it reads, and other tensors that TensorFlow makes arguments.
      variables: the variables among them.
      out_tree: the structure of its results.
    """

    exported: Exported
    captured: tuple[Any, ...]
    variables: tuple[Any, ...]
    out_tree: Any


class FromTensorFlow:
    """A function of TensorFlow as a function of arrays.

    It may be called inside any transformation.  `f(*args)` reads the variables when it is called,
    and so when it is traced; `f.of(values, *args)` takes their values as its first argument, and
    `f.variables(*args)` returns them.
    """

    __slots__ = ("fun", "lose_custom_rules", "_read", "__name__", "__weakref__")

    def __init__(self, fun: Callable[..., Any], lose_custom_rules: bool):
        self.fun, self.lose_custom_rules = fun, lose_custom_rules
        self._read: dict[Any, _Read] = {}
        self.__name__ = name_of(fun)

    @border
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result for the current values of the variables."""
        read = self._for(args, kwargs)
        return self._called(read, [v.numpy() for v in read.variables], args, kwargs)

    @border
    def variables(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the values of the variables that it reads for arguments of these types."""
        return [plait.numpy.asarray(v.numpy()) for v in self._for(args, kwargs).variables]

    @border
    def of(self, variables: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Return the result for other values of the variables.

        It can be differentiated with respect to them.
        """
        read = self._for(args, kwargs)
        if len(variables) != len(read.variables):
            names = ", ".join(v.name for v in read.variables)
            raise ArgumentError(
                f"{self.__name__} reads {len(read.variables)} variables, and {len(variables)} "
                f"values are given: {names or 'it reads none'}",
                fix="give a list of values, as f.variables(*args) returns",
            )
        return self._called(read, list(variables), args, kwargs)

    def _called(self, read: _Read, values: list[Any], args: tuple, kwargs: dict) -> Any:
        leaves, given = flatten((args, kwargs))[0], iter(values)
        known = {id(v) for v in read.variables}
        besides = [next(given) if id(c) in known else c.numpy() for c in read.captured]
        return read.out_tree.unflatten(read.exported.call(*leaves, *besides))

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
        function = tf.function(flat, jit_compile=True, autograph=False)
        concrete = function.get_concrete_function(*taken)
        _expect_results_only(self.__name__, concrete)
        # Errors of the user's function were raised above, so an error here is the compiler's.
        try:
            text = function.experimental_get_compiler_ir(*taken)(stage="stablehlo")
        except (ValueError, tf.errors.OpError) as e:
            raise _unsaid(self.__name__, _why(str(e))) from None
        _expect_known_sizes(self.__name__, concrete)
        held = {id(v.handle): v for v in concrete.graph.variables}
        captured = [held.get(id(c), c) for c in concrete.captured_inputs]
        read = [c for c in captured if any(c is v for v in held.values())]
        ins = [*avals, *[Aval(tuple(v.shape), v.dtype.as_numpy_dtype) for v in captured]]
        outs = [Aval(tuple(o.shape), o.dtype.as_numpy_dtype) for o in concrete.outputs]
        rules = () if not any(_custom(concrete.graph)) else ("tf.custom_gradient of a function",)
        exported = _exported(self.__name__, text, ins, outs, rules)
        exported = with_rules(exported, self.lose_custom_rules)
        return _Read(exported, tuple(captured), tuple(read), said[0])


def _expect_results_only(name: str, concrete: Any) -> None:
    """Refuse a function that changes variables, with NotReadable."""
    written = sorted({op.type for op in _operations(concrete.graph) if _WRITES.match(op.type)})
    if written:
        raise NotReadable(
            f"{name} writes variables, by {', '.join(written)}, and only results are read",
            fix="return the new values, and assign them where it is called",
        )


def _expect_known_sizes(name: str, concrete: Any) -> None:
    for n, out in enumerate(concrete.outputs):
        if not out.shape.is_fully_defined():
            raise NotReadable(
                f"result {n} of {name} has the shape {out.shape}: its sizes depend on values",
                fix="return arrays of known sizes, padded, and how much of them is meant",
            )


_WRITES = re.compile(r"Assign\w*VariableOp|Resource(Scatter|Apply|StridedSliceAssign)")
"""Operations that change variables."""


def _operations(graph: Any) -> Iterator[Any]:
    """Yield the operations of a graph and of its functions."""
    inner = [f.graph for f in graph._functions.values() if hasattr(f, "graph")]
    for g in (graph, *inner):
        yield from g.get_operations()


def _why(said: str) -> str:
    """Shorten an error of TensorFlow's compiler to its reason."""
    missing = re.findall(r"(\w+) \(No registered", said)
    if missing:
        return f"it has no {', '.join(dict.fromkeys(missing))}"
    return said.removeprefix("Failed getting HLO text: '").partition("\n")[0]


def _unsaid(name: str, why: str) -> NotReadable:
    return NotReadable(
        f"{name} cannot be taken from TensorFlow as StableHLO: {why}",
        fix="call it as it is, with plait.export.tensorflow.call_tf",
    )


def _exported(
    name: str, text: Any, ins: Sequence[Aval], outs: Sequence[Aval], rules: Sequence[str]
) -> Exported:
    """Return TensorFlow's module as an `Exported`.

    Raises NotReadable if it takes or returns other types, or has custom calls.
    """
    code = text if isinstance(text, bytes) else text.encode()
    with lock:
        bytecode = mlir.bytecode(mlir.parse(code))
    artifact, _ = portable.rewritten(portable.artifact_of(bytecode, False), False)
    with lock:
        module = portable.parsed(artifact)
        fits, calls = portable.is_for(module, ins, outs, False), portable.custom_calls(module)
    if not fits or calls:
        why = f"it calls {', '.join(calls)}" if calls else "it takes or returns something else"
        raise _unsaid(name, why)
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
        may be replaced by derivatives of its operations.  `call_tf` keeps them.

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
