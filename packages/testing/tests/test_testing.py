"""The conformance kit: it passes what is right, and finds what is wrong."""

import numpy as np
import pytest

import plait
from plait import testing
from plait.errors import MissingRule, PlaitError, PluginError, TypeRule
from plait.ext import (
    Aval,
    Carrier,
    Literal,
    Primitive,
    RuleTable,
    as_value,
    current,
    expand_rules,
    lower_rules,
    opened,
    programs_in,
    staged,
    use,
)
from plait.ext import rules as traits
from plait.ext.ir import primitives, registered
from plait.ext.lower import simple
from plait.ext.ops import cumulative, reduction, shape, sorting
from plait.ext.ops import elementwise as el
from plait.ext.ops import indexing as dynamic_slicing
from plait.ext.ops.control_flow import call
from plait.ext.plugins import declared
from plait.testing.report import Checks
from plait.text import same_program
from plait_testing import carriers, columns, kit, oracle

X = np.float32([[0.5, -1.25, 2], [3, 0.25, -0.75]])
Y = np.float32([[1.5, 2, 0.5], [0.25, -3, 1]])


@pytest.fixture(autouse=True)
def no_laws(monkeypatch):
    """Laws of tables that happen to be installed are judged in their packages."""
    monkeypatch.setattr(kit, "names", lambda group: [])


def made(name, rule, lowering, *its_traits, **options):
    """A primitive of the tests with a lowering."""
    p = Primitive(f"testing.{name}", rule, its_traits, **options)
    if isinstance(lowering, str):
        lower_rules.rule(p)(simple(lowering))
    else:
        lower_rules.rule(p)(lowering)
    return p


# ---- what is right ---------------------------------------------------------------------------

