"""Many primitives against all laws at once.

A case is (function or primitive, operands, parameters, options).  Derivatives of every kind are
compared with the polynomial through values on one curve, mapped calls with calls in a loop.

Invariant: the truth is computed from values of the function alone; what fails is reported by name,
all together.
"""

import itertools
import math

import numpy as np
import pytest

import plait
from plait.ext.trace import as_list
from plait.ext.values import asarray
from plait.testing.report import Checks
from plait_autodiff.taylor.laws import (
    by_numbers,
    coefficients,
    curve,
    numerically,
    real_parts,
    seconds,
)
from plait_testing.ext import agree

ORDER = 4


def inexact(x):
    return np.asarray(x).dtype.kind in "fc"


class Case:
    """A function of those operands that can vary, the others being fixed."""

    def __init__(self, name, fun, args=(), params=None, options=None):
        self.name, self.params, self.options = name, params or {}, options or {}
        self.fun = fun.bind if isinstance(fun, plait.ext.Primitive) else fun
        self.args = [np.asarray(x) for x in args]
        self.places = [i for i, x in enumerate(self.args) if inexact(x)]
        self.at = [self.args[i] for i in self.places]
        self.seen = {}

    def __call__(self, *vs):
        xs = [asarray(x) for x in self.args]
        for i, v in zip(self.places, vs, strict=True):
            xs[i] = v
        outs = [y for y in as_list(self.fun(*xs, **self.params)) if y.aval.inexact]
        return [y for i, y in enumerate(outs) if i not in self.options.get("without", ())]

    def all(self, *xs):
        """Every operand, every result."""
        return as_list(self.fun(*xs, **self.params))

    def wanted(self, law):
        return law not in self.options.get("not", ())


def cases_of(table):
    return [Case(name, *row) for name, row in table.items()]


def product(xs, ys):
    return np.sum([np.sum(np.asarray(x) * np.asarray(y)).real for x, y in zip(xs, ys)])


# ---- derivatives ---------------------------------------------------------------------------


def first(case, xs, ts, cts):
    """jvp along all operands and along each alone, and vjp."""
    _, dots = plait.jvp(case, xs, ts)
    alone = []
    for i in range(len(xs)) if len(xs) > 1 else ():
        of = lambda x, i=i: case(*xs[:i], x, *xs[i + 1 :])  # noqa: E731
        alone.append(plait.jvp(of, (xs[i],), (ts[i],))[1])
    return dots, alone, plait.vjp(case, *xs)[1](cts)


def second(case, xs, ts, curves, cts):
    """Forward over forward, and reverse over forward."""
    n = len(xs)
    slope = lambda *vs: plait.jvp(case, vs[:n], vs[n:])[1]  # noqa: E731
    at = (*xs, *ts)
    return plait.jvp(slope, at, (*ts, *curves))[1], plait.vjp(slope, *at)[1](cts)


def series(case, xs, ts, curves):
    zeros = [np.zeros_like(x) for x in case.at]
    rows = [[t, c, z, z] for t, c, z in zip(ts, curves, zeros)]
    return plait.jet(case, tuple(xs), tuple(rows))


def laplacian(case, parts):
    whole = real_parts(case.at)[1]
    return plait.fwd_laplacian(lambda *vs: case(*whole(*vs)), tuple(range(len(parts))))(*parts)[2]


def near(got, want, tol, what):
    scale = [1 + np.abs(w).max(initial=0) for w in want]
    return agree([np.asarray(g) / s for g, s in zip(got, scale, strict=True)],
                 [w / s for w, s in zip(want, scale)], tol, what)  # fmt: skip


