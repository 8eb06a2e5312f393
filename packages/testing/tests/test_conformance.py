"""Every primitive of core against numpy: its samples in one program, the first of them on its own.

Invariant: a primitive without a reference, or without samples, fails; nothing is skipped by name.
"""

import numpy as np
import pytest

from plait import testing
from plait.ext import rules as traits
from plait.ext.ir import primitives, registered
from plait.ext.plugins import declared, load
from plait.testing import kit
from plait.testing.closeness import differing, flushed, places
from plait.testing.differences import DIFFERENCES, excused
from plait.testing.operands import DTYPES, NARROW, accepted, edges
from plait.testing.oracle import in_numpy
from plait.testing.promises import PROMISES
from plait.testing.references import FAMILIES, all_references
from plait.testing.report import Inapplicable

SPACES = "core", "linalg", "special", "nn"
for namespace in SPACES:  # which defines the primitives
    for declaration in declared("plait.primitives", namespace):
        load(declaration)


@pytest.fixture(autouse=True)
def no_laws(monkeypatch):
    """Laws of tables that happen to be installed are judged in their packages."""
    monkeypatch.setattr(kit, "names", lambda group: [])


def of_core():
    return {n: p for n, p in primitives().items() if p.namespace in SPACES}


def known(family):
    """What is tried of a family: what speaks of no axis that somebody must bind."""
    found = {registered(name): r for name, r in family.REFERENCES.items()}
    return {p: r for p, r in found.items() if p.ambient is None}


def test_every_primitive_of_core_has_a_reference_and_samples():
    assert of_core().keys() == all_references().keys()
    assert sum(len(f.REFERENCES) for f in FAMILIES) == len(all_references()), (
        "one is in two modules"
    )
    for prim in of_core().values():
        assert next(iter(testing.reference(prim).samples(prim)), None), f"{prim} has no sample"


def moves(prim):
    """Return whether every sample shows results that are elements of the operands."""
    shown = 0
    for args, params in testing.reference(prim).samples(prim):
        args = [*map(np.asarray, args)]
        if args and all(x.dtype == np.float32 for x in args):
            f = lambda *xs, params=params: [np.asarray(y) for y in in_numpy(prim)(*xs, **params)]
            try:
                shown += PROMISES[traits.Structural](f, args, params)
            except (AssertionError, np.linalg.LinAlgError):
                return False
            except Inapplicable:
                pass
    return shown > 0


def test_primitives_that_move_elements_have_a_trait_that_says_so():
    """Otherwise a transformation with rules for traits, and none for them, misses these."""
    named = {traits.Structural, traits.Elementwise, traits.Collective, traits.Indexing}
    chosen = [p for p in of_core().values() if p.higher is None and p.ambient is None]
    found = [p for p in chosen if p.namespace == "core" and moves(p)]
    assert len(found) >= 10
    assert not [p.name for p in found if named.isdisjoint(p.traits)]


PRECISE = {"accuracy", "elementwise", "reduction"}
"""Families whose references allow fewer places than the fast tier is wrong by."""


def judged(family):
    name = family.__name__.rpartition(".")[2]
    return pytest.param(family, id=name, marks=[pytest.mark.full_tier] * (name in PRECISE))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("family", [judged(f) for f in FAMILIES])
def test_all_samples(family):
    cases = known(family)
    if cases:
        report = testing.trial(cases, at_least=len(cases))
        assert report.checks["value"] >= len(cases)


LONG = {"bessel": 0, "hypergeometric": 0, "incomplete": 1, "roots": 0, "sampling": 0}
"""Families of loops, which take long to compile: how many are tried on their own."""

STRICT = {"core.stop": {"trait discrete": "it hides how it varies, that is its purpose"}}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__.rpartition(".")[2])
def test_ordinary_samples_conform(family):
    """Eager and jitted, traits, text and symbolic sizes of each alone."""
    name = family.__name__.rpartition(".")[2]
    for prim, r in list(known(family).items())[: LONG.get(name)]:
        if r.through is None:
            first = next(iter(r.samples(prim)))
            report = testing.conformance(
                prim, [first.args], in_numpy(prim), first.params, view=r.view,
                expected=STRICT.get(prim.name), at_least=3,
            )  # fmt: skip
            assert report.checks["value"] and report.checks["jit"]


# ---- what is wrong is found ------------------------------------------------------------------

SIN = registered("core.sin")


def told(known):
    with pytest.raises(testing.Nonconforming) as e:
        testing.trial(known)
    return str(e.value)


def one(value, x, prim=SIN, **options):
    return {prim: testing.Reference(value, lambda p: iter([testing.Sample((x,))]), **options)}


@pytest.fixture
def as_reference(monkeypatch):
    """The oracle believes what a test says of a primitive."""

    def believe(known):
        held = {p.name: r for p, r in known.items()}
        monkeypatch.setattr(
            "plait.testing.oracle.all_references", lambda: {**all_references(), **held}
        )
        return known

    return believe


