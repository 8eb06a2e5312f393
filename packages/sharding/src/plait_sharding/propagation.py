"""AUTO: arguments and results of jit that lie as the compiler chooses.

It chooses by propagating what is known of other values along the operations of the program, and
never by searching for the best of all divisions.

Invariant: no array lies so: what is asked for here is the compiler's choice once it has compiled.
"""

from typing import Any

from plait.ext.errors import ArgumentError
from plait.ext.values import as_value

from .contexts import MissingMesh, mesh_here
from .mesh import Mesh, PartitionSpec
from .named_shardings import Grid, NamedSharding

__all__ = ["AUTO"]


class AutoSharding:
    """In `in_shardings` or `out_shardings` of jit: to be divided over a mesh as the compiler sees
    fit, which it learns from the other operands, results and constraints of the program.

    `AUTO` is over the mesh in context (`with mesh:`), `AUTO(mesh)` over another.  What was chosen
    is in `jit(f, ...).lower(...).compile().input_shardings` and `.output_shardings`.  Arguments of
    a call that were placed on purpose must lie so; others are brought there.

    Raises MissingMesh, where `AUTO` is used, if no mesh is in context, ArgumentError for what is no
    mesh.

    >>> import plait
    >>> mesh = plait.make_mesh((1,), ("x",))
    >>> f = plait.jit(lambda x: x * 2, in_shardings=plait.sharding.AUTO(mesh))
    >>> f.lower(plait.ShapeDtypeStruct((4,), "float32")).compile().input_shardings[0][0].mesh
    Mesh('x': 1)
    """

    __slots__ = ("mesh",)
    is_chosen = True
    """What jit asks a placement, to let the compiler choose."""

    def __init__(self, mesh: Mesh | None):
        self.mesh = mesh

    def __call__(self, mesh: Mesh) -> "AutoSharding":
        """The same, over this mesh."""
        if not isinstance(mesh, Mesh):
            raise ArgumentError(
                f"AUTO needs a mesh, not {mesh!r}",
                fix="write AUTO(plait.make_mesh(sizes, names)), or AUTO with a mesh in context",
            )
        return AutoSharding(mesh)

    def __hash__(self) -> int:
        return hash((AutoSharding, self.mesh))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AutoSharding) and self.mesh == other.mesh

    def __repr__(self) -> str:
        return "AUTO" if self.mesh is None else f"AUTO({self.mesh!r})"

    def __reduce__(self):
        return AutoSharding, (self.mesh,)

    def here(self) -> "AutoSharding":
        """Over the mesh in context, if no mesh was given."""
        if self.mesh is not None:
            return self
        mesh = mesh_here()
        if mesh is None:
            raise MissingMesh(
                "jit was told AUTO, and there is no mesh whose devices it could divide over",
                fix="write AUTO(mesh), or put the mesh in context: with mesh: ...",
            )
        return AutoSharding(mesh)

    @property
    def place(self) -> Grid:
        """The devices."""
        mesh = self.here().mesh
        assert mesh is not None
        return Grid(mesh)

    def attributes(self, unit: Any, ndim: int) -> dict[str, Any]:
        """Nothing is said of such an argument of `main`."""
        return {}

    def accept(self, x: Any) -> Any:
        """A traced argument, which the compiler divides anyhow."""
        return x

    def constrain(self, x: Any) -> Any:
        """`x`, a result of a function that is traced, left to the compiler on these devices."""
        value = as_value(x)
        open_ = [PartitionSpec.UNCONSTRAINED] * value.aval.ndim
        return NamedSharding(self.place.mesh, PartitionSpec(*open_)).constrain(value)


AUTO = AutoSharding(None)
