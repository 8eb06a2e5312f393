"""The pages' tables that are made from the code: dtype promotion, and the matrix of rules.

    python docs/tables.py            # print the matrix of what is installed here
    python docs/tables.py --write    # bring the promotion table of docs/dtypes.md up to date

As a hook of mkdocs it puts the matrix into its page when the site is built.

Invariant: nothing in these tables is written by hand, and a test compares the one that is kept.
"""

import re
import sys
from pathlib import Path
from typing import Any

from weft import testing
from weft.errors import TypeRule
from weft.types import Aval, dtype_of, promote, short_name, weak_aval

DTYPES_PAGE = Path(__file__).parent / "dtypes.md"
PLACE = re.compile(r"(?<=<!-- promotion -->\n).*(?=<!-- end -->)", re.S)
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 "
    "complex64 complex128"
)
PYTHON = {"int*": int, "float*": float, "complex*": complex}


def types() -> dict[str, Any]:
    """Types of scalars, by the heads of the promotion table."""
    arrays = {short_name(dtype_of(name)): Aval((), dtype_of(name)) for name in DTYPES.split()}
    return arrays | {head: weak_aval(kind) for head, kind in PYTHON.items()}


def met(a: Aval, b: Aval) -> str:
    """What two types promote to."""
    try:
        dtype, weak = promote([a, b])
    except TypeRule:
        return "error"
    return short_name(dtype) + "*" * weak


def promotion() -> str:
    """The promotion table, as Markdown."""
    heads = types()
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for head, a in heads.items():
        lines.append(f"| **{head}** | {' | '.join(met(a, b) for b in heads.values())} |")
    return "\n".join(lines) + "\n"


def up_to_date(page: str) -> str:
    """The page about dtypes, with the table as it is now."""
    return PLACE.sub(lambda _: promotion(), page)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The hook of mkdocs."""
    return markdown.replace("<!-- matrix -->", testing.matrix_text())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        page = DTYPES_PAGE.read_text(encoding="utf-8")
        DTYPES_PAGE.write_text(up_to_date(page), encoding="utf-8")
    else:
        print(testing.matrix_text())
