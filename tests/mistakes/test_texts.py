"""The whole text of the error for mistakes that users make, beside the program that makes each.

`python tests/mistakes/test_texts.py --write` writes the texts anew; read each one that changes.

Invariant: a program of `texts.txt` is a block that ends with an empty line; the lines that begin
with `#|` are its error.
"""

import linecache
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

FILE = Path(__file__).with_name("texts.txt")
PLACE = "model.py"


def blocks():
    """Return (program, error) for each block of the file."""
    found = []
    for block in FILE.read_text().strip().split("\n\n"):
        lines = block.splitlines()
        program = "\n".join([line for line in lines if not line.startswith("#|")])
        said = "\n".join([line[3:] for line in lines if line.startswith("#|")])
        found.append((program, said))
    return found


def error_of(program):
    """Run a program; return the class and the text of its error."""
    linecache.cache[PLACE] = len(program), None, program.splitlines(True), PLACE
    names = {"plait": plait, "pnp": pnp, "np": np, "lax": lax, "X": np.float32([1, 2, 3])}
    try:
        exec(compile(program, PLACE, "exec"), names)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    finally:
        del linecache.cache[PLACE]
    return "no error"


@pytest.mark.parametrize(("program", "said"), blocks())
def test_the_text(program, said):
    assert error_of(program) == said


def test_no_text_has_words_of_our_own():
    """Trees are written as users write them; arguments have names; no class is left private."""
    for program, said in blocks():
        assert not re.search(r"PyTreeDef|\bargs\[\d|plait\._|<locals>|\b_[a-z]+\(", said), program


def write():
    made = []
    for program, _ in blocks():
        said = "\n".join([f"#| {line}".rstrip() for line in error_of(program).splitlines()])
        made.append(f"{program}\n{said}\n")
    FILE.write_text("\n".join(made))


if __name__ == "__main__" and "--write" in sys.argv:
    write()