GOOD = {
    "neg": (el.neg, [X, X.astype(np.int32), X.astype(np.complex64), X.astype(np.float16)],
            np.negative, None),
    "floor": (el.floor, [X, X.astype(plait.dtypes.bfloat16)], np.floor, None),
    "mul": (el.mul, [(X, Y), (X > 0, Y > 0)],
            lambda x, y: np.multiply(x, y) if x.dtype != bool else x & y, None),
    "maximum": (el.maximum, [(X, Y)], np.maximum, None),
    "exp": (el.exp, [X], np.exp, None),
    "rsqrt": (el.rsqrt, [np.abs(X)], lambda x: 1 / np.sqrt(x), None),
    "select": (el.select, [(X > 0, X, Y)], np.where, None),
    "integer_pow": (el.integer_pow, [X, X], lambda x, exponent: x**exponent,
                    [{"exponent": 3}, {"exponent": -2}]),
    "transpose": (shape.transpose_, [X], lambda x, perm: x.transpose(perm), {"perm": (1, 0)}),
    "convert": (shape.convert_, [X], lambda x, dtype, weak: x.astype(dtype),
                {"dtype": np.dtype(np.int32), "weak": False}),
    "concatenate": (shape.concatenate_, [(X, Y)], lambda *xs, axis: np.concatenate(xs, axis),
                    {"axis": 0}),
    "pad": (shape.pad_, [(X, np.float32(7))],
            lambda x, v, low, high, interior: np.pad(x, list(zip(low, high)), constant_values=v),
            {"low": (1, 0), "high": (0, 2), "interior": (0, 0)}),
    "iota": (shape.iota_, [()], lambda shape, axis, dtype: np.indices(shape)[axis].astype(dtype),
             {"shape": (2, 3), "axis": 1, "dtype": np.dtype(np.int32)}),
    "reduce_sum": (reduction.reduce_sum, [X], lambda x, axes: x.sum(axes), {"axes": (1,)}),
    "cummax": (cumulative.cummax_, [X], lambda x, axis, reverse: np.maximum.accumulate(x, axis),
               {"axis": 0, "reverse": False}),
    "sort": (sorting.sort_, [(X,)], lambda x, axis, **_: [np.sort(x, axis)],
             {"axis": 1, "num_keys": 1, "stable": True}),
    "dynamic_slice": (dynamic_slicing.dynamic_slice_, [(X, np.int32(1), np.int32(0))],
                      lambda x, i, j, sizes: x[i:i + sizes[0], j:j + sizes[1]], {"sizes": (1, 2)}),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_primitives_of_core_conform(name):
    prim, samples, reference, params = GOOD[name]
    report = testing.conformance(prim, samples, reference, params)
    for check in ("type", "value", "jit", "text"):
        assert report.checks[check] == len(samples), report
    assert report.total == sum(report.checks.values())
    judged = [f"trait {t.name[5:]}" for t in prim.traits if t in testing.promises.PROMISES]
    assert all(t in report.checks or t in report.skipped for t in judged)


def test_what_is_counted_and_what_is_skipped():
    report = testing.conformance(el.neg, [X, X.astype(np.complex64)], np.negative)
    assert report.checks["trait linear"] == 2
    assert report.checks["trait decreasing"] == 1
    assert report.skipped == {"trait decreasing": "complex numbers have no order"}
    assert report.expected == {}


def test_the_dtype_of_samples():
    """Python's floats are judged as that dtype; integers stay, complex numbers follow."""
    report = testing.conformance(
        el.neg, [([1.0, -2.0],), X.astype(np.float64), ([1j, 2.0],), np.arange(3)], np.negative,
        dtype="float32",
    )  # fmt: skip
    seen = []
    takes = lambda x: (seen.append(x.dtype), -x)[1]  # noqa: E731
    for dtype in ("float16", "float32", "float64"):
        testing.conformance(el.neg, [([1.0, 2.0],), ([1j],), np.int8([1])], takes, dtype=dtype)
    assert report.checks["value"] == 4
    assert list(map(str, seen)) == [
        "float16", "complex64", "int8", "float32", "complex64", "int8",
        "float64", "complex128", "int8",
    ]  # fmt: skip
    with pytest.raises(TypeRule, match="floating dtype"):
        testing.conformance(el.neg, [1.0], np.negative, dtype="int32")


def test_symbolic_sizes_with_their_own_parameters():
    args = shape.broadcast_in_dim, [X], lambda x, shape, dims: np.broadcast_to(x, shape)
    params = {"shape": (4, 2, 3), "dims": (1, 2)}
    report = testing.conformance(*args, params)
    assert "does not broadcast" in report.skipped["symbolic"]
    known = lambda b: {"shape": (4, b, 3), "dims": (1, 2)}  # noqa: E731
    report = testing.conformance(*args, params, symbolic=known)
    assert report.checks["symbolic"] == 1 and not report.skipped


def test_expected_failures_have_reasons_and_are_strict():
    reason = {"trait discrete": "it hides how it varies, that is its purpose"}
    report = testing.conformance(el.stop, [X], np.array, expected=reason)
    assert report.expected == reason
    with pytest.raises(testing.Nonconforming, match=r"trait discrete: was to fail \(it hides"):
        testing.conformance(el.floor, [X], np.floor, expected=reason)


# ---- what is wrong ---------------------------------------------------------------------------

same = lambda *xs, **params: xs[0]  # noqa: E731
_as_is = lambda e, xs, ins, outs, **params: xs[0]  # noqa: E731


def _reversed(e, xs, ins, outs, **params):
    return lower_rules[shape.rev](e, xs, ins, outs, axes=(0,))


def _squares(e, xs, ins, outs, **params):
    return e.op("stablehlo.multiply", [xs[0], xs[0]], outs[0])


def _sums(e, xs, ins, outs, **params):
    return lower_rules[reduction.reduce_sum](e, xs, ins, outs, axes=(0, 1))


scalar = lambda x, **params: x.with_shape(())  # noqa: E731
as_float = lambda x: x.with_dtype(np.float32)  # noqa: E731

LIARS = {
    "elementwise moves": (same, _reversed, traits.Elementwise, np.flipud, None),
    "elementwise drops": (scalar, _sums, traits.Elementwise, np.sum, None),
    "linear": (same, _squares, traits.Linear, np.square, None),
    "zero_preserving": (same, "cosine", traits.ZeroPreserving, np.cos, None),
    "increasing": (same, "negate", traits.Increasing, np.negative, None),
    "decreasing": (same, "sine", traits.Decreasing, np.sin, None),
    "structural": (same, "negate", traits.Structural, np.negative, None),
    "structural by value": (same, "abs", traits.Structural, np.abs, None),
    "reduction": (lambda x, *, axes: x, _as_is, traits.Reduction, np.array, {"axes": (0,)}),
    "cumulative": (lambda x, *, axis, reverse: x, _reversed, traits.Cumulative, np.flipud,
                   {"axis": 0, "reverse": False}),
    "discrete": (same, "sine", traits.Discrete, np.sin, None),
}  # fmt: skip


@pytest.mark.parametrize("name", LIARS)
def test_false_traits_are_found(name):
    rule, lowering, trait, reference, params = LIARS[name]
    p = made(name.replace(" ", "_"), rule, lowering, trait)
    with pytest.raises(testing.Nonconforming) as e:
        testing.conformance(p, [X], lambda x, **_: reference(x), params)
    first, *told = str(e.value).split("\n")
    assert first == f"{p.name} does not conform"
    assert told[0].startswith(f"trait {trait.name[5:]}: "), told


def test_structure_is_judged_by_the_samples_too():
    """|x| of positive tags moves them; of the samples it does not."""
    p = made("abs_like", same, "abs", traits.Structural)
    with pytest.raises(testing.Nonconforming, match="its operands moved"):
        testing.conformance(p, [X], np.abs)
    report = testing.conformance(p, [np.abs(X)], np.abs)
    assert report.checks["trait structural"] == 1


def test_wrong_values_are_found():
    with pytest.raises(testing.Nonconforming) as e:
        testing.conformance(el.sin, [X], np.cos)
    assert "value: " in str(e.value) and "Mismatched elements: 6 / 6" in str(e.value)
    off = lambda x: np.sin(x) * 1.001  # noqa: E731
    with pytest.raises(testing.Nonconforming):
        testing.conformance(el.sin, [X], off)
    assert testing.conformance(el.sin, [X], off, tol=1e-2).checks["value"] == 1


def test_wrong_types_are_found():
    p = made("mistyped", lambda x: x, lambda e, xs, ins, outs: e.op(
        "stablehlo.convert", xs, Aval(outs[0].shape, np.int32)))  # fmt: skip
    with pytest.raises(testing.Nonconforming, match=r"(type|value): "):
        testing.conformance(p, [X], np.array)


def test_a_lowering_that_can_not_do_symbolic_sizes_is_found():
    def lowering(e, xs, ins, outs):
        return e.op("stablehlo.reshape", xs, Aval((int(ins[0].shape[0]), 3), np.float32))

    p = made("rigid", same, lowering)
    with pytest.raises(testing.Nonconforming, match="symbolic: the size a is not known here"):
        testing.conformance(p, [X], np.array)


def test_parameters_without_text_are_skipped_and_bad_text_is_found(monkeypatch):
    p = made("called", lambda x, *, f: x, _as_is)
    report = testing.conformance(p, [X], lambda x, f: x, {"f": print})
    assert report.skipped["text"] == "a parameter has no text form"
    monkeypatch.setattr(kit, "same_program", lambda a, b: False)
    with pytest.raises(testing.Nonconforming, match="text: this text is read as another program"):
        testing.conformance(el.sin, [X], np.sin)


def test_only_primitives_are_judged():
    with pytest.raises(TypeRule, match="conformance judges a primitive"):
        testing.conformance(np.sin, [X], np.sin)


def test_all_failures_are_told_together():
    p = made("bad", same, "negate", traits.Increasing, traits.Structural, traits.ZeroPreserving)
    with pytest.raises(testing.Nonconforming) as e:
        testing.conformance(p, [X], np.array)
    names = [line.partition(":")[0] for line in str(e.value).split("\n") if ":" in line]
    assert {"value", "trait increasing", "trait structural"} <= {*names}
    assert "trait zero_preserving" not in names


# ---- laws of tables --------------------------------------------------------------------------


class Point:
    def __init__(self, name, law):
        self.name, self.law, self.group, self.value = name, law, "plait.laws", "somewhere:law"

    def load(self):
        return self.law


@pytest.fixture
def law_of(monkeypatch):
    """Installs a law for a table, as a distribution would."""

    def install(table, law):
        point = type(declared("plait.primitives", "core")[0])(
            Point(table, law), "plait-core", "1.0"
        )
        monkeypatch.setattr(kit, "names", lambda group: [table] * (group == "plait.laws"))
        found = lambda group, name: (point,) if (group, name) == ("plait.laws", table) else ()  # noqa: E731
        monkeypatch.setattr(kit, "declared", found)
        monkeypatch.setattr(columns, "declared", found)

    return install


def test_laws_are_called_with_operands_and_parameters(law_of):
    seen = []

    def law(prim, args, params):
        seen.append((prim, [a.shape for a in args], params))
        args[0][:] = 0  # what a law does to its operands is its own affair
        return 5

    law_of("mine", law)
    params = [{"exponent": 2}, {"exponent": 3}]
    report = testing.conformance(el.integer_pow, [X, X], lambda x, exponent: x**exponent, params)
    assert report.checks["law mine"] == 10
    assert seen == [(el.integer_pow, [(2, 3)], p) for p in params]


def test_a_law_that_is_broken_or_does_not_apply(law_of):
    def broken(prim, args, params):
        raise AssertionError("two sides differ")

    law_of("mine", broken)
    with pytest.raises(testing.Nonconforming, match="law mine: two sides differ"):
        testing.conformance(el.sin, [X], np.sin)
    why = {"law mine": "not done yet"}
    assert testing.conformance(el.sin, [X], np.sin, expected=why).expected == why

    def idle(prim, args, params):
        raise testing.Inapplicable("nothing to say of it")

    law_of("mine", idle)
    assert testing.conformance(el.sin, [X], np.sin).skipped["law mine"] == "nothing to say of it"
    idle.applies = lambda prim: prim is not el.sin
    report = testing.conformance(el.sin, [X], np.sin)
    assert report.skipped["law mine"] == "the table has nothing to say of this primitive"


# ---- the matrix ------------------------------------------------------------------------------


def test_coverage_says_where_an_answer_comes_from():
    cells = testing.coverage("lower")
    assert cells["core.sin"] == cells["core.scan"] == "own"
    assert cells["core.map_axes"] == "expand"
    assert cells["core.psum"] == "not applicable"
    table = RuleTable("testing_column")
    table.rule(el.sin)(lambda x: x)
    table.rule(traits.Linear)(lambda prim, x: x)
    cells = testing.coverage("testing_column")
    assert (cells["core.sin"], cells["core.neg"], cells["core.cos"]) == ("own", "trait", "missing")
    assert cells["core.scan"] == "missing", "nobody carries this table"
    assert cells["core.map_axes"] == "expand"
    assert list(cells) == sorted(cells)
    with pytest.raises(PlaitError, match="there is no table 'no_such_table'"):
        testing.coverage("no_such_table")


def test_a_carriers_table_needs_no_rules_for_what_core_carries():
    cells = testing.coverage("testing_interval")
    assert cells["core.scan"] == cells["core.map_axes"] == "wiring"
    assert cells["core.iota"] == "not applicable", "it has no operand that could be lifted"
    assert cells["core.axis_index"] == "missing", "it speaks of an axis"
    assert (cells["core.mul"], cells["core.add"], cells["core.sin"]) == ("own", "trait", "missing")


def test_the_law_says_what_a_table_is_not_asked(law_of):
    RuleTable("testing_column")
    law = lambda *_: 0  # noqa: E731
    law.applies = lambda prim: traits.Linear in prim.traits
    law_of("testing_column", law)
    cells = testing.coverage("testing_column")
    assert (cells["core.neg"], cells["core.sin"]) == ("missing", "not applicable")


def test_no_primitive_of_core_is_without_lowering():
    bad = [n for n, cell in testing.coverage("lower").items() if cell == "missing"]
    assert not [n for n in bad if registered(n).namespace in ("core", "linalg", "special", "nn")]


def test_the_matrix_has_every_primitive_and_every_table(monkeypatch):
    rows = testing.matrix()
    ours = ("core", "linalg", "special", "nn")
    assert {n for n, p in primitives().items() if p.namespace in ours} <= {*rows}
    assert not [n for n in rows if n.startswith("testing.")]
    assert all("lower" in row for row in rows.values())
    text = testing.matrix_text().split("\n")
    assert text[0].startswith("| primitive | lower |")
    assert len(text) == len(rows) + 3
    assert any(line.startswith("| `core.sin` | own |") for line in text)

    def refuse(d):
        raise PluginError("it cannot be imported")

    monkeypatch.setattr(columns, "names", lambda group: ["ruin"] * (group == "plait.tables"))
    ruin = type(declared("plait.primitives", "core")[0])(Point("ruin", None), "testing-ruin", "1.0")
    monkeypatch.setattr(columns, "declared", lambda group, name: (ruin,) * (name == "ruin"))
    monkeypatch.setattr(columns, "load", refuse)
    assert testing.matrix()["core.sin"] == {"lower": "own", "ruin": "broken"}


# ---- transformations -------------------------------------------------------------------------

interval_rules = RuleTable("testing_interval", doc="rule(lows, highs, **params) -> (low, high).")


class Interval(Carrier):
    """Carries two ends, between which the value lies."""

    rules = interval_rules
    does = "bounds"
    commutes, loses = frozenset(("mapping",)), frozenset(("derivative",))

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, f, g):
        return parts[0], parts[0]

    def run(self, prim, rule, args, params):
        lows, highs = zip(*[self.to_form(a, "interval") for a in args])
        low, high = rule(lows, highs, **params)
        return self.lift(low.aval, "interval", (low, high))


