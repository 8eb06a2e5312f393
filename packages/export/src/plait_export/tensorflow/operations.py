"""Exported functions as one operation of TensorFlow, or as a graph, with derivatives.

Invariant: operations take and return the types that are declared to TensorFlow.  A first derivative
is Plait's, in TensorFlow's convention, or refused by name.  TensorFlow may differentiate the graph
of a first derivative, so that it can be saved, unless the function has custom rules.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import plait
from plait.ext.tree import flatten
from plait.ext.types import Aval, ShapeDtypeStruct

from .. import portable
from ..artifact import Exported
from ..errors import NotExportable, NotReadable
from ..reader import functions_of
from ..writing import export
from .arguments import dtype_of
from .graph import Walk, differentiable_there
from .library import runner, tf

_NEWEST = 10
"""The newest version of XlaCallModule to use; older releases of TensorFlow have older ones."""


class Module:
    """An exported function as one operation of TensorFlow, which runs StableHLO."""

    def __init__(self, exported: Exported):
        if exported.nr_devices > 1:
            raise NotExportable(
                f"{exported.fun_name} runs on {exported.nr_devices} devices, and TensorFlow is "
                "given functions of one",
                fix="export the function without a mesh, of arrays on one device",
            )
        exported = self.exported = exported.with_weights_inside()
        for avals, paths in ((exported.in_avals, exported.paths), (exported.out_avals, None)):
            for i, a in enumerate(avals):
                dtype_of(a, "the result" if paths is None else paths[i])

    @property
    def differentiable(self) -> bool:
        """True if TensorFlow differentiates it as Plait would."""
        return False

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Apply the function to tensors and return the flat results.

        Raises ShapeError and DimMismatch, with the arguments, for sizes that are known not to fit.
        """
        exported = self.exported
        known = [x.shape.as_list() for x in args] if exported.symbolic else [[None]]
        if not any(None in shape for shape in known):
            exported.result_types([a.with_shape(s) for a, s in zip(exported.in_avals, known)])
        return self.applied(args)

    @cached_property
    def code(self) -> bytes:
        """The bytes of the module."""
        held = self.exported.mlir_module_serialized
        return portable.without_composites(held) if self.exported.symbolic else held

    @cached_property
    def entrance(self) -> Any:
        """Its `main`, which checks sizes."""
        return functions_of(self.code, self.exported.platforms, ("main",))

    def size_checks(self, args: Sequence[Any]) -> list[Any]:
        """Return operations that fail, with the arguments, if sizes do not fit.

        Without them, TensorFlow refines the module for the sizes first.  An operation inside that
        does not fit would then be reported before the module's own checks run.
        """
        exported = self.exported
        if not exported.symbolic or tf.executing_eagerly():
            return []
        front = [tf.constant(0)] if exported.by_argument else []
        try:
            walk = Walk(self.entrance, exported.fun_name, exported.paths)
            return walk.size_checks([*front, *args])
        # Modules of other exporters may not be readable here; they check sizes themselves.
        except (NotReadable, NotExportable):
            return []

    def applied(self, args: Sequence[Any]) -> list[Any]:
        """Return the results of XlaCallModule."""
        with tf.control_dependencies(self.size_checks(args)):
            return self._called(args)

    def _called(self, args: Sequence[Any]) -> list[Any]:
        exported, xla = self.exported, runner()
        version = min(_NEWEST, xla.call_module_maximum_supported_version())
        more = {"use_shardy_partitioner": True} if version >= 10 else {}
        outs = exported.out_avals
        return list(
            xla.call_module(
                tuple(args),
                version=version,
                module=self.code,
                Tout=[dtype_of(a, "the result") for a in outs],
                Sout=[shape_there(a) for a in outs],
                platforms=[p.upper() for p in exported.platforms],
                function_list=[],
                has_token_input_output=False,
                disabled_checks=[],
                **more,
            )
        )


class Graph(Module):
    """An exported function as a graph of TensorFlow's ordinary operations."""

    @cached_property
    def functions(self) -> Any:
        """The functions of the module, by name."""
        return functions_of(self.exported.mlir_module_serialized, self.exported.platforms)

    @property
    def differentiable(self) -> bool:
        return self.exported.custom_rules == () and differentiable_there([*self.functions.values()])

    @cached_property
    def traced(self) -> Callable[..., Any]:
        """A `tf.function` of it, which builds its graph only once."""
        taken = [
            tf.TensorSpec(shape_there(a), dtype_of(a, p))
            for a, p in zip(self.exported.in_avals, self.exported.paths, strict=True)
        ]
        made = lambda *args: tuple(self.drawn(args))  # noqa: E731
        return tf.function(made, input_signature=taken, autograph=False)

    def drawn(self, args: Sequence[Any]) -> list[Any]:
        """Build the operations in the current graph, and return the flat results."""
        exported = self.exported
        return Walk(self.functions, exported.fun_name, exported.paths).main(args)

    def applied(self, args: Sequence[Any]) -> list[Any]:
        """Return the results, by a traced graph if TensorFlow executes eagerly."""
        return list(self.traced(*args)) if tf.executing_eagerly() else self.drawn(args)


