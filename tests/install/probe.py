"""What a Python with some of the packages installed can do: prints a report as JSON.

    python probe.py NAME...     the public names of all plugins, installed here or not

A name is an attribute of `plait`, or of one of its modules: `grad`, `lax.linalg`.

Invariant: it uses nothing but `plait` and the standard library, and asks for a plugin only through
`plait`, as a user does.  Of the array library it uses nothing but in what is named `numpy`.
"""

import io
import json
import runpy
import sys
from contextlib import redirect_stdout
from functools import reduce
from importlib import import_module
from importlib.util import find_spec


def outcome(f):
    """What `f()` returns, or the error it raises, in a form that JSON can hold."""
    try:
        return {"value": f()}
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"error": str(error), "kinds": kinds}


def ours() -> list[str]:
    """The packages of ours that have been imported."""
    return sorted(m for m in sys.modules if m.startswith("plait_") and "." not in m)


def main(names: list[str]) -> dict:
    """The report."""
    import plait

    lax = plait.lax
    compiled = float(plait.jit(lambda x: lax.cos(x) * 2)(0.0))
    report: dict = {"imported": ours(), "compiled": compiled}
    report["imported by computing"] = ours()
    report["work"] = {
        "autodiff": outcome(lambda: float(plait.jit(plait.grad(lax.sin))(0.0))),
        "batching": outcome(lambda: list(plait.jit(plait.vmap(lax.cos))(numbers(plait)).shape)),
        "sharding": outcome(lambda: list(placed(plait).shape)),
        "export": outcome(lambda: exported(plait)),
        "state": outcome(lambda: counted(plait)),
    }
    report["together"] = outcome(lambda: plait.vmap(plait.grad(lax.sin))(numbers(plait)).tolist())
    report["imported by transformations"] = ours()
    report["work"] |= {
        "numpy": outcome(lambda: float(plait.numpy.median(numbers(plait)))),
        "checks": outcome(lambda: checked(plait)),
        "testing": outcome(lambda: recomputed(plait)),
        "inspect": outcome(lambda: plait.profiler.by_line(lax.sin)(0.0).flops),
        "sparse": outcome(lambda: multiplied(plait)),
    }
    report["methods"] = {
        "sum": outcome(lambda: float(plait.jit(lambda x: x.sum())(numbers(plait)))),
        "std": outcome(lambda: float(numbers(plait).std())),
    }
    report |= described(plait, names)
    report["imported in the end"] = ours()
    report["doctor"] = doctor()
    return report


def doctor() -> list:
    """The verdict of `python -m plait doctor`: its exit status, and what it prints last."""
    if find_spec("plait.__main__") is None:  # the first releases have no commands
        return [0, "there is none"]
    told, before = io.StringIO(), sys.argv
    sys.argv = ["plait", "doctor"]
    try:
        with redirect_stdout(told):
            runpy.run_module("plait", run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code or 0
    finally:
        sys.argv = before
    return [status, told.getvalue().partition("\n\n")[2].strip()]


def described(plait, names: list[str]) -> dict:
    """The public names of plugins are listed, exist, and are modules where declared so."""
    owners = {name: f"plait.{name}".rpartition(".")[0] for name in names}
    leaves = {name: name.rpartition(".")[2] for name in names}
    modules = {name: import_module(owner) for name, owner in owners.items()}
    return {
        "listed": [n for n in names if leaves[n] in dir(modules[n])],
        "names": {
            n: outcome(lambda n=n: reduce(getattr, n.split("."), plait) is not None) for n in names
        },
        "has": {n: hasattr(modules[n], leaves[n]) for n in names},
        "modules": {n: outcome(lambda n=n: import_module(f"plait.{n}").__name__) for n in names},
        "from": {n: outcome(lambda n=n: taken(owners[n], leaves[n])) for n in names},
    }


def taken(owner: str, leaf: str) -> bool:
    """Return whether `from owner import leaf` works."""
    exec(f"from {owner} import {leaf}", {})
    return True


def numbers(plait):
    """An array of three zeros."""
    return plait.lax.iota("float32", 3) * 0


def placed(plait):
    """An array placed on a mesh of one device."""
    mesh = plait.make_mesh((1,), ("a",))
    return plait.device_put(plait.lax.iota("float32", 4), plait.NamedSharding(mesh, plait.P("a")))


def exported(plait) -> float:
    """A program saved, loaded and called."""
    saved = plait.export.export(plait.jit(plait.lax.cos))(numbers(plait)[0]).serialize()
    return float(plait.export.deserialize(saved).call(numbers(plait)[0]))


def counted(plait) -> float:
    """A reference that a jitted function wrote."""
    ref = plait.new_ref(1.0)
    plait.jit(lambda: ref.write(ref[...] + 2))()
    return float(ref[...])


def checked(plait) -> bool:
    """Return whether an error of a compiled function is found."""
    error, _ = plait.jit(plait.checks.checkify(lambda x: plait.checks.check(x > 0, "no")))(0.0)
    return "no" in error.get()


def multiplied(plait) -> list[float]:
    """Return a product of a sparse matrix."""
    return plait.jit(lambda x: x @ x.sum(0).todense())(plait.sparse.eye(2, k=1) * 2.0).tolist()


def recomputed(plait) -> float:
    """A program computed by numpy alone."""
    program = plait.make_program(lambda x: x + 1)(1.0)
    (out,) = plait.testing.numpy_evaluate(program, [1.0])
    return float(out)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