interval_rules.rule(traits.Increasing)(
    lambda prim, lo, hi, **p: (prim.bind(*lo, **p), prim.bind(*hi, **p))
)


@interval_rules.rule(el.mul)
def _(lo, hi):
    ends = [el.mul.bind(a, b) for a in (lo[0], hi[0]) for b in (lo[1], hi[1])]
    low = high = ends[0]
    for e in ends[1:]:
        low, high = el.minimum.bind(low, e), el.maximum.bind(high, e)
    return low, high


def bounds(f, carrier=Interval):
    def bounded(lo, hi):
        i = carrier(current(), of=f)
        with opened(i):
            lo, hi = as_value(lo), as_value(hi)
            out = as_value(f(i.lift(lo.aval, "interval", (lo, hi))))
            return i.to_form(out, "interval")

    return bounded


def corners(f):
    """By trying both ends: right for functions that rise."""
    return lambda lo, hi: (np.asarray(f(lo)), np.asarray(f(hi)))


ENDS = [np.float32([0.1, -2]), np.float32([0.3, 1])]


def test_a_transformation_of_a_third_party_passes():
    report = testing.transform_suite(bounds, corners, ENDS)
    assert report.checks["leak"] == report.checks["missing rule"] == 1
    assert report.checks["scan from a plain carry, jit outside"] == 2
    assert report.checks["coerce"] == 4  # two ends of a plain value, in two ways
    assert report.total > 100
    absent = ("custom_", "pile")  # of packages that are absent, or without rules for moving rows
    assert all(name.startswith(absent) for name in report.skipped)
    again = testing.transform_suite(bounds, None, ENDS, step=lambda x: el.mul(x, x))
    assert again.checks.keys() == report.checks.keys()


