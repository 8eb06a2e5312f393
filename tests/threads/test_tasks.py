"""Transformations of many asyncio tasks do not disturb one another.

Invariant: each task sees its own interpreters only.
"""

import asyncio

import numpy as np

import plait
from plait import ext

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- asynchronous ----------------------------------------------------------------------------


def test_asyncio_inside():
    """A function that runs an event loop while it is transformed."""

    async def square(x):
        await asyncio.sleep(0)
        return x * x

    f = lambda x: asyncio.run(square(x))  # noqa: E731
    assert plait.grad(f)(f32(3)).item() == 6
    assert plait.grad(plait.grad(f))(f32(3)).item() == 2
    assert plait.jit(f)(f32(3)).item() == 9
    np.testing.assert_array_equal(plait.vmap(f)(f32([1, 2])), [1, 4])


def test_transformations_of_many_tasks():
    """Tasks that take turns in the middle of their transformations do not see each other's."""

    async def main():
        barrier = asyncio.Event()

        async def task(k):
            x = f32(k)
            await asyncio.sleep(0)
            before = ext.current()
            out = plait.grad(lambda x: x * x * k)(x).item()
            await barrier.wait()
            assert ext.current() is before
            return out, plait.vmap(lambda x: x * k)(f32([1, 2]))[1].item()

        tasks = [asyncio.create_task(task(k)) for k in range(8)]
        await asyncio.sleep(0.01)
        barrier.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [(2.0 * k * k, 2.0 * k) for k in range(8)]
