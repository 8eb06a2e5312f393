"""The law of the table `discharge`: branches and loops that read references do what they do with
arrays, for our rules and for those of others.

Invariant: a wrong rule fails.
"""

import numpy as np
import pytest

from plait import ext, testing
from plait.ext.ops.control_flow import cond, scan, while_
from plait.ext.trace import staged
from plait.ext.types import Aval
from plait.ext.values import from_numpy
from plait_state.ext import discharge_rules, discharged, finished, held
from plait_state.laws import discharge_law

F, I = Aval((2,), "float32"), Aval((), "int32")
A, B = np.float32([1, 2]), np.float32([3, 5])


def of_cond(i, x, y, branches):
    return [x * y, x - y][int(i)]


def of_scan(a, c, xs, **_):
    ys = []
    for x in xs:
        c = c * a + x
        ys.append(c - x)
    return [c, np.stack(ys)]


def of_while(limit, a, x, **_):
    while x[0] < limit[0]:
        x = x * a
    return [x]


CASES = {
    "cond": (
        cond,
        [(np.int32(0), A, B), (np.int32(1), A, B)],
        of_cond,
        lambda: {
            "branches": (
                staged(lambda x, y: [x * y], [F, F]),
                staged(lambda x, y: [x - y], [F, F]),
            )
        },
        2,
    ),
    "scan": (
        scan,
        [(A, B, np.float32([[1, 2], [3, 4], [5, 6]]))],
        of_scan,
        lambda: {
            "body": staged(lambda a, c, x: [c * a + x, c * a], [F, F, F]),
            "consts": 1,
            "carry": 1,
            "length": 3,
            "reverse": False,
            "unroll": 1,
        },
        1,
    ),
    "while": (
        while_,
        [(np.float32([40, 0]), np.float32([2, 3]), A)],
        of_while,
        lambda: {
            "cond": staged(lambda limit, x: [x[0] < limit[0]], [F, F]),
            "body": staged(lambda a, x: [x * a], [F, F]),
            "cond_consts": 1,
            "body_consts": 1,
        },
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rules_keep_the_law(name):
    prim, samples, reference, params, count = CASES[name]
    for sample in samples:
        want = reference(*sample, **params())
        got = prim.bind(*map(from_numpy, map(np.asarray, sample)), **params())
        for g, w in zip(got, want if isinstance(want, list) else [want], strict=True):
            np.testing.assert_allclose(np.asarray(g), w)
        assert discharge_law(prim, [np.asarray(x) for x in sample], params()) >= count


def test_every_rule_of_ours_is_judged():
    cells = testing.coverage("discharge")
    own = {n for n, cell in cells.items() if cell == "own" and n.startswith("core.")}
    assert own == {c[0].name for c in CASES.values()}
    assert cells["core.sin"] == cells["core.sort"] == "not applicable"


def party(name, rule):
    """A stranger's operation with one program on one operand, and its rule."""
    prim = ext.Primitive(
        f"discharge_of_others.{name}",
        lambda x, *, program: program.out_avals,
        many=True,
        higher=ext.Wiring(),
    )
    ext.expand_rules.rule(prim)(lambda x, *, program: ext.evaluate(program, [x]))
    discharge_rules.rule(prim)(lambda args, params: rule(prim, args, params))
    return prim


def right(prim, args, params):
    d = discharged(params["program"])
    outs = prim.bind(*held(args), **{**params, "program": d.program})
    return finished(args, d.written, outs)


def wrong(prim, args, params):
    d = discharged(params["program"])
    return prim.bind(*[-x for x in held(args)], **{**params, "program": d.program})


@pytest.mark.parametrize("rule", [right, wrong])
def test_rules_of_others(rule):
    prim = party(rule.__name__, rule)
    params = {"program": staged(lambda x: [x * 2], [F])}
    if rule is right:
        assert discharge_law(prim, [A], params) == 1
    else:
        with pytest.raises(AssertionError):
            discharge_law(prim, [A], params)
