"""Policies of checkpoint: what is kept is what they say, counted in programs.

Invariant: counts are those that the policies promise; gradients are compared with closed forms and
with finite differences, in double precision.
"""

from collections import Counter

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.testing import conformance
from plait.text import parse, same_program, show
from plait_autodiff.ext import partial_eval
from plait_autodiff.rematerialisation import policies
from plait_autodiff.rematerialisation.residuals import move_

pnp, keep = plait.numpy, plait.checkpoint_policies
X = np.float64([[0.5, -0.25, 0.75], [0.3, 0.9, -0.65], [-0.1, 0.2, 0.4]])


def counts(f, *args):
    """How often each operation occurs in the program of `f`, at any depth."""

    def count(p, c):
        for e in p.eqns:
            c[e.prim.name.rpartition(".")[2]] += 1
            for q in ext.programs_in(e.params):
                count(q, c)
        return c

    return count(plait.make_program(f)(*args), Counter())


def three(f, *args):
    c = counts(f, *args)
    return c["sin"], c["cos"], c["dot_general"]


def net(x):
    return lax.sin(lax.sin(x @ x))


def np_grad(x):
    y = x @ x
    ct = np.cos(np.sin(y)) * np.cos(y)
    return ct @ x.T + x.T @ ct


def only(name):
    return lambda prim, *avals, **params: prim.name == name


# Of sin(sin(x @ x)) the backward pass has two products and no sine of its own; both cosines are
# there once in any case, and what is not kept is done once more.
EXPECTED = [
    (None, (3, 2, 4)),
    (keep.nothing_saveable, (3, 2, 4)),
    (keep.everything_saveable, (2, 2, 3)),
    (keep.dots_saveable, (3, 2, 3)),
    (keep.checkpoint_dots, (3, 2, 3)),
    (keep.dots_with_no_batch_dims_saveable, (3, 2, 3)),
    (keep.checkpoint_dots_with_no_batch_dims, (3, 2, 3)),
    (keep.offload_dot_with_no_batch_dims("device", "pinned_host"), (3, 2, 3)),
    (only("core.cos"), (2, 2, 3)),
    (only("core.sin"), (2, 2, 4)),
    (keep.save_from_both_policies(keep.dots_saveable, only("core.sin")), (2, 2, 3)),
    (keep.save_only_these_names("no such name"), (3, 2, 4)),
    (keep.save_any_names_but_these("no such name"), (3, 2, 4)),
    (keep.save_anything_except_these_names("no such name"), (2, 2, 3)),
]


@pytest.mark.feature("A25")
@pytest.mark.parametrize("policy, want", EXPECTED)
def test_what_is_computed_again(policy, want):
    """Directly, and through the calls of jit on either side."""
    inner = plait.jit(lambda x: lax.sin(x @ x))
    ways = {
        "plain": plait.checkpoint(net, policy=policy),
        "of jit": plait.checkpoint(plait.jit(net), policy=policy),
        "of jits": plait.checkpoint(
            plait.jit(lambda x: plait.jit(lax.sin)(inner(x))), policy=policy
        ),
        "in jit": plait.jit(plait.checkpoint(net, policy=policy)),
    }
    for f in ways.values():
        assert three(plait.grad(lambda x, f=f: f(x).sum()), X) == want


def test_gradients_are_right():
    x, h = pnp.asarray(X), 1e-6
    slope = (np_grad(X + h * X) - np_grad(X - h * X)) / (2 * h)
    for policy in (None, keep.dots_saveable, keep.everything_saveable, only("core.sin")):
        g = plait.grad(lambda x, p=policy: plait.checkpoint(net, policy=p)(x).sum())
        first, second = plait.jit(lambda x, g=g: plait.jvp(g, (x,), (x,)))(x)
        np.testing.assert_allclose(first, np_grad(X), rtol=1e-12)
        np.testing.assert_allclose(second, slope, rtol=1e-7)
        reverse = plait.jit(plait.grad(lambda x, g=g: (g(x) * X).sum()))(x)
        np.testing.assert_allclose(reverse, slope, rtol=1e-7)


@pytest.mark.feature("A25")
def test_batched_contractions():
    """A product along a shared axis is kept by one policy, and not by the other."""
    f = lambda x, y: lax.sin(pnp.einsum("bij,bjk->bik", x, y))  # noqa: E731
    x = np.ones((2, 3, 3))
    for policy, want in ((keep.dots_saveable, 3), (keep.dots_with_no_batch_dims_saveable, 4)):
        g = plait.checkpoint(lambda x, y: lax.sin(f(x, y)), policy=policy)
        got = counts(plait.grad(lambda x, y, g=g: g(x, y).sum(), (0, 1)), x, x)
        assert got["dot_general"] == want


