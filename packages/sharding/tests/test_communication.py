"""What compiled programs say of their collectives.

Invariant: groups, bytes and lines are counted by hand.
"""

import inspect

import numpy as np

import plait
from plait import lax
from plait_sharding import Mesh, NamedSharding, P, device_put, shard_map, with_sharding_constraint

A = np.ones((8, 8), np.float32)
ROWS = ((0, 1, 2, 3), (4, 5, 6, 7))
COLUMNS = ((0, 4), (1, 5), (2, 6), (3, 7))


def line_of(f, text):
    """The line of this file where a function says something."""
    lines, first = inspect.getsourcelines(f)
    (k,) = [i for i, line in enumerate(lines) if text in line]
    return f"{__file__}:{first + k}"


def listed(f, *args):
    return plait.jit(f).lower(*args).compile().collectives()


def test_those_that_the_compiler_puts_in(lies):
    def f(x):
        product = x @ x.T
        return with_sharding_constraint(product, lies())

    (one,) = listed(f, device_put(A, lies(None, "y")))
    assert one.op == "all-reduce" and set(map(frozenset, one.groups)) == set(map(frozenset, ROWS))
    assert one.operands == one.results == ("f32[8,8]",) and one.bytes == 8 * 8 * 4
    assert one.where == line_of(f, "x @ x.T")
    assert str(one) == f"all-reduce(f32[8,8]): 256 bytes at {one.where}"


def test_those_that_are_written(mesh, lies):
    def f(x):
        total = lax.psum(x, "x")
        every = lax.all_gather(x, "y")
        sent = lax.ppermute(x, "y", [(0, 1), (1, 0)])
        part = lax.psum_scatter(x, "x", tiled=True)
        turned = lax.all_to_all(x, "x", 0, 1, tiled=True)
        return total, every, sent, part, turned

    many = shard_map(
        f, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False
    )  # pieces of four rows and two columns
    found = {c.op: c for c in listed(lambda x: many(x.astype("bfloat16")), A)}
    at = {
        "all-reduce": ("psum(", COLUMNS, "[4,2]"),
        "all-gather": ("all_gather(", ROWS, "[1,4,2]"),
        "collective-permute": ("ppermute(", ((0, 1), (1, 0), (4, 5), (5, 4)), "[4,2]"),
        "reduce-scatter": ("psum_scatter(", COLUMNS, "[4,2]"),
        "all-to-all": ("all_to_all(", COLUMNS, None),
    }
    assert set(found) <= set(at) and {"all-reduce", "all-gather", "collective-permute"} <= set(
        found
    )
    for op, c in found.items():
        text, groups, shape = at[op]
        assert c.where == line_of(f, text), op
        assert set(c.groups) == set(groups) and c.name.endswith("f"), op
        kinds = {s.partition("[")[0] for s in c.operands}
        assert len(kinds) == 1 and kinds <= {"bf16", "f32"}  # the CPU adds in f32
        assert c.bytes == 8 * (2 if kinds == {"bf16"} else 4), op
        assert shape is None or c.operands == (kinds.pop() + shape,)


def test_devices_have_their_own_numbers():
    back = Mesh(np.arange(8)[::-1], ("x",))
    f = shard_map(lambda x: lax.psum(x, "x"), mesh=back, in_specs=P("x"), out_specs=P())
    (one,) = listed(f, device_put(A, NamedSharding(back, P("x"))))
    assert [sorted(g) for g in one.groups] == [list(range(8))]
    g = shard_map(
        lambda x: lax.ppermute(x, "x", [(0, 1)]), mesh=back, in_specs=P("x"), out_specs=P("x")
    )
    (one,) = listed(g, A)
    assert one.groups == ((7, 6),)


def test_in_loops_and_with_arrays_that_are_closed_over(lies, close):
    w = device_put(A, lies("x"))

    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: with_sharding_constraint(w.T @ c, lies()), x)

    compiled = plait.jit(f).lower(A).compile()
    (one,) = {c.where: c for c in compiled.collectives()}.values()
    assert one.where == line_of(f, "w.T @ c")
    close(compiled(A), A * 512)  # what is run is another executable


def test_programs_of_one_device():
    assert listed(lambda x: x @ x, A) == []
    assert listed(lambda x: plait.debug.print("{}", x), A) == []
