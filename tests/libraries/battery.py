"""Programs of libraries: what they compute with JAX, and with Plait.

    python tests/libraries/battery.py            # compare expected.json with jax
    python tests/libraries/battery.py --write    # write it
    python tests/libraries/battery.py --write optax chex    # of some libraries

A file in `programs` is named after a library, and its public functions are programs: they take
nothing and return a tree of numbers.  The first is what the library's README shows.  This script
runs them with jax itself, in an environment that has it beside the libraries of requirements.txt.

Invariant: expected.json holds what jax computed, and nothing that Plait did.
"""

import importlib.util
import inspect
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.json"
LIBRARIES = (
    "optax",
    "equinox",
    "einops",
    "jaxtyping",
    "chex",
    "jaxopt",
    "lineax",
    "diffrax",
    "optimistix",
    "blackjax",
    "numpyro",
    "flax",
    "nnx",
    "codebase",
    "distrax",
    "penzai",
    "orbax",
    "signax",
    "gymnax",
    "brax",
    "coordax",
    "distreqx",
    "dynamax",
    "dynamiqs",
    "e3nn",
    "evosax",
    "flashbax",
    "flowjax",
    "haiku",
    "interpax",
    "jaxkd",
    "jaxlie",
    "jaxmd",
    "jraph",
    "keras",
    "mctx",
    "mjx",
    "pennylane",
    "pgx",
    "pix",
    "pymc",
    "quimb",
    "rlax",
    "s2fft",
    "sympy2jax",
    "tfp",
    "tinygp",
)


def programs(library: str) -> dict[str, Callable[[], Any]]:
    """The programs of a library, by name; imports it."""
    path = HERE / "programs" / f"{library}_programs.py"
    spec = importlib.util.spec_from_file_location(f"{library}_programs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {
        name: f
        for name, f in vars(module).items()
        if inspect.isfunction(f) and f.__module__ == module.__name__ and name[0] != "_"
    }
    return found


def names(library: str) -> list[str]:
    """The names of a library's programs, without importing it."""
    text = (HERE / "programs" / f"{library}_programs.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("def ") and line[4] != "_"]
    return [line[4:].partition("(")[0] for line in lines]


def numbers(out: Any) -> list[Any]:
    """The numbers of a program's result: lists, and rounded so that they can be read."""
    if isinstance(out, dict):
        return [numbers(out[k]) for k in sorted(out)]
    if isinstance(out, tuple | list):
        return [numbers(x) for x in out]
    if isinstance(out, str):
        return [out]
    x = np.asarray(out)
    if x.dtype.kind == "c":
        x = np.stack([x.real, x.imag])
    return [float(f"{v:.8g}") for v in np.ravel(x).astype("float64")]


def main(argv: list[str]) -> int:
    """Compute everything with jax; write it, or say what is otherwise in the file."""
    import jax

    assert "plait" not in sys.modules, "this is for jax itself"
    assert jax.__version__ == "0.10.2", jax.__version__
    chosen = [a for a in argv if not a.startswith("-")] or LIBRARIES
    held = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    found = dict(held)
    for library in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[library] = {name: numbers(f()) for name, f in programs(library).items()}
    if "--write" in argv:
        EXPECTED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0
    wrong = [
        f"{library}: {name}"
        for library in chosen
        for name in found[library]
        if str(found[library][name]) != str(held.get(library, {}).get(name))
    ]
    print("\n".join(wrong) or "nothing is otherwise")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
