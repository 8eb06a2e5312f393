"""Tests of primitives at all edges of the kit, in one compiled program.

Invariant: results are compared with numpy's, element by element; the reference sets the tolerance
in units of the last place, and the table of differences the exceptions.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from plait import jit
from plait.ext import Aval, Primitive, staged
from plait.ext.devices import platform
from plait.ext.trace import Value, as_list

from .closeness import differing, places
from .differences import excused
from .kit import same_text
from .oracle import in_numpy
from .report import Checks, Inapplicable, Report
from .samples import Reference, Sample

__all__ = ["trial"]


class Job(NamedTuple):
    """A primitive and one of its samples."""

    prim: Primitive
    known: Reference
    sample: Sample

    def __call__(self, *xs: Any) -> list:
        if self.known.through is not None:
            return as_list(self.known.through(self.prim, *xs, **self.sample.params))
        return as_list(self.prim.bind(*xs, **self.sample.params))

    def __repr__(self) -> str:
        kinds = [repr(Aval(np.shape(x), np.asarray(x).dtype)) for x in self.sample.args]
        said = {k: v for k, v in self.sample.params.items() if not hasattr(v, "eqns")}
        return f"{self.prim}({', '.join(kinds)}) {said or ''}".strip()


def trial(known: Mapping[Primitive, Reference], at_least: int = 0) -> Report:
    """Check primitives by all samples but the first: types, values, the text of the program.

    Args:
      known: the Reference of each; `plait.testing.reference(prim)` for those of the core.
      at_least: the least number of comparisons, so that samples cannot disappear unnoticed.

    Returns:
      A Report, with the checks "type", "value" and "text".

    Raises:
      Nonconforming: an AssertionError that describes each failed sample.

    >>> import plait
    >>> from plait.ext.ops.elementwise import neg
    >>> plait.testing.trial({neg: plait.testing.reference(neg)}).checks["value"] > 5
    True
    """
    checks = Checks("the samples")
    jobs = [Job(p, r, s) for p, r in known.items() for s in _edges(p, r)]
    args = [[np.asarray(x) for x in j.sample.args] for j in jobs]
    outs = jit(lambda xss: [j(*xs) for j, xs in zip(jobs, xss)])(args)
    for job, xs, ys in zip(jobs, args, outs):
        got = [np.asarray(y) for y in ys]
        checks.run("type", lambda job=job, xs=xs, got=got: _types(job, xs, got))
        checks.run("value", lambda job=job, xs=xs, got=got: _values(job, xs, got))
    checks.run("text", lambda: _text(jobs, args))
    return checks.report(at_least)


def _edges(prim: Primitive, known: Reference) -> list[Sample]:
    """Return the samples but the first, which `conformance` uses, if there are others."""
    first, *rest = known.samples(prim)
    return [first] if known.through is not None or not rest else rest


def _types(job: Job, xs: list[np.ndarray], got: list[np.ndarray]) -> int:
    if job.known.through is not None:
        raise Inapplicable("operands or results are not those of the type rule")
    avals = tuple([Aval(x.shape, x.dtype) for x in xs])
    want = as_list(job.prim.infer(avals, job.sample.params))
    for y, t in zip(got, want, strict=True):
        have = Aval(y.shape, y.dtype)
        assert have.same_type(t), f"{job!r}: the result is {have!r}, the type rule says {t!r}"
    return len(want)


def _values(job: Job, xs: list[np.ndarray], got: list[np.ndarray]) -> int:
    r, view = job.known, job.known.view or (lambda ys: ys)
    value = in_numpy(job.prim)
    truth = lambda *vs: view(value(*vs, **job.sample.params))  # noqa: E731
    want, got = truth(*xs), view(got)
    for y, w in zip(got, want, strict=True):
        assert y.shape == w.shape and y.dtype == w.dtype, f"{job!r}: {y.dtype}{y.shape}"
    how = {"least": r.least, "whole": r.whole, "zeros": r.zeros}
    wrong = differing(truth, xs, got, r.ulps, platform(), **how)
    for bad, y, w in zip(wrong, got, want):
        bad = bad & ~excused(job.prim, xs, w)
        assert not bad.any(), f"{job!r}: {_told(bad, xs, y, w, how)}"
    return len(got)


def _told(bad: np.ndarray, xs: list, got: np.ndarray, want: np.ndarray, how: dict) -> str:
    """Describe a few of the elements that are wrong."""
    lines = []
    far = places(got, want, **how)
    for at in [tuple(p) for p in np.argwhere(bad)[:4]]:
        operands = [x[at] for x in xs if x.shape == bad.shape]
        of = f" of {', '.join(map(str, operands))}" if operands else f" at {at}"
        lines.append(f"{got[at]}{of} is not {want[at]} ({far[at]:.3g} places)")
    return f"{int(bad.sum())} of {bad.size} elements: " + "; ".join(lines)


def _text(jobs: list[Job], args: list[list[np.ndarray]]) -> None:
    """Check that the program of all samples with a text equals the parsed text."""
    spoken = lambda j: not any(map(callable, j.sample.params.values()))  # noqa: E731
    said = [(j, xs) for j, xs in zip(jobs, args) if spoken(j)]
    if not said:
        raise Inapplicable("no parameter has a text form")
    counts = [len(xs) for _, xs in said]
    avals = [Aval(x.shape, x.dtype) for _, xs in said for x in xs]

    def body(*vs: Value) -> list:
        rest = iter(vs)
        return [y for (j, _), n in zip(said, counts) for y in j(*[next(rest) for _ in range(n)])]

    same_text(staged(body, avals, "samples"))
