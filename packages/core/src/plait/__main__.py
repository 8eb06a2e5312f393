"""`python -m plait`: list installed plugins, check that they fit, and begin a new one.

Invariant: importing this has no effect; `plait._api.commands` does all the work.
"""

import sys

from . import __all__ as core_names
from ._api.commands import main

if __name__ == "__main__":
    sys.exit(main(core_names=core_names))
