"""Cotangents that are added to references, and backward rules that write them.

Invariant: what is added to a reference is compared with the gradient of the function without it.
"""

import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.ad import DidntWant, DontWant, GradRef, GradValue
from plait.errors import ArgumentError, OperandTypeError, ShapeError, TreeMismatch


def predict(tree, x):
    return pnp.tanh(tree["w"] @ x + tree["b"])


TREE = {"w": pnp.arange(6.0).reshape(2, 3) / 6, "b": pnp.ones(2)}
X = pnp.array([0.5, -1.0, 2.0])
CT = pnp.array([1.0, -2.0])
EXPECTED = plait.grad(lambda *args: predict(*args) @ CT, argnums=(0, 1))(TREE, X)
EAGER_OR_JITTED = pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])


@EAGER_OR_JITTED
def test_cotangents_are_added_returned_or_left_out(wrap):
    total = plait.new_ref(pnp.ones((2, 3)))

    @wrap
    def step(tree, x):
        _, pullback = plait.vjp(predict, tree, x)
        places = {"w": total, "b": GradValue()}
        got = pullback.with_refs(places, DontWant())(CT)
        assert got[0]["w"] == GradRef() and got[1] == DidntWant()
        return got[0]["b"]

    for _ in range(2):
        np.testing.assert_allclose(step(TREE, X), EXPECTED[0]["b"], rtol=1e-5)
    np.testing.assert_allclose(total[...], 1 + 2 * EXPECTED[0]["w"], rtol=1e-5)


def test_one_mark_is_for_a_whole_argument():
    _, pullback = plait.vjp(predict, TREE, X)
    total = plait.new_ref(pnp.zeros(3))
    assert pullback.with_refs(DontWant(), total)(CT)[0] == {"w": DidntWant(), "b": DidntWant()}
    np.testing.assert_allclose(total[...], EXPECTED[1], rtol=1e-5)
    tree, _ = pullback.with_refs(GradValue(), DontWant())(CT)
    np.testing.assert_allclose(tree["w"], EXPECTED[0]["w"], rtol=1e-5)


def test_what_is_not_wanted_is_not_computed():
    _, pullback = plait.vjp(lambda w, x: w @ x, pnp.ones((4, 4)), pnp.ones(4))

    def products(*places):
        program = plait.make_program(lambda: pullback.with_refs(*places)(pnp.ones(4)))()
        return str(program).count("dot_general")

    assert products(GradValue(), GradValue()) == 2
    assert products(GradValue(), DontWant()) == products(DontWant(), GradValue()) == 1
    assert products(DontWant(), DontWant()) == 0


@EAGER_OR_JITTED
def test_gradients_of_microbatches_add_up_in_a_loop(wrap):
    weights, batch = pnp.arange(12.0).reshape(3, 2, 2) / 12, pnp.arange(10.0).reshape(5, 1, 2)

    def loss(weights, x):
        return pnp.mean(plait.lax.scan(lambda x, w: (pnp.tanh(x @ w), None), x, weights)[0])

    @wrap
    def accumulated(weights, batch):
        total = plait.new_ref(pnp.zeros_like(weights))

        def step(_, x):
            value, pullback = plait.vjp(lambda w: loss(w, x), weights)
            pullback.with_refs(total)(pnp.ones_like(value))
            return None, value

        _, losses = plait.lax.scan(step, None, batch)
        return plait.freeze(total), losses

    got, losses = accumulated(weights, batch)
    expected = sum(plait.grad(loss)(weights, x) for x in batch)
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    np.testing.assert_allclose(losses, [loss(weights, x) for x in batch], rtol=1e-5)


def test_an_accumulator_may_be_wider():
    total = plait.new_ref(pnp.zeros(3, "float32"))
    for x in (256.0, 1.0, 1.0):  # bfloat16 cannot hold the sum
        _, pullback = plait.vjp(lambda w, x=x: w * x, pnp.ones(3, "bfloat16"))
        pullback.with_refs(total)(pnp.ones(3, "bfloat16"))
    np.testing.assert_array_equal(total[...], [258.0] * 3)


@pytest.mark.parametrize(
    "places, error",
    [
        ((), TreeMismatch),
        ((DontWant(),) * 3, TreeMismatch),
        (({"w": DontWant()}, DontWant()), TreeMismatch),
        ((plait.new_ref(pnp.zeros(3)), DontWant()), TreeMismatch),
        ((DontWant(), 3.0), ArgumentError),
        ((DontWant(), plait.new_ref(0.0)), ShapeError),
        ((DontWant(), plait.new_ref(pnp.zeros(3, int))), OperandTypeError),
        ((DontWant(), plait.new_ref(pnp.zeros(3, complex))), OperandTypeError),
    ],
)
def test_places_that_do_not_fit_are_refused(places, error):
    _, pullback = plait.vjp(predict, TREE, X)
    with pytest.raises(error, match=r"with_refs.*\n  at .*test_gradient_references.py"):
        pullback.with_refs(*places)


def test_an_integer_has_no_cotangent_to_be_added():
    _, pullback = plait.vjp(lambda x, i: x[i], X, 1)
    with pytest.raises(OperandTypeError, match="has no derivative"):
        pullback.with_refs(DontWant(), plait.new_ref(0))


# ---- with respect to references ------------------------------------------------------------------


