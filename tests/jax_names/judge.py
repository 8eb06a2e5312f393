"""Print how many recorded answers of jax hold here, and each that does not.

    python -m tests.jax_names.judge wide.json.xz [jax.numpy.]

Invariant: the answers are jax's; this script needs Plait's packages, and no jax.
"""

import collections
import sys
from typing import Any

from . import calls


def shown(call: dict[str, Any]) -> str:
    """Return a call as one line."""
    args = [*map(short, call["args"]), *(f"{n}={short(v)}" for n, v in call["named"].items())]
    return f"{call['path']}({', '.join(args)})" + " x64" * call["x64"]


def short(x: Any) -> str:
    """Return an argument in few characters."""
    if isinstance(x, list):
        return f"[{', '.join(map(short, x))}]"
    if not isinstance(x, dict):
        return repr(x)
    ((kind, what),) = x.items()
    if kind in ("tuple", "complex"):
        return f"({', '.join(map(short, what))})"
    dtype, shape, values = what
    return f"{kind}:{dtype}{shape if kind != 'dtype' else ''}{str(values)[:60] if values else ''}"


def main(path: str, only: str = "", *options: str) -> None:
    """Judge the calls of a file whose paths begin with `only`."""
    import plait_jax

    plait_jax.install()
    import jax

    count: collections.Counter[str] = collections.Counter()
    chosen = [c for c in calls.load(path) if c["path"].startswith(only)]
    for call in chosen:
        what = calls.difference(calls.answer(call, jax), call["answer"])
        word = what.partition(" ")[0] or "alike"
        count[word] += 1
        if what:
            print(f"{word:9} {shown(call)}\n          {what[:200]}")
    print(len(chosen), dict(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
