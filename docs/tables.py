"""The pages' tables that are made from the code: dtype promotion, values that are not numpy's, and
the matrix of rules.

    python docs/tables.py            # print the matrix of what is installed here
    python docs/tables.py --values   # print where values are not numpy's
    python docs/tables.py --write    # bring the promotion table of docs/dtypes.md up to date

As a hook of mkdocs it puts the last two into their pages when the site is built.

Invariant: nothing in these tables is written by hand, and a test compares the one that is kept.
"""

import re
import sys
from pathlib import Path
from typing import Any

from plait import testing
from plait.dtypes import promotion_table

DTYPES_PAGE = Path(__file__).parent / "dtypes.md"
PLACE = re.compile(r"(?<=<!-- promotion -->\n).*(?=<!-- end -->)", re.S)
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 "
    "complex64 complex128"
)


def promotion() -> str:
    """The promotion table, as Markdown."""
    return promotion_table(*DTYPES.split(), int, float, complex) + "\n"


def up_to_date(page: str) -> str:
    """The page about dtypes, with the table as it is now."""
    return PLACE.sub(lambda _: promotion(), page)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The hook of mkdocs."""
    markdown = markdown.replace("<!-- differences -->", testing.differences_text())
    return markdown.replace("<!-- matrix -->", testing.matrix_text())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        page = DTYPES_PAGE.read_text(encoding="utf-8")
        DTYPES_PAGE.write_text(up_to_date(page), encoding="utf-8")
    else:
        values = sys.argv[1:] == ["--values"]
        print(testing.differences_text() if values else testing.matrix_text())