@EAGER_OR_JITTED
def test_a_reference_is_differentiated_by_what_it_held(wrap):
    held, total = plait.new_ref(2.0), plait.new_ref(100.0)

    def function(ref, y):
        ref[...] = pnp.sin(ref[...]) * y
        return ref[...] ** 2

    @wrap
    def run():
        value, pullback = plait.vjp(function, held, 3.0)
        _, of_y = pullback.with_refs(total, GradValue())(1.0)
        return value, of_y

    value, of_y = run()
    np.testing.assert_allclose(value, (np.sin(2.0) * 3) ** 2, rtol=1e-5)
    np.testing.assert_allclose(held[...], np.sin(2.0) * 3, rtol=1e-5)
    np.testing.assert_allclose(total[...], 100 + 18 * np.sin(2.0) * np.cos(2.0), rtol=1e-5)
    np.testing.assert_allclose(of_y, 6 * np.sin(2.0) ** 2, rtol=1e-5)


def test_a_pullback_by_a_reference_passes_through_jit_with_auxiliary_values():
    held, total = plait.new_ref(pnp.arange(3.0)), plait.new_ref(pnp.zeros(3))
    _, pullback, aux = plait.vjp(lambda r: (r[1] * r[2], r[0] + 1), held, has_aux=True)
    plait.jit(lambda p: p.with_refs(total)(1.0))(pullback)
    np.testing.assert_array_equal(total[...], [0.0, 2.0, 1.0])
    assert aux == 1


def test_a_cotangent_of_a_reference_is_no_result():
    _, pullback = plait.vjp(lambda r, x: r[...] * x, plait.new_ref(2.0), 3.0)
    with pytest.raises(ArgumentError, match=r"(?s)cotangent is added.*with_refs\(plait.new_ref"):
        pullback(1.0)
    with pytest.raises(ArgumentError, match="cotangent is added"):
        pullback.with_refs(GradValue(), GradValue())
    assert pullback.with_refs(DontWant(), GradValue())(1.0) == (DidntWant(), 2.0)


def test_a_reference_of_integers_needs_no_place():
    count = plait.new_ref(0)

    def function(x, count):
        count[...] += 1
        return x * x

    _, pullback = plait.vjp(function, 3.0, count)
    assert pullback(1.0)[0] == 6.0 and count[...] == 1


# ---- rules that write references -----------------------------------------------------------------


@plait.custom_vjp
def stash(ref, x):
    return x


def _write(ref, ct):
    ref[...] = ct
    return None, ct


stash.defvjp(lambda ref, x: (x, ref), _write)


def stashing(x, ref):
    return pnp.sin(stash(ref, x * 2))


TAKEN = {
    "grad": lambda x, ref: plait.grad(stashing)(x, ref),
    "jit of grad": lambda x, ref: plait.jit(plait.grad(stashing))(x, ref),
    "closed over": lambda x, ref: plait.grad(lambda x: stashing(x, ref))(x),
    "vjp": lambda x, ref: plait.vjp(lambda x: stashing(x, ref), x)[1](1.0)[0],
    "of a body": lambda x, ref: plait.grad(lambda x: sum(stashing(x, ref) for _ in range(1)))(x),
}


@pytest.mark.parametrize("how", TAKEN)
def test_a_backward_rule_writes_a_reference(how):
    for i in range(12):  # calls outside of jit are compiled after some
        x, ref = float(i), plait.new_ref(0.0)
        np.testing.assert_allclose(TAKEN[how](x, ref), 2 * np.cos(2 * x), rtol=1e-5)
        np.testing.assert_allclose(ref[...], np.cos(2 * x), rtol=1e-5)


def test_each_example_writes_its_part_of_a_mapped_reference():
    xs, ref = pnp.arange(3.0), plait.new_ref(pnp.zeros(3))
    plait.vmap(plait.grad(stashing))(xs, ref)
    np.testing.assert_allclose(ref[...], np.cos(2 * np.arange(3.0)), rtol=1e-5)


def test_rules_read_references_too():
    @plait.custom_vjp
    def scaled(ref, x):
        return x * ref[...]

    scaled.defvjp(
        lambda ref, x: (x * ref[...], {"ref": ref, "n": 2}),
        lambda kept, ct: (None, ct * kept["ref"][...] * kept["n"]),
    )
    ref = plait.new_ref(3.0)
    assert plait.grad(lambda x: scaled(ref, x))(1.0) == 6.0


LATER = {
    "grad of jit": lambda f: plait.grad(plait.jit(f))(1.0),
    "scan": lambda f: plait.grad(
        lambda x: plait.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    )(1.0),
    "checkpoint": lambda f: plait.grad(plait.checkpoint(f))(1.0),
}


@pytest.mark.parametrize("how", LATER)
def test_a_rule_that_is_recorded_before_it_runs_cannot_write(how):
    ref = plait.new_ref(0.0)
    with pytest.raises(ArgumentError, match=r"(?s)stash takes a reference.*recorded.*jit\(grad"):
        LATER[how](lambda x: stashing(x, ref))
    assert ref[...] == 0


def test_residuals_are_references_of_the_call_only():
    other = plait.new_ref(0.0)

    @plait.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, other), lambda ref, ct: (ct,))
    words = "fwd of .*f keeps a reference, .* that is not one of its arguments"
    with pytest.raises(ArgumentError, match=words) as found:
        plait.grad(f)(1.0)
    assert re.search(r"at .*test_gradient_references.py", str(found.value))
