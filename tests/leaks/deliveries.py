"""Every way in which a value comes into a transformation, or goes out of one.

A delivery is a function of one value without axes, that it hands to a transformation somewhere.

Invariant: no delivery computes with the value itself before the transformation has it.
"""

from collections.abc import Callable

import numpy as np

import plait
from plait import lax
from plait.checks import checkify

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def custom_jvp(fun, rule):
    f = plait.custom_jvp(fun)
    f.defjvp(rule)
    return f


def custom_vjp(fun, fwd, bwd):
    f = plait.custom_vjp(fun)
    f.defvjp(fwd, bwd)
    return f


def custom_vmap(fun, rule):
    f = plait.custom_vmap(fun)
    f.def_vmap(rule)
    return f


def over_devices(f):
    mesh = plait.make_mesh((1,), "i")
    return plait.shard_map(f, mesh=mesh, in_specs=plait.P(), out_specs=plait.P())


def same(y):
    return y


def same_vjp(y):
    return y, ()


def solve_with(x):
    return lambda f, b: x


def pulled(x, f=lambda y: y * y):
    return plait.vjp(f, f32(2))[1](x)


def written(ref, x):
    ref[...] = x
    return ref[...]


def from_list(x):
    return plait.Pile.from_list([pnp.stack([f32(1)]), pnp.stack([x, x])])


PAIR = plait.Pile.from_list([f32([1]), f32([2, 3])])
PILED = plait.pile_axis

