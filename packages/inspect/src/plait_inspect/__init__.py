"""Views of programs, before they run and while they run.

Users find them in `plait`: `plait.show`, `plait.profiler`, `plait.debug.breakpoint` and
`plait.debug.progress`.  Programs and compiled functions show themselves in notebooks.

    plait.show(loss, plait.grad(loss))(w).save("page.html")
    print(plait.profiler.by_line(step)(w, x))

Invariant: this module imports none of them: each is imported when it is used.
"""

import os as _os

from plait.ext.errors import hide as _hide

__all__: list[str] = []

_hide(_os.path.dirname(__file__))
