"""`python -m plait_jax script.py ...`: run a script, or `-m module`, with Plait as jax.

With `--report` before it, the missing JAX names are printed at the end.

Invariant: the script sees the same sys.argv and `__main__` as if Python had run it directly.
"""

import runpy
import sys
from pathlib import Path

from . import install
from .finder import part

USAGE = "python -m plait_jax [--report] script.py ...   or   -m module ..."


def main(argv: list[str]) -> int:
    """Run the script or module in the arguments; return the exit status."""
    telling = argv[:1] == ["--report"]
    rest = argv[1:] if telling else argv
    if not rest or rest == ["-m"] or (rest[0].startswith("-") and rest[0] != "-m"):
        print(USAGE, file=sys.stderr)
        return 2
    install()
    try:
        if rest[0] == "-m":
            sys.argv = rest[1:]
            sys.path[0] = ""
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = rest
            sys.path[0] = str(Path(rest[0]).resolve().parent)
            runpy.run_path(rest[0], run_name="__main__")
    finally:
        if telling:
            print(part("mentions").report(), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
