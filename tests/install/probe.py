"""What a Python with some of the packages installed can do: prints a report as JSON.

    python probe.py NAME...     the public names of all plugins, installed here or not

Invariant: it uses nothing but `weft` and the standard library, and asks for a plugin only through
`weft`, as a user does.
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
    return sorted(m for m in sys.modules if m.startswith("weft_") and "." not in m)


def main(names: list[str]) -> dict:
    """The report."""
    import weft as wf

    wnp = wf.numpy
    report = {"imported": ours(), "compiled": float(wf.jit(lambda x: wnp.cos(x) * 2)(0.0))}
    report["imported by computing"] = ours()
    report["listed"] = sorted({*names} & {*dir(wf)})
    report["names"] = {n: outcome(lambda n=n: getattr(wf, n) is not None) for n in names}
    report["has"] = {n: hasattr(wf, n) for n in names}
    report["work"] = {
        "autodiff": outcome(lambda: float(wf.jit(wf.grad(wnp.sin))(0.0))),
        "batching": outcome(lambda: list(wf.jit(wf.vmap(wnp.cos))(wnp.zeros(3)).shape)),
        "sharding": outcome(lambda: list(placed(wf, wnp).shape)),
        "export": outcome(lambda: exported(wf, wnp)),
    }
    report["together"] = outcome(lambda: wf.vmap(wf.grad(wnp.sin))(wnp.zeros(2)).tolist())
    report["imported in the end"] = ours()
    return report


def placed(wf, wnp):
    """An array placed on a mesh of one device."""
    return wf.device_put(wnp.zeros(4), wf.NamedSharding(wf.make_mesh((1,), ("a",)), wf.P("a")))


def exported(wf, wnp) -> float:
    """A program saved, loaded and called."""
    saved = wf.export.export(wf.jit(wnp.cos))(wnp.zeros(())).serialize()
    return float(wf.export.deserialize(saved).call(wnp.zeros(())))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
