"""`to_tf`: conversion of a function of Plait to one of TensorFlow.

Invariant: the function is traced once for each list of types that it is called with; calls inside
Plait's transformations are refused.
"""

from collections.abc import Callable, Sequence
from typing import Any

import plait
from plait.ext.errors import ArgumentError, border
from plait.ext.lower import known_platforms
from plait.ext.sizes import Scope
from plait.ext.trace import GROUND, current, name_of
from plait.ext.tree import flatten
from plait.ext.values import is_tracer

from ..errors import NotExportable
from ..writing import export
from .arguments import paths_of, plain_tree, sizes_said, tensor_of, type_of_leaf
from .library import tensorflow
from .operations import Graph, Module, Operation


@border
def to_tf(
    fun: Callable[..., Any],
    *,
    polymorphic_shapes: object = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    enable_graph: bool = False,
    platforms: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Convert a function of arrays to a function of TensorFlow's tensors.

    Args:
      fun: a function of trees of arrays, jitted or not, with any transformations in it.
      polymorphic_shapes: names for the sizes of the arguments, as `symbolic_args_specs` takes them:
        a text for all of them, or a tuple with a text, a tree of texts, or None for each.  Sizes
        that are None in TensorFlow's shapes need a name.
      polymorphic_constraints: facts about these sizes, such as "b >= 8".
      with_gradient: whether TensorFlow may differentiate it, in reverse mode.  Any order works
        before saving, and one order after loading again; this needs plait-autodiff.  If false,
        TensorFlow raises an error that names `fun`.
      enable_graph: whether to build a graph of TensorFlow's ordinary operations, rather than one
        operation that runs StableHLO.  TensorFlow's tools can process such a graph, and it runs
        wherever these operations do.  Derivatives of any order survive saving, unless the function
        has custom rules for them.
      platforms: where it may run: "cpu", "cuda", "rocm", "tpu".  By default the platform of this
        process.  A graph is for one platform, which chooses branches (`lax.platform_dependent`).

    Returns a function of trees of tensors, variables, numpy arrays and numbers that returns a tree
    of tensors, eagerly and in `tf.function`.  A call with new types traces `fun`; Plait never
    computes it.  Types without values (`float0`) are booleans in TensorFlow.  To differentiate a
    loaded model, save it with `tf.saved_model.SaveOptions(experimental_custom_gradients=True)`.

    Raises PlaitError if TensorFlow is not installed.  When called, raises NotExportable inside a
    transformation of Plait, and for functions without a portable form.  Raises ShapeError for
    unknown sizes without a name and for sizes that do not fit together.  Raises OperandTypeError
    for types that only one side has, and what tracing raises.

    >>> import numpy as np, plait
    >>> double = plait.export.tensorflow.to_tf(lambda x: 2 * x)  # doctest: +SKIP
    >>> double(np.ones(2))  # doctest: +SKIP
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([2., 2.])>
    """
    if not callable(fun):
        raise ArgumentError(f"to_tf needs a function, not {fun!r}", fix="write to_tf(f)(*args)")
    tf = tensorflow()
    wanted = None if platforms is None else known_platforms(platforms)
    traceable = fun if hasattr(fun, "clear_cache") else plait.jit(fun)
    name = name_of(fun)
    name = "lambda" if name == "<lambda>" else name
    if enable_graph and len(wanted or ()) > 1:
        raise ArgumentError(
            f"a graph has branches of one platform, and platforms says {', '.join(wanted or ())}",
            fix="name one of them; a graph runs wherever the operations do that it consists of",
        )
    kind = Graph if enable_graph else Module
    made: dict[Any, Operation] = {}

    @border
    def called(*args: object, **kwargs: object) -> Any:
        leaves, tree = flatten(plain_tree((args, kwargs)))
        if current() is not GROUND or any(map(is_tracer, leaves)):
            raise NotExportable(
                f"{name} was converted for TensorFlow, and is called inside a transformation",
                fix="transform first, and convert that: to_tf(plait.grad(f))",
            )
        paths = paths_of(args, kwargs)
        operands = [tensor_of(x, p) for x, p in zip(leaves, paths, strict=True)]
        scope = Scope(polymorphic_constraints)
        texts = sizes_said(polymorphic_shapes, args, tree.num_leaves)
        types = [
            type_of_leaf(x, t, text, p, scope)
            for x, t, text, p in zip(leaves, operands, texts, paths, strict=True)
        ]
        key = tree, tuple([(str(t.shape), t.dtype, t.weak_type) for t in types])
        if key not in made:
            told_args, told_kwargs = tree.unflatten(types)
            exporting = export(traceable, platforms=wanted, libraries=False)
            module = kind(exporting(*told_args, **told_kwargs))
            made[key] = Operation(traceable, module, with_gradient)
        operation = made[key]
        return operation.module.exported.out_tree.unflatten(operation(operands))

    called.__name__ = called.__qualname__ = name
    return tf.autograph.experimental.do_not_convert(called)
