"""Entry point of `python -m plait_export`, which inspects, calls and converts artifacts.

Invariant: importing this module has no effect; `commands` holds all the logic.
"""

import sys

from .commands import main

if __name__ == "__main__":
    sys.exit(main())
