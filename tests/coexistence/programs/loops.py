"""while_loop, fori_loop, scan without inputs, map, cond and switch."""

import jax
import jax.numpy as jnp
from jax import lax


def newton(x):
    def better(state):
        guess, _ = state
        new = 0.5 * (guess + x / guess)
        return new, jnp.abs(new - guess)

    return lax.while_loop(lambda s: s[1] > 1e-6, better, (x, jnp.inf))[0]


def collatz(n):
    def body(state):
        n, count = state
        return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

    return lax.while_loop(lambda s: s[0] != 1, body, (n, 0))[1]


@jax.jit
def main():
    pick = lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x)  # noqa: E731
    table = lax.fori_loop(0, 5, lambda i, t: t.at[i].set(i**2), jnp.zeros(5, jnp.int32))
    dynamic = jax.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0))
    _, powers = lax.scan(lambda c, _: (c * 1.5, c), 1.0, None, length=4)
    mapped = lax.map(lambda x: x @ x, jnp.arange(6.0).reshape(3, 2))
    batched = lax.map(jnp.cumsum, jnp.ones((4, 2)), batch_size=2)
    return (
        jax.vmap(newton)(jnp.array([2.0, 9.0])),
        jax.vmap(collatz)(jnp.array([6, 7, 27])),
        [pick(i, 0.5) for i in (0, 1, 2, 9)],
        jax.vmap(pick, in_axes=(0, None))(jnp.arange(3), 0.5),
        table,
        dynamic(7),
        powers,
        mapped,
        batched,
        jax.grad(lambda x: lax.fori_loop(0, 4, lambda i, y: jnp.sin(y) * x, x))(1.2),
    )
