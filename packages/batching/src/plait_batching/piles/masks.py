"""mask: run a function of arrays of their own sizes on padded arrays.

It is `pile_map` with one example in the padded layout; mapped over sizes it becomes a pile.

Invariant: results equal those of the function on unpadded arrays; values beyond are undefined.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError, AxisError, DimMismatch, ShapeError, UndecidedDim, border
from plait.ext.sizes import Dim, Scope, open_questions, solve_dims, symbolic_dims
from plait.ext.trace import Tracer, current, wraps
from plait.ext.tree import flatten
from plait.ext.types import Aval
from plait.ext.values import as_value

from .call import depth_of_piles, staged_example, varying_as
from .capacities import Size, capacities_of, ragged_axes
from .carrier import Ragged
from .constraints import expect_constraints, hold_constraints, renamed
from .layouts import fit
from .length_checks import hold_size
from .names import SCOPE, named
from .operation import PADDED, RAGGED, SHARED, layout, pile_map
from .short_examples import refuse_short
from .tables import I32

__all__ = ["mask"]

_BETWEEN = re.compile(r",(?![^(]*\))")
"""Commas between sizes, but not the one in floordiv(n, 2)."""


@border
def mask(
    fun: Callable[..., Any],
    in_shapes: Sequence[Any],
    out_shape: object = None,
    *,
    constraints: Sequence[str] = (),
) -> Callable[..., Any]:
    """Return `fun` adapted to padded arrays, in which only a leading part holds data.

    Args:
      fun: takes positional arguments, and returns a tree of arrays.
      in_shapes: the shape of each argument (for a tree, a tree of shapes), as a string of named
        sizes: "n", "(n, m)", "n, 3", "2*n"; "_" is the size of the argument itself.  A string
        alone is the shape of the only argument.
      out_shape: the same for the result, which is refused if its shape differs.  Without it
        nothing is compared.
      constraints: facts about the sizes that `fun` relies on, such as "n > 1", "mod(n, 8) == 0" or
        "n >= m"; sizes that break one are refused, when the program runs if they are traced.

    Returns:
      A function `masked(args, sizes)` of a list of padded arguments and a dict of sizes by name,
      which are numbers or traced integers.  Results are padded to the sizes that the padded
      arguments would give.  Values beyond the sizes of the unpadded result are undefined.

    Raises:
      ShapeError: a result of another shape, or of another structure, than out_shape; arguments
        whose padding does not match their shapes; a known size that is negative or too large, or
        breaks a constraint.
      ArgumentError: a name without a size, a size that is not an integer, shapes that are not
        strings.
      MissingRule: an operation without a rule for padded arrays.

    >>> import plait
    >>> total = plait.mask(lambda x: x.sum(), ["n"], "")
    >>> total([plait.numpy.array([1.0, 2.0, 7.0])], {"n": 2})
    Array(3., dtype=float32)
    """
    if not callable(fun):
        raise ArgumentError(f"mask needs a function, not {fun!r}", fix="write mask(f, ['n'], 'n')")
    f, given = fun, (in_shapes,) if isinstance(in_shapes, str) else in_shapes
    _expect_texts(given, out_shape)
    known = expect_constraints(constraints)

    @border
    @wraps(f)
    def masked(args: Sequence[Any], sizes: Mapping[str, Any]) -> Any:
        if not isinstance(args, tuple | list) or not isinstance(sizes, Mapping):
            raise ArgumentError(
                f"a masked function was called with {type(args).__name__} and "
                f"{type(sizes).__name__}",
                fix="pass a list of padded arguments and the sizes: masked([x], {'n': 3})",
            )
        return _Masked(f, given, out_shape, sizes, known).apply(tuple(args))

    return masked


def _expect_texts(in_shapes: Any, out_shape: Any) -> None:
    """Raise ArgumentError for shapes that are not strings."""
    if not isinstance(in_shapes, tuple | list):
        raise ArgumentError(
            f"mask: in_shapes is {in_shapes!r}", fix="give the shape of each argument: ['(n, m)']"
        )
    for what, shapes in (("in_shapes", in_shapes), ("out_shape", out_shape)):
        for s in flatten(shapes)[0]:
            if not isinstance(s, str):
                raise ArgumentError(
                    f"mask: {what} has {s!r} where a text is expected",
                    fix="write a shape as one text, like '(n, 3)'",
                )


class _Masked:
    """One call of a masked function: its names, which belong to this level, and its shapes."""

    def __init__(
        self,
        f: Callable,
        in_shapes: Any,
        out_shape: Any,
        sizes: Mapping[str, Any],
        constraints: Sequence[str],
    ):
        self.f, self.in_shapes, self.out_shape, self.sizes = f, in_shapes, out_shape, sizes
        self.depth = depth_of_piles()
        self.labels: dict[str, str] = {}
        self.constraints = constraints
        own = [renamed(c, self._own_name) for c in constraints]
        self.scope = Scope(own, lower=0) if own else SCOPE

    def read(self, text: str, shape: tuple | None) -> tuple:
        """Parse a shape; "_" stands for the size that `shape` has there."""
        text = text.strip()
        if text in ("", "()"):
            return ()
        inside = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        parts = [p.strip() for p in _BETWEEN.split(inside) if p.strip()]
        if shape is not None and len(parts) != len(shape):
            raise AxisError(
                f"mask: an argument of shape {shape} has no shape {text!r}",
                fix="name the size of every axis, or write _ for one that is as it comes",
            )
        found: list[Any] = []
        for i, p in enumerate(parts):
            if p == "_":
                found.append(shape[i] if shape is not None else None)
            else:
                found += symbolic_dims(p, self.scope)
        renamed = {v: self.named(v) for d in found if d.__class__ is Dim for v in d.variables}
        return tuple([d.substitute(renamed) if d.__class__ is Dim else d for d in found])

    def named(self, name: str) -> Any:
        (d,) = symbolic_dims(self._own_name(name), self.scope)
        return d

    def _own_name(self, name: str) -> str:
        """Return the name of a size at this level; in nested masks, each has its own sizes."""
        if name not in self.sizes:
            raise ArgumentError(
                f"mask: nothing says what {name} is; sizes are given for "
                f"{', '.join(sorted(self.sizes)) or 'none'}",
                fix=f"pass its size: masked(args, {{{name!r}: ...}})",
            )
        own = f"{name}_m{self.depth}"
        self.labels[own] = name
        return own

    def told(self, d: Dim) -> Any:
        """Return a size in the user's names."""
        if d.__class__ is not Dim:
            return d
        return d.substitute({v: named(self.labels[v]) for v in d.variables if v in self.labels})

    def apply(self, args: tuple) -> Any:
        leaves, tree = flatten(args)
        specs = _specs(self.in_shapes, args, len(leaves))
        xs = [as_value(x) for x in leaves]
        shapes = [self.read(s, x.shape) for s, x in zip(specs, xs, strict=True)]
        table = self._table(xs, shapes)
        caps = capacities_of(table, 1)
        avals = [x.aval.with_shape(s) for x, s in zip(xs, shapes)]
        given = lambda *vs: (tree.unflatten(vs), {})  # noqa: E731
        lengths = [_length(self.sizes[s.label], s) for s in table]
        hold_constraints(self.constraints, self.sizes)
        try:
            with open_questions() as questions:
                program, captured, out, out_tree = staged_example(self.f, given, avals, "mask", {})
        except UndecidedDim as e:
            raise self._in_own_words(e) from None
        if self.out_shape is not None:
            self._compare(program.out_avals, out)
        names = caps.named
        ragged = [RAGGED if ragged_axes(a.shape, names) else SHARED for a in avals]
        r = Ragged(current(), 1, None, table, True, ambient=tuple(lengths))
        values = [_padded(x, a, r) if k == RAGGED else x for x, a, k in zip(xs, avals, ragged)]
        known = {s.name: n for s, n in zip(table, lengths, strict=True)}
        alone = partial(self._alone, given, avals)
        roomy = [False] * len(program.out_avals)
        refuse_short("mask", program, known, alone, roomy, table, tuple(questions))
        program, operands = varying_as(r.ambient, program, [*captured, *values], None, 1)
        got = pile_map.bind(
            *lengths,
            *operands,
            program=program,
            kinds=(*(SHARED,) * len(captured), *ragged),
            outs=tuple([RAGGED if ragged_axes(a.shape, names) else "stacked"
                        for a in program.out_avals]),
            sizes=table,
            size=1,
            axis_name=None,
            padded=True,
        )  # fmt: skip
        return out_tree.unflatten([y[0] for y in got])

    def _in_own_words(self, e: UndecidedDim) -> UndecidedDim:
        """Return an error about undecided sizes in the names of the user."""
        if any(own in e.what for own in self.labels):
            question = e.question
            for own, name in self.labels.items():
                e.what = e.what.replace(own, name)
                question = question and question.replace(own, name)
            if question is not None:
                texts = ", ".join(f'"{c}"' for c in (*self.constraints, question))
                e.fix = f"if it always holds, say so: mask(f, shapes, constraints=[{texts}])"
        return e

    def _alone(
        self, given: Callable, avals: Sequence[Aval], sizes: dict[str, int]
    ) -> Sequence[Aval]:
        """Return the types of the results for unpadded arrays of these sizes."""
        own = [
            a.with_shape([d.substitute(sizes) if d.__class__ is Dim else d for d in a.shape])
            for a in avals
        ]
        return staged_example(self.f, given, own, "mask", {})[0].out_avals

    def _table(self, xs: Sequence[Any], shapes: Sequence[tuple]) -> tuple[Size, ...]:
        """Return the capacity of each name, which is its value for the padded arguments."""
        pairs = [(d, n) for x, s in zip(xs, shapes) for d, n in zip(s, x.shape, strict=True)]
        try:
            solve_dims([(self.told(d), n) for d, n in pairs])
        except (DimMismatch, UndecidedDim) as e:
            raise ShapeError(
                f"mask: {e.what}",
                fix="pad every axis of a name to the same size, and give others as they are",
            ) from None
        # Padding may break the constraints, which are about the sizes of the data alone.
        free = [
            (d.substitute({v: named(v) for v in d.variables}) if d.__class__ is Dim else d, n)
            for d, n in pairs
        ]
        found = sorted(solve_dims(free).items())  # padded values are never tiled
        return tuple([Size(k, n, n, 1, self.labels[k]) for k, n in found])

    def _compare(self, avals: Sequence[Aval], out: Any) -> None:
        """Raise ShapeError unless the results have the shapes and the structure of out_shape."""
        texts, wanted_tree = flatten(self.out_shape, lambda s: isinstance(s, str))
        _, tree = flatten(out)
        shapes = iter([a.shape for a in avals])
        got = tree.unflatten([_Shape(s) for s in shapes])
        want = wanted_tree.unflatten([_Shape(self.read(t, None)) for t in texts])
        same = wanted_tree == tree and all(
            _equal(w.sizes, g.sizes) for w, g in zip(flatten(want)[0], flatten(got)[0])
        )
        if not same:
            raise ShapeError(
                f"Output shapes should be {self._said(want)} but are {self._said(got)}.",
                fix="correct out_shape, or the function",
            )

    def _said(self, tree: object) -> str:
        told = [_Shape(tuple(map(self.told, s.sizes))) for s in flatten(tree)[0]]
        return repr(flatten(tree)[1].unflatten(told))