RESULTS: dict[str, Callable] = {
    # what a function that is transformed returns
    "jit": lambda x: plait.jit(lambda y: x)(1.0),
    "jit, in a tree": lambda x: plait.jit(lambda y: {"a": [y, (x,)]})(1.0),
    "jit, called inside": lambda x: plait.jit(lambda y: plait.jit(lambda z: x)(y) + y)(1.0),
    "grad": lambda x: plait.grad(lambda y: x)(1.0),
    "grad, aux": lambda x: plait.grad(lambda y: (y * y, x), has_aux=True)(1.0),
    "grad, aux in a tree": lambda x: plait.grad(lambda y: (y * y, {"a": [y, x]}), has_aux=True)(
        1.0
    ),
    "value_and_grad": lambda x: plait.value_and_grad(lambda y: x)(1.0),
    "value_and_grad, aux": lambda x: plait.value_and_grad(lambda y: (y, [x]), has_aux=True)(1.0),
    "jvp": lambda x: plait.jvp(lambda y: x, (1.0,), (1.0,)),
    "jvp, in a tree": lambda x: plait.jvp(lambda y: [y, {"a": x}], (1.0,), (1.0,)),
    "jvp, aux": lambda x: plait.jvp(lambda y: (y, x), (1.0,), (1.0,), has_aux=True),
    "linearize": lambda x: plait.linearize(lambda y: x, 1.0),
    "linearize, aux": lambda x: plait.linearize(lambda y: (y, [x]), 1.0, has_aux=True),
    "vjp": lambda x: plait.vjp(lambda y: (y, x), 1.0),
    "vjp, aux": lambda x: plait.vjp(lambda y: (y, (x,)), 1.0, has_aux=True),
    "linear_transpose": lambda x: plait.linear_transpose(lambda y: (y, x), 1.0),
    "jacfwd": lambda x: plait.jacfwd(lambda y: x)(1.0),
    "jacfwd, aux": lambda x: plait.jacfwd(lambda y: (y, x), has_aux=True)(1.0),
    "jacrev": lambda x: plait.jacrev(lambda y: x)(1.0),
    "jacrev, aux": lambda x: plait.jacrev(lambda y: (y, x), has_aux=True)(1.0),
    "hessian": lambda x: plait.hessian(lambda y: x)(1.0),
    "vmap": lambda x: plait.vmap(lambda y: x)(f32([1, 2])),
    "vmap, not mapped": lambda x: plait.vmap(lambda y: x, out_axes=None)(f32([1, 2])),
    "vmap, in a tree": lambda x: plait.vmap(lambda y: (y, {"a": x}))(f32([1, 2])),
    "vmap over a pile": lambda x: plait.vmap(lambda y: x, PILED)(PAIR),
    "mask": lambda x: plait.mask(lambda y: x, ["n"], "")([f32([1, 2])], {"n": 1}),
    "checkpoint": lambda x: plait.checkpoint(lambda y: x)(1.0),
    "grad of checkpoint": lambda x: plait.grad(plait.checkpoint(lambda y: x))(1.0),
    "eval_shape": lambda x: plait.eval_shape(lambda y: x, 1.0),
    "make_program": lambda x: plait.make_program(lambda y: x)(1.0),
    "shard_map": lambda x: over_devices(lambda y: x)(f32(1)),
    "pmap": lambda x: plait.pmap(lambda y: x)(f32([1])),
    "scan, carry": lambda x: lax.scan(lambda c, _: (x, None), f32(1), None, length=2),
    "scan, rows": lambda x: lax.scan(lambda c, _: (c, x), f32(1), None, length=2),
    "while_loop": lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, x), (0, f32(1))
    ),
    "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, s: x, f32(1)),
    "map": lambda x: lax.map(lambda y: x, f32([1, 2])),
    "cond": lambda x: lax.cond(f32(1) > 0, lambda y: x, lambda y: y, f32(1)),
    "switch": lambda x: lax.switch(1, [same, lambda y: x], f32(1)),
    "checkify": lambda x: checkify(lambda y: x)(1.0),
    "export": lambda x: plait.export.export(plait.jit(lambda y: x))(f32(1)),
    "closure_convert": lambda x: plait.closure_convert(lambda y: x, f32(1)),
    "custom_root, solver": lambda x: lax.custom_root(
        lambda y: y - 2, f32(1), lambda f, y: x, lambda g, y: y / g(1.0)
    ),
    "custom_linear_solve, solver": lambda x: lax.custom_linear_solve(
        lambda y: 2 * y, f32(1), solve_with(x)
    ),
    "custom_linear_solve, matrix": lambda x: lax.custom_linear_solve(
        lambda y: x, f32(1), lambda f, b: f(b)
    ),
    # what functions with rules return, and their rules
    "custom_jvp": lambda x: custom_jvp(lambda y: x, lambda p, t: (p[0], t[0]))(f32(1)),
    "custom_jvp under grad": lambda x: plait.grad(custom_jvp(lambda y: x, lambda p, t: (x, t[0])))(
        1.0
    ),
    "custom_jvp, rule": lambda x: plait.jvp(
        custom_jvp(same, lambda p, t: (x, t[0])), (1.0,), (1.0,)
    ),
    "custom_jvp, tangent": lambda x: plait.jvp(
        custom_jvp(same, lambda p, t: (p[0], x)), (1.0,), (1.0,)
    ),
    "custom_jvp, tangent in grad": lambda x: plait.grad(
        custom_jvp(lambda y: y * 1, lambda p, t: (p[0], t[0] * x))
    )(1.0),
    "custom_jvp, staged rule": lambda x: plait.jvp(
        plait.jit(custom_jvp(same, lambda p, t: (x, t[0]))), (1.0,), (1.0,)
    ),
    "custom_jvp, staged tangent": lambda x: plait.jvp(
        plait.jit(custom_jvp(same, lambda p, t: (p[0], x))), (1.0,), (1.0,)
    ),
    "custom_vjp": lambda x: custom_vjp(lambda y: x, same_vjp, lambda r, ct: (ct,))(f32(1)),
    "custom_vjp, forward": lambda x: plait.grad(
        custom_vjp(same, lambda y: (x, ()), lambda r, ct: (ct,))
    )(1.0),
    "custom_vjp, residual": lambda x: plait.grad(
        custom_vjp(same, lambda y: (y, {"r": x}), lambda r, ct: (ct * r["r"],))
    )(1.0),
    "custom_vjp, residual not used": lambda x: plait.grad(
        custom_vjp(same, lambda y: (y, [x]), lambda r, ct: (ct,))
    )(1.0),
    "custom_vjp, residual returned": lambda x: plait.grad(
        custom_vjp(same, lambda y: (y, x), lambda r, ct: (r,))
    )(1.0),
    "custom_vjp, backward": lambda x: plait.grad(custom_vjp(same, same_vjp, lambda r, ct: (x,)))(
        1.0
    ),
    "custom_vjp, staged forward": lambda x: plait.grad(
        plait.jit(custom_vjp(same, lambda y: (x, ()), lambda r, ct: (ct,)))
    )(1.0),
    "custom_vjp, staged residual": lambda x: plait.grad(
        plait.jit(custom_vjp(same, lambda y: (y, x), lambda r, ct: (r,)))
    )(1.0),
    "custom_vjp, staged backward": lambda x: plait.grad(
        plait.jit(custom_vjp(same, same_vjp, lambda r, ct: (x,)))
    )(1.0),
    "custom_gradient": lambda x: plait.grad(plait.custom_gradient(lambda y: (y * y, lambda ct: x)))(
        1.0
    ),
    "custom_vmap": lambda x: custom_vmap(lambda y: x, lambda n, b, y: (y, b[0]))(f32(1)),
    "custom_vmap, rule": lambda x: plait.vmap(custom_vmap(same, lambda n, b, y: (x, False)))(
        f32([1, 2])
    ),
    "custom_vmap, staged rule": lambda x: plait.vmap(
        plait.jit(custom_vmap(same, lambda n, b, y: (x, False)))
    )(f32([1, 2])),
}

