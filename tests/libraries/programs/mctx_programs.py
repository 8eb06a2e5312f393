"""Programs of mctx.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import mctx

KEY = jax.random.PRNGKey(0)
LOGITS = jnp.array([[0.1, 0.5, -0.2], [1.0, 0.0, 0.3]])


def _recurrent(params, key, action, embedding):
    reward = jnp.sin(action + embedding)
    out = mctx.RecurrentFnOutput(
        reward=reward, discount=jnp.full_like(reward, 0.9),
        prior_logits=LOGITS * jnp.cos(embedding)[:, None], value=jnp.cos(embedding),
    )  # fmt: skip
    return out, embedding + 0.3 * action + 0.1


ROOT = mctx.RootFnOutput(prior_logits=LOGITS, value=jnp.zeros(2), embedding=jnp.array([0.2, 0.7]))


def readme():
    out = mctx.gumbel_muzero_policy((), KEY, ROOT, _recurrent, num_simulations=8)
    return out.action, out.action_weights


def muzero():
    f = jax.jit(lambda k: mctx.muzero_policy((), k, ROOT, _recurrent, num_simulations=8))
    out = f(KEY)
    return out.action, out.action_weights, out.search_tree.summary().value


def search_trees():
    tree = mctx.gumbel_muzero_policy((), KEY, ROOT, _recurrent, num_simulations=5).search_tree
    return tree.node_values, tree.children_visits, tree.children_rewards
