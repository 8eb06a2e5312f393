"""Reading StableHLO back: a portable module as a Program.

    module     the module as plain data: operations, attributes, regions
    table      rules: operation of StableHLO -> operations of Plait
    sizes      what the module computes of sizes is computed while it is read
    walking    operations are done one after the other; types are held against what is said
    elementwise, shapes, contractions, reductions, sorting, indexing, control, generators,
               kernels, devices
               the rules by family

Invariant: a module that is read computes what it computes, or the reading is refused by the name of
the operation that stands in the way.
"""

from .module import functions_of
from .reading import Reading
from .table import REFUSED, RULES
from .walking import names_in

__all__ = ["REFUSED", "RULES", "Reading", "functions_of", "names_in"]