def test_convolutions_are_products():
    f = lambda x, k: lax.sin(lax.sin(lax.conv(x, k, (1, 1), "SAME")))  # noqa: E731
    x, k = np.ones((1, 1, 4, 4)), np.ones((1, 1, 2, 2))
    for policy, want in ((keep.dots_saveable, 3), (keep.nothing_saveable, 4)):
        g = plait.checkpoint(f, policy=policy)
        got = counts(plait.grad(lambda x, k, g=g: g(x, k).sum(), (0, 1)), x, k)
        assert got["conv_general"] == want


# ---- networks --------------------------------------------------------------------------------


def perceptron(v, w, x):
    h = plait.checkpoint_name(pnp.tanh(x @ v), "hidden")
    return lax.sin(plait.checkpoint_name(h @ w, "out"))


def convolutions(k, l, x):
    h = plait.checkpoint_name(pnp.tanh(lax.conv(x, k, (1, 1), "SAME")), "hidden")
    return lax.sin(plait.checkpoint_name(lax.conv(h, l, (1, 1), "SAME"), "out"))


def attention(q, k, v, x):
    q, k, v = x @ q, x @ k, x @ v
    p = plait.checkpoint_name(plait.nn.softmax(pnp.einsum("bij,bkj->bik", q, k)), "hidden")
    return plait.checkpoint_name(pnp.einsum("bik,bkj->bij", p, v), "out") + x


NETS = {  # (network, shapes of arguments, shapes of its layers)
    "perceptron": (perceptron, [(4, 5), (5, 6), (2, 4)], [(2, 5)], [(2, 6)]),
    "convolutions": (convolutions, [(3, 2, 3, 3), (2, 3, 3, 3), (1, 2, 4, 4)],
                     [(1, 3, 4, 4)], [(1, 2, 4, 4)]),
    "attention": (attention, [(4, 7), (4, 7), (4, 4), (2, 3, 4)],
                  [(2, 3, 4), (2, 3, 7), (2, 3, 7)], [(2, 3, 3)]),
}  # fmt: skip
WITH = keep.save_from_both_policies(
    keep.dots_with_no_batch_dims_saveable, keep.save_only_these_names("out")
)


@pytest.mark.feature("A25")
@pytest.mark.parametrize("net", NETS)
def test_what_networks_keep(net):
    """Besides its arguments, a network keeps what the policy says, once, as far as it is needed:
    of attention the weights' products, and products of what is shared by a batch element."""
    f, shapes, first, second = NETS[net]
    plain, named, out = first, first, second  # products with weights; "hidden"; "out"
    products = [*first, *second]
    if net == "convolutions":
        plain = []  # no policy takes a convolution for a product without batch
    if net == "attention":
        named, out = second, []  # the last product is needed by nobody
    expected = {
        keep.nothing_saveable: [],
        keep.dots_saveable: products,
        keep.dots_with_no_batch_dims_saveable: plain if net != "perceptron" else products,
        keep.save_only_these_names("hidden"): named,
        keep.save_any_names_but_these("hidden"): out,
        keep.save_only_these_names("hidden", "out"): [*named, *out],
        WITH: products if net == "perceptron" else [*plain, *out],
    }
    xs = [plait.ShapeDtypeStruct(s, np.float32) for s in shapes]
    for policy, want in expected.items():
        found = plait.saved_residuals(plait.checkpoint(f, policy=policy), *xs)
        kept = [r.aval.shape for r in found if not r.what.startswith("the argument")]
        assert sorted(kept) == sorted(want), policy
        assert len(found) - len(kept) == len(shapes)


# ---- names -----------------------------------------------------------------------------------


def named(x):
    x = plait.checkpoint_name(lax.sin(x), "a")
    x = plait.checkpoint_name({"b": lax.sin(lax.sin(x))}, "b")["b"]
    return lax.sin(lax.sin(x))


NAMED = [
    (keep.save_only_these_names("a"), ["named 'a'"], 5 + 3),
    (keep.save_only_these_names("b"), ["named 'b'"], 5 + 3),
    (keep.save_only_these_names("a", "b"), ["named 'a'", "named 'b'"], 5 + 2),
    (keep.save_any_names_but_these("a"), ["named 'b'"], 5 + 3),
    (
        keep.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["b"],
            offload_src="device",
            offload_dst="pinned_host",
        ),
        ["named 'a'", "named 'b', in pinned_host"],
        5 + 2,
    ),
]


@pytest.mark.parametrize("policy, want, sines", NAMED)
def test_values_with_names(policy, want, sines):
    f = plait.checkpoint(named, policy=policy)
    assert [r.what for r in plait.saved_residuals(f, 0.5)] == [*want, "the argument x"]
    assert counts(plait.grad(f), 0.5)["sin"] == sines
    x, h = 0.7, 1e-6
    slope = (np.asarray(named(np.float64(x + h))) - np.asarray(named(np.float64(x - h)))) / (2 * h)
    np.testing.assert_allclose(plait.grad(f)(np.float64(x)), slope, rtol=1e-8)