def test_no_transformation_at_all_passes_too():
    report = testing.transform_suite(lambda f: f, None, ENDS[:1])
    assert report.skipped["leak"] == "the function is not given a tracer"
    assert report.skipped["coerce"] == "the function is not given a value that a carrier lifted"
    left = ("custom_", "pile", "leak", "coerce")
    assert all(n.startswith(left) for n in report.skipped)


def failures(api, oracle_=corners, args=ENDS):
    with pytest.raises(testing.Nonconforming) as e:
        testing.transform_suite(api, oracle_, args)
    lines = str(e.value).split("\n")
    return {line.split(":")[0] for line in lines if ":" in line and line[0] not in " +"}


def test_a_wrong_rule_is_found():
    def api(f):
        return lambda lo, hi: bounds(f)(lo, el.add(hi, 1e-2))

    assert {"step", "scan", "while, jit inside"} <= failures(api)


def test_a_carrier_that_can_not_coerce_is_found_where_forms_meet():
    class Rigid(Interval):
        def coerce(self, aval, parts, f, g):
            raise PlaitError("Rigid: a plain value cannot be made an interval")

        def run(self, prim, rule, args, params):
            ends = [self.split(a)[1] for a in args]
            ends = [e if len(e) == 2 else (e[0], e[0]) for e in ends]
            low, high = rule(*zip(*ends), **params)
            return self.lift(low.aval, "interval", (low, high))

    def api(f):
        def g(lo, hi):
            i = Rigid(current(), of=f)
            with opened(i):
                lo, hi = as_value(lo), as_value(hi)
                out = as_value(f(i.lift(lo.aval, "interval", (lo, hi))))
                parts = i.split(out)[1]
                return parts if len(parts) == 2 else parts * 2

        return g

    found = failures(api)
    assert "scan from a plain carry" in found and "cond with a plain branch" in found
    assert "step" not in found and "scan" not in found and "constant" not in found


