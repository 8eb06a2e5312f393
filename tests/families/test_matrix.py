"""The matrix of primitives and tables has no gap; collectives do what numpy says of all rows.

Invariant: the tables are those that the project's own packages declare, whatever else is installed.
"""

import numpy as np
import pytest

import plait
from plait import testing
from plait._core.primitive import registered
from plait._plugins.metadata import declared, names
from plait.ext.errors import MissingRule
from plait.ext.trace import as_list
from plait.testing.references import collective
from plait_autodiff.laws import inverse_law

OURS = {f"plait-{name}" for name in ("core", "autodiff", "batching", "sharding", "export", "state")}


def own_tables():
    tables = [n for n in names("plait.tables") for d in declared("plait.tables", n)
              if d.distribution in OURS]  # fmt: skip
    assert len(tables) >= 8
    return ["lower", *tables]


def own_namespaces():
    """Those of our primitives: others' samples and tests make some, too."""
    return {
        n
        for n in names("plait.primitives")
        for d in declared("plait.primitives", n)
        if d.distribution in OURS
    }


def test_no_cell_is_missing():
    tables, spaces = own_tables(), own_namespaces()
    gaps = [
        f"{prim}: {table} {row[table]}"
        for prim, row in testing.matrix().items()
        for table in tables
        if prim.rpartition(".")[0] in spaces and row[table] in ("missing", "broken")
    ]
    assert not gaps, "write a rule, or say in the table's law that it is not asked\n" + "\n".join(
        gaps
    )


# ---- collectives -----------------------------------------------------------------------------

COLLECTIVES = {registered(name): r for name, r in collective.REFERENCES.items()}


@pytest.mark.parametrize("prim", COLLECTIVES, ids=repr)
def test_collectives(prim):
    known = COLLECTIVES[prim]
    for x, params in known.samples(prim):
        rows = x[0] if x else np.zeros(collective.SIZE)
        body = lambda *vs, p=params: as_list(prim.bind(*vs[: len(x)], **p))[0]  # noqa: B023, E731
        got = plait.jit(plait.vmap(body, axis_name=collective.NAME))(rows)
        want = np.asarray(known.value(*x, **params))
        testing.agree(got, want)
        assert got.dtype == want.dtype


# ---- the law of inverses ---------------------------------------------------------------------


def test_what_is_undone_is_what_there_was():
    judged = 0
    for name, known in testing.references.all_references().items():
        prim = registered(name)
        if inverse_law.applies(prim) and known.through is None:
            first = next(iter(known.samples(prim)))
            try:
                judged += inverse_law(prim, [np.asarray(x) for x in first.args], first.params)
            except testing.Inapplicable:
                continue
    assert judged >= 30
    assert not inverse_law.applies(registered("core.cos"))


def test_a_wrong_inverse_is_found(monkeypatch):
    tanh = registered("core.tanh")
    rules = {tanh: lambda y, x: [y]}
    monkeypatch.setattr("plait_autodiff.laws.inverse_rules", rules)
    with pytest.raises(AssertionError, match="operand 0, from the result"):
        inverse_law(tanh, [np.float32([0.3, -0.7])], {})


def test_an_inverse_that_is_nowhere_finite_is_found(monkeypatch):
    tanh = registered("core.tanh")
    rules = {tanh: lambda y, x: [y * np.nan]}
    monkeypatch.setattr("plait_autodiff.laws.inverse_rules", rules)
    with pytest.raises(AssertionError, match="nowhere finite"):
        inverse_law(tanh, [np.float32([0.3, -0.7])], {})


def test_foreign_functions_have_no_derivative_and_say_so():
    kind = plait.ShapeDtypeStruct((2, 2), np.float32), plait.ShapeDtypeStruct((), np.int32)
    call = plait.ffi.ffi_call("lapack_spotrf_ffi", kind)
    f = lambda x: call(x, uplo=np.uint8(76))[0].sum()  # noqa: E731
    with pytest.raises(MissingRule, match="derivative of the foreign function lapack_spotrf_ffi"):
        plait.grad(f)(np.eye(2, dtype=np.float32))
    held = lambda x: (call(plait.lax.stop_gradient(x), uplo=np.uint8(76))[0] * x).sum()  # noqa: E731
    np.testing.assert_allclose(plait.grad(held)(np.eye(2, dtype=np.float32)), np.eye(2))
