"""Modules of plugins, imported as users import them.

Invariant: checkers find each module, and the comments give the types that they reveal.
"""

import plait
import plait.custom_derivatives as cd
import plait.experimental.multihost_utils
import plait.numpy as pnp
import plait.numpy.linalg
import plait.scipy.special
import plait.sharding
from plait import random
from plait.nn import initializers
from plait.sharding import Mesh

mesh: Mesh = plait.make_mesh((1,), ("d",))
spec = plait.sharding.PartitionSpec("d")
sharding = plait.sharding.NamedSharding(mesh, spec)
reveal_type(plait.checkpoint_policies.everything_saveable)  # Saveable
reveal_type(sharding)  # NamedSharding
reveal_type(pnp.linalg.inv(pnp.eye(3)))  # Array
reveal_type(plait.numpy.linalg.norm(pnp.ones(3)))  # Array
reveal_type(plait.scipy.special.erf(pnp.ones(3)))  # Array
reveal_type(initializers.zeros(random.key(0), (3,)))  # Array
plait.Sharding  # wrong
cd.custom_jpv  # wrong
plait.sharding.Mehs  # wrong