def test_retracing_is_found(monkeypatch):
    """A transformation that compiles for itself, a new function at every call."""

    def forgetful(f):
        return lambda lo, hi: plait.jit(lambda a, b: bounds(f)(a, b))(lo, hi)

    assert testing.transform_suite(forgetful, corners, ENDS).checks["traced once"] == 1
    monkeypatch.setattr(carriers, "jit", lambda f, **_: f)  # nobody compiles it as a whole
    with pytest.raises(AssertionError, match="is traced again"):
        carriers._traced_once(forgetful, lambda x: el.add(x, 1.0), [as_value(1.0)] * 2)


def test_leaks_are_found():
    class Open(Interval):
        """Pretends to be at work in another thread when it has ended."""

        def run(self, prim, rule, args, params):
            self.thread = -1
            return super().run(prim, rule, args, params)

    def left_open(f):
        def bounded(lo, hi):
            i = Open(current(), of=f)
            lo, hi = as_value(lo), as_value(hi)
            with use(i):
                return i.to_form(f(i.lift(lo.aval, "interval", (lo, hi))), "interval")

        return bounded

    assert "leak" in failures(left_open)


def test_an_error_that_does_not_name_the_primitive_is_found():
    class Mute(Interval):
        def apply(self, prim, args, params):
            if prim.name == "testing.unknown":
                raise MissingRule("no rule")
            return super().apply(prim, args, params)

    assert failures(lambda f: bounds(f, Mute)) == {"missing rule"}


