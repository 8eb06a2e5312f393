"""Operations on windows.

Invariant: nothing is defined here.
"""

from ..._ops.windows import chosen_from, select_and_scatter_add_

__all__ = [
    "chosen_from",
    "select_and_scatter_add_",
]
