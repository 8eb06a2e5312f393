"""`python -m plait_export`: artifacts looked at, called, and made into others.

Invariant: nothing happens when this is imported, and nothing is decided here.
"""

import sys

from .commands import main

if __name__ == "__main__":
    sys.exit(main())
