"""No test finds on disk what another process compiled, so that compilations can be counted.

Invariant: it is set before any module imports plait, and for the processes that tests start.
"""

import os

os.environ["PLAIT_CACHE_DIR"] = ""