def test_a_name_is_kept_inside_other_operations():
    """In a loop it is stacked, in a branch it passes, in a call it is a further result."""
    only_h = keep.save_only_these_names("h")
    step = lambda c, x: (lax.sin(plait.checkpoint_name(lax.sin(c @ c), "h")) * x, c)  # noqa: E731
    once = lambda c: step(c, 1.0)[0]  # noqa: E731
    ways = {
        "scan": (lambda c: lax.scan(step, c, np.ones(4))[0], (4, 3, 3)),
        "cond": (lambda c: lax.cond(c[0, 0] > 0, once, lambda c: c, c), (3, 3)),
        "jit": (plait.jit(once), (3, 3)),
        "checkpoint": (plait.checkpoint(once, policy=only_h), (3, 3)),
    }
    for f, shape in ways.values():
        kept = plait.saved_residuals(plait.checkpoint(f, policy=only_h), X)
        assert [r.aval.shape for r in kept if r.what.startswith("named 'h'")] == [shape]
        assert all(r.what.startswith(("named 'h'", "the argument")) for r in kept)
        loss = lambda c, f=f: plait.checkpoint(f, policy=only_h)(c).sum()  # noqa: E731
        want = plait.jit(plait.grad(lambda c, f=f: f(c).sum()))(pnp.asarray(X))
        np.testing.assert_allclose(plait.jit(plait.grad(loss))(pnp.asarray(X)), want, rtol=1e-12)


def test_names_change_no_values():
    x = pnp.asarray(X)
    np.testing.assert_array_equal(plait.checkpoint_name(x, "h"), X)
    value, dot = plait.jvp(lambda x: plait.checkpoint_name(x * 2, "h"), (x,), (x,))
    np.testing.assert_array_equal(dot, 2 * X)
    transposed = plait.linear_transpose(lambda x: plait.checkpoint_name(x * 2, "h"), x)
    np.testing.assert_array_equal(transposed(x)[0], 2 * X)


# ---- policies as values ------------------------------------------------------------------------


def test_equal_policies_share_what_is_derived():
    assert keep.save_only_these_names("a") == keep.save_only_these_names("a")
    assert keep.save_only_these_names("a") != keep.save_any_names_but_these("a")
    assert keep.everything_saveable != keep.nothing_saveable
    f = lax.sin
    p = plait.make_program(lambda x: f(f(x)))(1.0)
    one = partial_eval(p, True, policy=keep.save_only_these_names("a"))
    assert partial_eval(p, True, policy=keep.save_only_these_names("a")) is one


def test_policies_have_a_text_form():
    either = keep.save_from_both_policies(keep.dots_saveable, keep.save_only_these_names("a"))
    for policy in (None, keep.dots_saveable, either, NAMED[-1][0]):
        p = plait.make_program(plait.grad(plait.checkpoint(named, policy=policy)))(1.0)
        assert same_program(parse(show(p)), p)
    assert repr(keep.save_only_these_names("a")) == "save_only_these_names('a')"


def test_names_and_moves_conform():
    for prim, params in ((policies.name_, {"name": "h"}), (move_, {"memory": "pinned_host"})):
        samples = [X, X.astype(np.int32), X.astype(np.complex64)]
        conformance(prim, samples, lambda x, **_: x.copy(), params, at_least=20)


def test_jax_names_are_there():
    assert {*policies.__all__} >= {
        "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable",
        "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
        "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names",
        "save_any_names_but_these", "save_anything_except_these_names",
        "save_from_both_policies", "save_only_these_names",
    }  # fmt: skip


def test_offloading_elsewhere():
    """For a platform with two memories, the value is sent there and brought back."""
    g = plait.jit(plait.grad(plait.checkpoint(named, policy=NAMED[-1][0])))
    staged = g.trace(np.float32(1))
    text = staged.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("annotate_device_placement") == 2
    assert 'placement = "pinned_host"' in text and 'placement = "device"' in text
    assert "annotate_device_placement" not in staged.lower().as_text()


def test_mistakes():
    with pytest.raises(plait.PlaitError, match="cannot be both saved and offloaded"):
        keep.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )
    with pytest.raises(plait.PlaitError, match="is for names, not 3"):
        keep.save_only_these_names(3)
    with pytest.raises(plait.PlaitError, match="checkpoint_name is 3"):
        plait.checkpoint_name(1.0, 3)
    with pytest.raises(plait.PlaitError, match="the policy of checkpoint is 'dots'"):
        plait.checkpoint(lax.sin, policy="dots")
