"""The public interface for authors of rules for operations with programs.

Invariant: nothing is defined here.
"""

from .discharge import Discharged, discharge_rules, discharged, finished, held, reading

__all__ = ["Discharged", "discharge_rules", "discharged", "finished", "held", "reading"]
