"""Programs as text, for what shows them in another form.

Invariant: nothing is defined here.
"""

from ..text.names import effects_said
from ..text.writing import Writer

__all__ = ["Writer", "effects_said"]