def test_wrong_values_are_found_element_by_element(as_reference):
    x = np.float32([0.25, 0.5])
    bumped = lambda v: np.sin(v) * np.float32([1, 1 + 2e-6])  # noqa: E731
    text = told(as_reference(one(bumped, x, ulps=3)))
    assert "core.sin(f32[2]): 1 of 2 elements: 0.4794" in text and "of 0.5 is not" in text
    assert testing.trial(as_reference(one(bumped, x, ulps=40))).checks["value"] == 1
    text = told(as_reference(one(lambda v: np.sin(v).astype(np.float64), x)))
    assert "core.sin(f32[2]): float32(2,)" in text


def test_samples_can_not_vanish_unseen():
    none = {SIN: testing.Reference(np.sin, lambda p: iter([testing.Sample((np.ones(1),))]), 2)}
    with pytest.raises(testing.Nonconforming, match="only 3 comparisons were made"):
        testing.trial(none, at_least=4)


def test_primitives_of_others_have_no_reference():
    with pytest.raises(testing.report.PlaitError, match=r"no reference for testing\.unknown"):
        testing.reference(testing.carriers.unknown)


# ---- distances -------------------------------------------------------------------------------


def test_places():
    tiny = np.finfo(np.float32).smallest_subnormal
    want = np.float32([1, 1, 0.0, 0.0, np.inf, np.nan, np.nan, np.inf, 1])
    got = np.float32([1 + 2**-22, 1, -0.0, tiny, -np.inf, np.nan, 1, np.inf, np.inf])
    far = places(got, want)
    assert far.tolist()[:3] == [2, 0, np.inf] and far[3] > 0
    assert far.tolist()[4:] == [np.inf, 0, np.inf, 0, np.inf]
    assert places(got[:1], want[:1], least=2.0) == 1
    assert places(np.float32([100, 1e-5]), np.float32([100, 0]), whole=True)[1] < 2
    assert places(np.int8([1, 2]), np.int8([1, 3])).tolist() == [0, np.inf]


def test_places_of_complex_numbers():
    nan = np.nan
    want = np.array([1 + 0j, complex(nan, 0.0), complex(np.inf, nan), 0j, 1e10 + 1j])
    got = np.array([1 - 0j, complex(nan, -0.0), complex(-np.inf, nan), 0j, 1e10 + 1.000001j])
    got[0] = complex(1, -0.0)
    assert places(got, want).tolist()[:4] == [np.inf, 0, 0, 0]
    assert places(got, want, zeros=False)[0] == 0
    assert 0 < places(got, want)[4] < 10, "in places of the larger part"


def test_flushed_numbers():
    x = np.array([1e-40, -1e-40, 1e-30, np.nan, np.inf], np.float32)
    out = flushed(x)
    assert out[:3].tolist() == [0, 0, np.float32(1e-30)] and np.signbit(out[1])
    assert np.isnan(out[3]) and out[4] == np.inf
    double = lambda v: [v * 2]  # noqa: E731
    kept, zeros = [x * 2], [flushed(x * 2)]
    for platform, wrong in (("cpu", 0), ("cuda", 2)):
        assert differing(double, [x], kept, 0, platform)[0].sum() == 0
        assert differing(double, [x], zeros, 0, platform)[0].sum() == wrong


def test_differences_are_masked_where_they_are():
    digamma, x = registered("core.digamma"), np.array([0.0, -0.0, 1.0])
    assert excused(digamma, [x], x).tolist() == [True, True, False]
    assert not excused(SIN, [x], x).any()
    for d in DIFFERENCES:
        assert set(d.prims) <= all_references().keys() and d.ours != d.theirs or d.ours == "either"
    assert testing.differences_text().count("\n") == len(DIFFERENCES) + 2


# ---- edges -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW], ids=str)
def test_edges_are_there(dtype):
    x = edges(dtype)
    assert x.dtype == dtype and len({v.tobytes() for v in x}) == x.size or dtype.kind == "V"
    if "float" in dtype.name and "8" not in dtype.name.partition("float")[2][:1]:
        wide = x.astype(np.float64)
        assert np.isnan(wide).any() and {np.inf, -np.inf, 0.5} <= {*wide.tolist()}
        assert {True, False} <= {*np.signbit(wide[wide == 0]).tolist()}
    elif "int" in dtype.name:
        whole = [int(v) for v in x]
        assert 0 in whole and 1 in whole and (min(whole) < 0) == ("uint" not in dtype.name)


def test_what_a_type_rule_takes():
    assert accepted(registered("core.erf")) == [d for d in DTYPES if "float" in d.name]
    assert [d.name for d in accepted(registered("core.complex"), 2)] == ["float32", "float64"]
