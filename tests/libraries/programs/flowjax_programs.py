"""Programs of flowjax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from flowjax import bijections as bij
from flowjax.distributions import Gamma, Normal, StandardNormal, StudentT, Transformed
from flowjax.flows import coupling_flow, masked_autoregressive_flow
from flowjax.train import fit_to_data

KEY = jr.key(0)
X = jnp.linspace(-1, 1, 6).reshape(3, 2)


def readme():
    flow = masked_autoregressive_flow(
        KEY, base_dist=Normal(jnp.zeros(2)), flow_layers=2, nn_width=8
    )
    return flow.log_prob(X), flow.sample(KEY, (2,))


def training():
    flow = coupling_flow(
        KEY,
        base_dist=Normal(jnp.zeros(2)),
        transformer=bij.RationalQuadraticSpline(knots=4, interval=3),
        flow_layers=2,
        nn_width=8,
    )
    x = jr.normal(KEY, (40, 2)) * 0.5 + 1
    flow, losses = fit_to_data(KEY, flow, x, max_epochs=2, batch_size=20, show_progress=False)
    return losses["train"], losses["val"], flow.log_prob(X)


def bijections():
    found = []
    for b in (
        bij.Affine(jnp.ones(2), jnp.array([2.0, 0.5])),
        bij.Exp((2,)),
        bij.SoftPlus((2,)),
        bij.Tanh((2,)),
        bij.Permute(jnp.array([1, 0])),
    ):
        found.append((b.transform_and_log_det(X[0]), b.inverse(b.transform(X[0]))))
    return found


def distributions():
    d = StudentT(jnp.array([3.0, 4.0]), 0.0, 1.0)
    t = Transformed(StandardNormal((2,)), bij.Affine(jnp.ones(2), jnp.full(2, 2.0)))
    return (
        d.log_prob(X),
        t.log_prob(X),
        t.sample(KEY, (3,)),
        Gamma(2.0, 1.0).log_prob(jnp.array([0.5, 1.5])),
    )


def conditional():
    flow = coupling_flow(KEY, base_dist=StandardNormal((2,)), cond_dim=1, flow_layers=1, nn_width=6)
    f = lambda c: flow.log_prob(X[0], c)
    return f(jnp.ones(1)), jax.grad(f)(jnp.ones(1))


def gradients():
    flow = masked_autoregressive_flow(
        KEY, base_dist=StandardNormal((2,)), flow_layers=1, nn_width=6
    )
    g = eqx.filter_grad(lambda m: m.log_prob(X).mean())(flow)
    return jnp.sqrt(sum(jnp.sum(v**2) for v in jax.tree.leaves(eqx.filter(g, eqx.is_array))))
