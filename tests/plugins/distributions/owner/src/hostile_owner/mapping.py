"""The mapping rule, likewise.

Invariant: it cannot be imported.
"""

import a_module_that_nobody_has  # noqa: F401  # type: ignore[import-not-found]