def shape_there(aval: Aval) -> tuple[int | None, ...]:
    """Return TensorFlow's shape of a type, with None for symbolic sizes."""
    return tuple([n if n.__class__ is int else None for n in aval.shape])


# ---- derivatives ---------------------------------------------------------------------------


def refusing(module: Module, args: Sequence[Any], said: str) -> list[Any]:
    """Return results that TensorFlow refuses to differentiate, with a message."""
    return [tf.raw_ops.PreventGradient(input=o, message=said) for o in module.run(args)]


def differentiable(
    module: Module, args: Sequence[Any], reverse: Callable[..., Sequence[Any]]
) -> list[Any]:
    """Return results that TensorFlow can differentiate.

    TensorFlow's cotangents are the complex conjugates of ours: it multiplies by the conjugate of a
    holomorphic derivative.

    Args:
      module: the function.
      args: its arguments.
      reverse: maps (arguments, results, cotangents of the inexact results) to cotangents of the
        inexact arguments, in our convention.  It may use only the shapes of the results.
    """
    exported = module.exported
    ins = [i for i, a in enumerate(exported.in_avals) if a.inexact]

    @tf.custom_gradient
    def with_derivative(*args: object):
        outs = [tf.identity(o) for o in module.run(args)]

        def gradient(*cts, variables: object = None):
            given = [
                _conjugate(tf.zeros_like(o) if ct is None else ct)
                for o, ct, a in zip(outs, cts, exported.out_avals, strict=True)
                if a.inexact
            ]
            # Identities belong to the current graph, so a derivative of this one can hold them.
            # Results have no derivative here, so `reverse` must use only their shapes.
            here, there = ([tf.identity(x) for x in xs] for xs in (args, given))
            found = map(_conjugate, reverse(here, outs, there))
            return [*map(dict(zip(ins, found)).get, range(len(args)))]

        return tuple(outs), gradient

    return list(with_derivative(*args))


class Operation:
    """An exported function for tensors, whose derivative is exported at its first use.

    Attributes:
      fun: the function that was exported.
      module: its form in TensorFlow.
      with_gradient: whether it has a derivative.
    """

    __slots__ = ("fun", "module", "with_gradient", "_ins", "_outs", "_pullback")

    def __init__(self, fun: Callable[..., Any], module: Module, with_gradient: bool):
        self.fun, self.module, self.with_gradient = fun, module, with_gradient
        self._ins = [i for i, a in enumerate(module.exported.in_avals) if a.inexact]
        self._outs = [i for i, a in enumerate(module.exported.out_avals) if a.inexact]
        self._pullback: Operation | None = None

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """Apply the function to tensors and return the flat results."""
        if not self.with_gradient:
            name = self.module.exported.fun_name
            said = f"{name} was converted with to_tf(..., with_gradient=False)"
            return refusing(self.module, args, said)
        if not self._ins or not self._outs:
            return self.module.run(args)
        return differentiable(self.module, args, self._cotangents)

    def _cotangents(self, args: Sequence[Any], outs: Sequence[Any], cts: Sequence[Any]) -> Any:
        """Return the cotangents of the inexact arguments."""
        if self._pullback is None:
            self._pullback = self._reversed()
        pullback, given = self._pullback, [*args, *cts]
        # TensorFlow saves custom derivatives of one order only, so it differentiates the graph of
        # this derivative itself where it can.
        left = self.module.differentiable and pullback.module.differentiable
        return pullback.module.run(given) if left else pullback(given)

    def _reversed(self) -> "Operation":
        """Return the operation of the derivative.

        It maps arguments and cotangents of the inexact results to cotangents of the inexact
        arguments.
        """
        fun, exported = self.fun, self.module.exported
        ins, outs = self._ins, self._outs

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
        types = [said_type(a) for a in exported.in_avals]
        cotangents = [said_type(exported.out_avals[i].strong()) for i in outs]
        made = export(pullback, platforms=exported.platforms, libraries=False)
        module = type(self.module)(made(types, cotangents))
        return Operation(plait.jit(pullback), module, True)


def said_type(aval: Aval) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def _conjugate(x: Any) -> Any:
    return tf.math.conj(x) if x.dtype.is_complex else x