ARGUMENTS: dict[str, Callable] = {
    # what transformed functions, and functions that transform, are given
    "jit": lambda x: plait.jit(same)(x),
    "jit, in a tree": lambda x: plait.jit(lambda t: t["a"])({"a": x}),
    "jit, not read": lambda x: plait.jit(lambda y, z: y)(1.0, x),
    "jit, by name": lambda x: plait.jit(lambda y, z: y)(1.0, z=x),
    "grad": lambda x: plait.grad(same)(x),
    "grad, not differentiated": lambda x: plait.grad(lambda y, z: y * z)(1.0, x),
    "value_and_grad": lambda x: plait.value_and_grad(same)(x),
    "jvp": lambda x: plait.jvp(same, (x,), (1.0,)),
    "jvp, tangent": lambda x: plait.jvp(same, (1.0,), (x,)),
    "jvp, tangent in a tree": lambda x: plait.jvp(
        lambda t: t["a"], ({"a": 1.0, "b": 2.0},), ({"a": 1.0, "b": x},)
    ),
    "jvp, tangent of a product": lambda x: plait.jvp(lambda y: y * y, (1.0,), (x,)),
    "linearize": lambda x: plait.linearize(same, x),
    "linearized function": lambda x: plait.linearize(same, 1.0)[1](x),
    "linearized product": lambda x: plait.linearize(lambda y: y * y, 1.0)[1](x),
    "vjp": lambda x: plait.vjp(same, x),
    "pullback": lambda x: plait.vjp(same, 1.0)[1](x),
    "pullback of a product": pulled,
    "pullback of a constant": lambda x: pulled(x, lambda y: f32(1)),
    "linear_transpose": lambda x: plait.linear_transpose(lambda y: 2 * y, 1.0)(x),
    "transposed identity": lambda x: plait.linear_transpose(same, 1.0)(x),
    "jacfwd": lambda x: plait.jacfwd(same)(x),
    "jacrev": lambda x: plait.jacrev(same)(x),
    "hessian": lambda x: plait.hessian(same)(x),
    "vmap, not mapped": lambda x: plait.vmap(lambda y, z: y, (0, None))(f32([1, 2]), x),
    "vmap, returned": lambda x: plait.vmap(lambda y, z: z, (0, None), None)(f32([1, 2]), x),
    "checkpoint": lambda x: plait.checkpoint(same)(x),
    "shard_map": lambda x: over_devices(same)(x),
    "scan, carry": lambda x: lax.scan(lambda c, _: (c, None), x, None, length=2),
    "scan, no turns": lambda x: lax.scan(lambda c, _: (c, None), x, None, length=0),
    "while_loop": lambda x: lax.while_loop(lambda s: s < 3, lambda s: s + 1, x),
    "while_loop, carried on": lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x)
    ),
    "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, s: s, x),
    "cond": lambda x: lax.cond(f32(1) > 0, same, same, x),
    "cond, predicate": lambda x: lax.cond(x, lambda: f32(1), lambda: f32(2)),
    "switch": lambda x: lax.switch(0, [same, same], x),
    "custom_jvp": lambda x: custom_jvp(same, lambda p, t: (p[0], t[0]))(x),
    "custom_vjp": lambda x: custom_vjp(same, same_vjp, lambda r, ct: (ct,))(x),
    "custom_vmap": lambda x: custom_vmap(same, lambda n, b, y: (y, b[0]))(x),
    "custom_root": lambda x: lax.custom_root(
        lambda y: y - 2, x, lambda f, y: y, lambda g, y: y / g(1.0)
    ),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(lambda y: y, x, lambda f, b: b),
    "checkify": lambda x: checkify(same)(x),
    "check": lambda x: checkify(lambda y: plait.checks.check(x > 0, "no") or y)(1.0),
    "pile": lambda x: plait.vmap(lambda y: y, PILED, PILED)(from_list(x)),
    "mask": lambda x: plait.mask(lambda y, z: z, ["n", ""], "")([f32([1, 2]), x], {"n": 1}),
    "new_ref": lambda x: plait.new_ref(x),
    "reference": lambda x: written(plait.new_ref(f32(1)), x),
    "reference under jit": lambda x: plait.jit(lambda r: written(r, x))(plait.new_ref(f32(1))),
    "pure_callback": lambda x: plait.pure_callback(same, plait.ShapeDtypeStruct((), np.float32), x),
    "device_put": lambda x: plait.device_put(x),
    "stop_gradient": lambda x: lax.stop_gradient(x),
    "stack": lambda x: pnp.stack([f32(1), x]),
    "array": lambda x: pnp.array([1.0, x]),
    "index": lambda x: f32([1, 2])[x.astype(np.int32)],
    "set": lambda x: f32([1, 2]).at[0].set(x),
    "where": lambda x: pnp.where(f32([1, 2]) > 0, x, 1.0),
    "print": lambda x: plait.debug.print("{}", x),
}
