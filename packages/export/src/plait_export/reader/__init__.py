"""Reading StableHLO back: a portable module as a Program.

    module     the module as plain data: operations, attributes, regions
    table      rules: operation of StableHLO -> operations of Plait
    sizes      arithmetic on sizes, evaluated while the module is read
    walking    applies the rules, operation by operation, and checks result types
    elementwise, shapes, contractions, reductions, sorting, indexing, control, generators,
               kernels, devices
               the rules by family

Invariant: the program that is read computes the same results as the module; otherwise reading
raises an error that names the unsupported operation.
"""

from .module import functions_of
from .reading import Reading
from .table import REFUSED, RULES
from .walking import names_in

__all__ = ["REFUSED", "RULES", "Reading", "functions_of", "names_in"]
