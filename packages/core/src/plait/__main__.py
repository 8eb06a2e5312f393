"""`python -m plait`: what is installed, whether it fits, and how a plugin is begun.

Invariant: nothing happens when this is imported, and nothing is decided here.
"""

import sys

from . import __all__ as core_names
from ._api.commands import main

if __name__ == "__main__":
    sys.exit(main(core_names=core_names))