class Judge:
    """What tests call."""

    def derivatives(self, table):
        """Every law of the tables of derivatives."""
        checks = Checks("the table of derivatives")
        cases = cases_of(table)
        for c in cases:
            rows, cts, work = self._work(c)
            values = self._values(c)
            for law, (f, args) in work.items():
                check = lambda: self._compare(  # noqa: E731
                    c,
                    law,
                    numerically(f, *args),
                    rows,
                    cts,
                    values,  # noqa: B023
                )
                checks.run(f"{c.name}: {law}", check)
        return checks.report(at_least=len(cases))

    def _values(self, case):
        """Of numpy arrays."""
        program = plait.make_program(case)(*case.at)

        def values(vs):
            return by_numbers(program, [np.asarray(v) for v in vs])

        return values

    def _work(self, case):
        """Where, cotangents, and {law: (function of arrays, arrays)}."""
        rows = curve(case.at)
        rng = np.random.default_rng(5)
        like = plait.eval_shape(case, *case.at)
        cts = [rng.standard_normal(o.shape) + (1j * rng.standard_normal(o.shape)
               if o.dtype.kind == "c" else 0) for o in like]  # fmt: skip
        cts = [c.astype(o.dtype) for c, o in zip(cts, like)]
        ts, curves = rows[1], [2 * c for c in rows[2]]
        work = {
            "first": (lambda xs, ts, cts: first(case, xs, ts, cts), (case.at, ts, cts)),
            "second": (lambda *a: second(case, *a), (case.at, ts, curves, cts)),
            "jet": (lambda *a: series(case, *a), (case.at, ts, curves)),
            "laplacian": (lambda parts: laplacian(case, parts), (real_parts(case.at)[0],)),
        }
        return rows, cts, {k: v for k, v in work.items() if case.wanted(k)}

    def _compare(self, case, law, got, rows, cts, values):
        tol = case.options.get("tol", 1e-6)
        if law == "laplacian":
            parts, whole = real_parts(case.at)
            of = lambda vs: values([np.asarray(x) for x in whole(*map(asarray, vs))])  # noqa: E731
            return near(got, seconds(of, parts), max(tol, 1e-6), law)
        if "truth" not in case.seen:
            radius = case.options.get("radius", 0.12)
            case.seen["truth"] = coefficients(values, rows, ORDER, radius)
        truth = [[math.factorial(k) * c[k] for c in case.seen["truth"]] for k in range(ORDER + 1)]
        if law == "first":
            dots, alone, back = got
            near(dots, truth[1], tol, "jvp")
            if alone:
                near([np.sum([np.asarray(y) for y in ys], 0) for ys in zip(*alone)], dots, tol,
                     "jvp along single operands")  # fmt: skip
            return near([product(back, rows[1])], [product(cts, truth[1])], tol, "vjp")
        if law == "second":
            twice, back = got
            near(twice, truth[2], 10 * tol, "jvp of jvp")
            curves = [*rows[1], *[2 * c for c in rows[2]]]
            return near([product(back, curves)], [product(cts, truth[2])], 10 * tol, "vjp of jvp")
        value, derivatives = got
        order = case.options.get("order", ORDER)
        for k, ys in enumerate(itertools.islice([value, *derivatives], order + 1)):
            near(ys, truth[k], tol * (1, 1, 10, 100, 1e3)[k], f"derivative {k} of a series")
        return order + 1

    # ---- mapping ---------------------------------------------------------------------------

    def mapping(self, table):
        """Mapped over axes of each operand and of several, a function gives the stack of what it
        gives for single elements."""
        checks = Checks("the table of batching")
        for case in cases_of(table):
            if case.args and case.wanted("mapping"):
                elements = [[_varied(x, k, case.params) for k in range(3)] for x in case.args]
                for axes in _mappings(case.args):
                    checks.run(f"{case.name}: mapping", lambda: _mapped(case, elements, axes))  # noqa: B023
                checks.run(f"{case.name}: nothing", lambda: _nothing(case))  # noqa: B023
        return checks.report(at_least=len(table))


def _varied(x, k, params):
    """Element `k` of a stack: another operand that is as valid as `x`."""
    if inexact(x):
        return np.asarray(x * np.array([1, 0.75, 1.25])[k], x.dtype)
    ordered = params.get("indices_are_sorted") or params.get("unique_indices")
    return x if ordered or not x.ndim else np.roll(x, k, 0)


def _mappings(args):
    """Along every axis of each operand alone, and of all but it along the first; all of them along
    the first axes, along the last ones, and along different ones."""
    n = len(args)
    found = [(0,) * n, tuple(-1 for _ in args), tuple(i % (x.ndim + 1) for i, x in enumerate(args))]
    for i, x in enumerate(args) if n > 1 else ():
        found.append(tuple(None if k == i else 0 for k in range(n)))
        found += [tuple(a if k == i else None for k in range(n)) for a in range(x.ndim + 1)]
    found += [(a,) for a in range(1, args[0].ndim)] if n == 1 else []
    return dict.fromkeys(found)


def _mapped(case, elements, axes):
    pick = lambda k: [e[0 if a is None else k] for e, a in zip(elements, axes)]  # noqa: E731
    singles = [numerically(case.all, *pick(k)) for k in range(3)]
    stacked = [e[0] if a is None else np.stack(e, a) for e, a in zip(elements, axes)]
    out_axis = -1 if sum(a or 0 for a in axes) % 2 else 0
    got = numerically(plait.vmap(case.all, in_axes=axes, out_axes=out_axis), *stacked)
    want = [np.stack(ys, out_axis) for ys in zip(*singles)]
    assert [g.dtype for g in got] == [w.dtype for w in want]
    return agree(got, want, case.options.get("tol"), f"vmap over axes {axes} to {out_axis}")


def _nothing(case):
    """No elements at all: types of results are right."""
    like = plait.eval_shape(case.all, *case.args)
    got = plait.eval_shape(
        plait.vmap(case.all), *[np.zeros((0, *x.shape), x.dtype) for x in case.args]
    )
    for y, w in zip(got, like, strict=True):
        assert y.shape == (0, *w.shape) and y.dtype == w.dtype, f"{y} for {w}"
    return len(got)


@pytest.fixture
def judge():
    return Judge()
