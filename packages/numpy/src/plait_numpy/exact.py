"""Products inside of functions that are not products themselves.

Accelerators round the operands of products to fewer bits unless asked not to.  A user who writes a
product knows of it, and sets its precision; a user of a solver, a fit or a covariance does not, and
there errors grow.  So functions of this package multiply by those of this module.

Invariant: every product here has the platform's highest precision, whatever the settings say.
"""

from functools import partial

from plait.ext.ops import contraction

dot = partial(contraction.dot, precision="highest")
matmul = partial(contraction.matmul, precision="highest")
vdot = partial(contraction.vdot, precision="highest")
