"""Write the golden files of a release: `python write.py VERSION`, once, with all plugins installed.

Each is an artifact and, as npz, arguments with the results that numpy has for them.  They are never
written again: the folder must not be there.  `CHECKSUMS` gets a line for each file.

Invariant: results are numpy's, and no result of the function that is saved.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import plait
from plait import lax
from plait import numpy as pnp

HERE = Path(__file__).parent / "releases"
F32 = np.float32
RNG = np.random.default_rng(2026)
X = RNG.normal(size=(4, 3)).astype(F32)
W = RNG.normal(size=(3, 5)).astype(F32)
B = RNG.normal(size=(300,)).astype(F32)


class Case(NamedTuple):
    """An artifact, and flat arguments with flat results; with those of its derivative, if any."""

    exported: Any
    args: tuple
    results: tuple
    order: int = 0
    ct: tuple = ()
    over: tuple = ()


def static() -> Case:
    """Trees, keywords, several dtypes, None."""

    def f(p, x, *, scale):
        y = x @ p["w"]
        return {
            "y": y * scale,
            "n": (x.astype("bfloat16"), None, y > 0),
            "i": (x * 8).astype("int32"),
        }

    x = np.round(X * 4) / 4
    w = np.round(W)
    y = x @ w
    results = ((x * 8).astype(np.int32), x, y > 0, y * 2)
    return Case(plait.export.export(f)({"w": w}, x, scale=F32(2)), (w, x, F32(2)), results)


def symbolic() -> Case:
    """Sizes with constraints, a loop, a sort, a branch."""

    def f(x):
        total, steps = lax.scan(lambda c, r: (c + r, c * x.shape[0]), x[0] * 0, x)
        return total, steps, pnp.sort(x, 0), pnp.where(x > 0, x, -x).reshape(-1)

    types = plait.export.symbolic_args_specs(X, "2*b, c", ["b <= 64", "c >= 2"])
    before = np.cumsum(X, 0) - X
    results = (X.sum(0), before * 4, np.sort(X, 0), np.abs(X).reshape(-1))
    return Case(plait.export.export(f)(types), (X,), results)


def platforms() -> Case:
    """Several platforms: the number of one is an argument of the module."""

    def f(x):
        return lax.platform_dependent(x, cpu=lambda v: v * 2, cuda=lambda v: v * 3)

    types = plait.export.symbolic_args_specs(X, "b, 3")
    return Case(plait.export.export(f, platforms=["cuda", "cpu"])(types), (X,), (X * 2,))


def derivatives() -> Case:
    """A pullback with a constant that both have."""
    types = plait.export.symbolic_args_specs(B, "b")
    exported = plait.export.export(lambda x: pnp.tanh(x) * B.sum() + (B * 2)[0])(types)
    ct, total = np.cos(np.arange(5, dtype=F32)), B.sum()
    x = X.reshape(-1)[:5]
    results = (np.tanh(x) * total + 2 * B[0],)
    return Case(exported, (x,), results, 1, (ct,), ((1 - np.tanh(x) ** 2) * total * ct,))


def algebra() -> Case:
    """Libraries of linear algebra, and an operation that keeps its name."""
    a = X @ X.T + 4 * np.eye(4, dtype=F32)
    f = lambda a: (pnp.linalg.cholesky(a), pnp.linalg.solve(a, a[0]), lax.erf(a * 0))  # noqa: E731
    results = (np.linalg.cholesky(a), np.linalg.solve(a, a[0]), a * 0)
    return Case(plait.export.export(f)(a), (a,), results)


def weights() -> Case:
    """Arrays beside the module, which its derivative shares."""
    types = plait.export.symbolic_args_specs(X, "b, 3")
    exported = plait.export.export(lambda x: pnp.tanh(x @ W), weights=1)(types)
    ct = np.ones((4, 5), F32)
    y = np.tanh(X @ W)
    return Case(exported, (X,), (y,), 1, (ct,), ((ct * (1 - y * y)) @ W.T,))


def meshes() -> Case:
    """Eight devices: a program for each, and what the compiler divides."""
    mesh = plait.make_mesh((4, 2), ("x", "y"))
    P = plait.P

    def local(x, w):
        return lax.psum(x @ w, "y")

    by_hand = plait.shard_map(local, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
    lies = plait.NamedSharding(mesh, P("x", "y"))
    f = plait.jit(lambda x, w: (by_hand(x, w), pnp.tanh(x)), in_shardings=(lies, None))
    x, w = RNG.normal(size=(8, 4)).astype(F32), RNG.normal(size=(4, 3)).astype(F32)
    ct = np.ones((8, 3), F32)
    over = (ct @ w.T + (1 - np.tanh(x) ** 2), x.T @ ct)
    results = (x @ w, np.tanh(x))
    return Case(plait.export.export(f)(x, w), (x, w), results, 1, (ct, np.ones_like(x)), over)


CASES = (static, symbolic, platforms, derivatives, algebra, weights, meshes)


def main(version: str) -> None:
    """Write the folder of a version."""
    plait.config.cpu_devices = 8
    folder = HERE / version
    folder.mkdir(parents=True)
    lines = []
    for made in CASES:
        case = made()
        case.exported.save(folder / f"{made.__name__}.plait", case.order)
        sides = {"args": case.args, "results": case.results, "ct": case.ct, "over": case.over}
        arrays = {f"{side}{i}": v for side, vs in sides.items() for i, v in enumerate(vs)}
        np.savez(folder / f"{made.__name__}.npz", **arrays)
    for path in sorted(folder.iterdir()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{digest}  {version}/{path.name}\n")
    with open(HERE / "CHECKSUMS", "a", encoding="ascii") as file:
        file.writelines(lines)


if __name__ == "__main__":
    main(sys.argv[1])