# ---- comparing -------------------------------------------------------------------------------


def test_agree():
    assert testing.agree({"a": X, "b": (1, 2.0)}, {"a": X, "b": (1, 2.0)}) == 3
    assert testing.agree(np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf])) == 1
    assert testing.agree(el.add(1.0, 0.0), 1 + 1e-6) == 1
    for a, b in (((X,), (X, X)), (X, X[0]), (X, X + 1e-3), (np.int32(1), np.int32(2)), (1.0, 1.1)):
        with pytest.raises(AssertionError):
            testing.agree(a, b)
    assert testing.agree(X, X + 1e-3, 1e-2) == 1


@pytest.mark.parametrize(
    ("dtype", "near"), [("bool", 0), ("int64", 0), ("float64", 1e-10), ("complex128", 1e-10),
                        ("complex64", 2e-5), ("float16", 2e-2), ("bfloat16", 5e-2)],
)  # fmt: skip
def test_tolerances(dtype, near):
    assert testing.tolerance(plait.dtypes.dtype(dtype)) == near


def test_checks_can_not_vanish_unseen():
    total = testing.conformance(el.sin, [X], np.sin).total
    testing.conformance(el.sin, [X], np.sin, at_least=total)
    with pytest.raises(testing.Nonconforming, match=f"only {total} comparisons were made"):
        testing.conformance(el.sin, [X], np.sin, at_least=total + 1)


def test_checks_count_by_default_one():
    checks = Checks("it")
    checks.run("a", lambda: None)
    checks.run("a", lambda: 3)
    assert checks.report().checks == {"a": 4}
    checks.run("b", lambda: 1 / 0)
    with pytest.raises(testing.Nonconforming, match="it does not conform\nb: ZeroDivisionError"):
        checks.report()


# ---- random programs and their oracle --------------------------------------------------------


def test_a_seed_is_a_program():
    for seed in range(20):
        p, q = testing.random_program(seed), testing.random_program(seed)
        assert same_program(p, q)
        a, b = (testing.random_arguments(p, 1) for _ in range(2))
        assert all(x.tobytes() == y.tobytes() for x, y in zip(a, b))
        assert [(x.shape, x.dtype) for x in a] == [(t.shape, t.dtype) for t in p.in_avals]
    assert not same_program(testing.random_program(1), testing.random_program(2))