def _specs(in_shapes: Any, args: tuple, n: int) -> list:
    texts = flatten(tuple(in_shapes), lambda s: isinstance(s, str))[0]
    if len(texts) != n:
        raise ArgumentError(
            f"mask: in_shapes has {len(texts)} shapes for {n} arrays",
            fix="give the shape of each, like ['(n, m)', 'n']",
        )
    return texts


class _Shape:
    """A shape as one leaf."""

    def __init__(self, sizes: tuple):
        self.sizes = sizes

    def __repr__(self) -> str:
        inside = ", ".join(map(_size_said, self.sizes))
        return f"({inside}{',' if len(self.sizes) == 1 else ''})"


def _size_said(d: Dim) -> str:
    """Write a size as a sum: 7 n, n + -1."""
    if d.__class__ is not Dim:
        return "_" if d is None else str(d)
    said = []
    for monomial, c in d.terms.items():
        names = [str(s) for s in monomial]
        said.append(" ".join([*([] if c == 1 and names else [str(c)]), *names]))
    return " + ".join(sorted(said, key=lambda t: t.lstrip("-").isdigit()))


def _equal(want: tuple, got: tuple) -> bool:
    if len(want) != len(got):
        return False
    pairs = [(w, g) for w, g in zip(want, got) if w is not None]
    # A wanted size is assumed to be valid: n - 1 implies that n is at least 1.
    known = [f"{w} >= 0" for w, _ in pairs if w.__class__ is Dim]
    scope = Scope(known, lower=0)
    return all(_same(w, g, scope) for w, g in pairs)


def _same(w: object, g: object, scope: Scope) -> bool:
    (difference,) = symbolic_dims(f"({w}) - ({g})", scope)
    if isinstance(difference, Dim):
        return scope.is_zero(difference.terms) is True
    return difference == 0


def _padded(x: Any, aval: Aval, r: Ragged) -> Any:
    """Return an argument as the padded values of one example."""
    for a, n in enumerate(layout(aval, r.caps, PADDED).shape[1:]):
        x = fit(x, a, n)
    return r.cleaned(x[None], aval)


def _length(n: Any, size: Size) -> Any:
    v = as_value(n)
    name = size.label
    if v.ndim or v.aval.dtype.kind not in "iu":
        raise ArgumentError(f"mask: the size {name} is {v.aval!r}", fix="give an integer")
    known = size.longest.__class__ is int and not isinstance(v, Tracer)
    if known and not 0 <= int(np.asarray(v)) <= size.longest:
        raise ShapeError(
            f"mask: {name} is {n}, and the padded arguments have {size.longest}",
            fix=f"give 0 <= {name} <= {size.longest}",
        )
    hold_size(v, size.longest, name)
    return v.astype(I32)[None]
