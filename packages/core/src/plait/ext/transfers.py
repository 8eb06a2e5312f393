"""Guards of transfers between the host and devices.

Invariant: nothing is defined here.
"""

from .._core.transfers import crossing, explicit

__all__ = ["crossing", "explicit"]
