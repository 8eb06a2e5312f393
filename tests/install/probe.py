"""What a Python with some of the packages installed can do: prints a report as JSON.

    python probe.py NAME...     the public names of all plugins, installed here or not

Invariant: it uses nothing but `plait` and the standard library, and asks for a plugin only through
`plait`, as a user does.
"""

import json
import sys


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

    pnp = plait.numpy
    report = {"imported": ours(), "compiled": float(plait.jit(lambda x: pnp.cos(x) * 2)(0.0))}
    report["imported by computing"] = ours()
    report["listed"] = sorted({*names} & {*dir(plait)})
    report["names"] = {n: outcome(lambda n=n: getattr(plait, n) is not None) for n in names}
    report["has"] = {n: hasattr(plait, n) for n in names}
    report["work"] = {
        "autodiff": outcome(lambda: float(plait.jit(plait.grad(pnp.sin))(0.0))),
        "batching": outcome(lambda: list(plait.jit(plait.vmap(pnp.cos))(pnp.zeros(3)).shape)),
        "sharding": outcome(lambda: list(placed(plait, pnp).shape)),
        "export": outcome(lambda: exported(plait, pnp)),
        "state": outcome(lambda: counted(plait)),
    }
    report["together"] = outcome(lambda: plait.vmap(plait.grad(pnp.sin))(pnp.zeros(2)).tolist())
    report["imported in the end"] = ours()
    return report


def placed(plait, pnp):
    """An array placed on a mesh of one device."""
    return plait.device_put(
        pnp.zeros(4), plait.NamedSharding(plait.make_mesh((1,), ("a",)), plait.P("a"))
    )


def exported(plait, pnp) -> float:
    """A program saved, loaded and called."""
    saved = plait.export.export(plait.jit(pnp.cos))(pnp.zeros(())).serialize()
    return float(plait.export.deserialize(saved).call(pnp.zeros(())))


def counted(plait) -> float:
    """A reference that a jitted function wrote."""
    ref = plait.new_ref(1.0)
    plait.jit(lambda: ref.write(ref[...] + 2))()
    return float(ref[...])


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