def test_random_programs_have_everything():
    def names(p):
        found = {e.prim.name for e in p.eqns}
        return found.union(*[names(q) for e in p.eqns for q in programs_in(e.params)])

    found = set().union(*[names(testing.random_program(seed)) for seed in range(60)])
    assert {"core.call", "core.cond", "core.while", "core.scan", "core.add", "core.rev"} <= found
    assert any(testing.random_program(seed).constants for seed in range(10))


def test_the_oracle_has_the_types_that_type_rules_say():
    for seed in range(100):
        p = testing.random_program(seed)
        outs = testing.numpy_evaluate(p, testing.random_arguments(p, seed))
        assert [(x.shape, x.dtype) for x in outs] == [(t.shape, t.dtype) for t in p.out_avals]


def test_the_oracle_agrees_with_the_compiler():
    for seed in range(100, 108):
        p = testing.random_program(seed, size=10)
        args = testing.random_arguments(p, seed)
        run = plait.jit(lambda *xs: call.bind(*xs, program=p))  # noqa: B023
        testing.agree(run(*args), testing.numpy_evaluate(p, args), 1e-4)


ORACLE = {
    el.abs_: (X,), el.sign: (X,), el.ceil: (X,), el.div: (X, Y), el.rem: (X, Y), el.sqrt: (abs(X),),
    el.exp: (X,), el.cos: (X,), el.is_finite: (X,), el.real: (X + 1j * Y,), el.imag: (X + 1j * Y,),
    el.ne: (X, Y), el.le: (X, Y), el.gt: (X, Y), el.clamp: (X - 1, Y, X), el.conj: (X + 1j * Y,),
    el.shift_left: (np.int32([1, 5]), np.int32([3, 0])), el.not_: (np.int8([1, -5]),),
    el.shift_right_arithmetic: (np.int32([-8, 5]), np.int32([1, 2])),
}  # fmt: skip


@pytest.mark.parametrize("prim", ORACLE, ids=repr)
def test_the_oracle_against_single_primitives(prim):
    xs = [np.asarray(x) for x in ORACLE[prim]]
    got = oracle.ArrayOracle().apply(prim, xs, {})
    testing.agree(got, prim(*xs))


@pytest.mark.parametrize(
    ("prim", "params"),
    [(shape.broadcast_in_dim, {"shape": (3, 5, 2), "dims": (2, 0)}),
     (shape.slice_, {"starts": (0, 1), "limits": (2, 3), "strides": (1, 2)}),
     (shape.squeeze_, {"axes": ()}), (shape.rev, {"axes": (0, 1)}),
     (el.integer_pow, {"exponent": 5}), (el.integer_pow, {"exponent": -3}),
     (el.integer_pow, {"exponent": 0}), (reduction.reduce_max, {"axes": (0,)}),
     (shape.convert_, {"dtype": np.dtype(np.int32), "weak": False}),
     (shape.convert_, {"dtype": np.dtype(bool), "weak": False})],
    ids=str,
)  # fmt: skip
def test_the_oracle_against_primitives_with_parameters(prim, params):
    testing.agree(oracle.ArrayOracle().apply(prim, [X], params), prim.bind(as_value(X), **params))


def test_the_oracle_says_what_it_does_not_know():
    p = staged(lambda x: [carriers.unknown.bind(x)], [Aval((2, 3), np.float32)])
    with pytest.raises(MissingRule, match=r"the oracle does not know testing\.unknown"):
        testing.numpy_evaluate(p, [X])


def test_a_literal_and_a_map_in_the_oracle():
    def f(x):
        return plait.map_axes(lambda r: el.mul(r, Literal(2.0, Aval((2,), np.float32))), 1, 1)(x)

    p = plait.make_program(f)(X)
    testing.agree(testing.numpy_evaluate(p, [X]), X * 2)


def test_the_kit_needs_no_expand_rule():
    """The primitive that no table knows stays unknown."""
    for table in (expand_rules, lower_rules, interval_rules):
        assert table.find(carriers.unknown) is None
