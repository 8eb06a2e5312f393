"""AUTO: arguments and results of jit whose sharding the compiler chooses.

It chooses by propagating known shardings of other values along the operations of the program.  It
does not search for the best of all shardings.

Invariant: no array has this sharding; it stands for the compiler's choice, known after compiling.
"""

from typing import Any

from plait.ext.errors import ArgumentError
from plait.ext.trace import Value
from plait.ext.values import as_value

from .contexts import MissingMesh, mesh_here
from .mesh import Mesh, PartitionSpec
from .named_shardings import Grid, NamedSharding

__all__ = ["AUTO"]


class AutoSharding:
    """A request, in `in_shardings` or `out_shardings` of jit, that the compiler choose a sharding.

    The compiler derives it from the other operands, results and constraints of the program.  `AUTO`
    is over the mesh in context (`with mesh:`), `AUTO(mesh)` over another.  The choice is in
    `jit(f, ...).lower(...).compile().input_shardings` and `.output_shardings`.  Arguments that the
    caller placed explicitly must have the chosen sharding; others are moved to it.

    Raises MissingMesh if `AUTO` is used without a mesh in context; ArgumentError for a mesh that
    is not a `Mesh`.

    >>> import plait
    >>> mesh = plait.make_mesh((1,), ("x",))
    >>> f = plait.jit(lambda x: x * 2, in_shardings=plait.sharding.AUTO(mesh))
    >>> f.lower(plait.ShapeDtypeStruct((4,), "float32")).compile().input_shardings[0][0].mesh
    Mesh('x': 1)
    """

    __slots__ = ("mesh",)
    mesh: Mesh | None
    is_chosen = True
    """A flag that jit reads: the compiler chooses this placement."""

    def __init__(self, mesh: Mesh | None):
        self.mesh = mesh

    def __call__(self, mesh: Mesh) -> "AutoSharding":
        """Return AUTO over this mesh."""
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

    def __reduce__(self) -> tuple[object, ...]:
        return AutoSharding, (self.mesh,)

    def here(self) -> "AutoSharding":
        """Return AUTO over its mesh, else the one in context; MissingMesh if there is none."""
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
        """The devices of the mesh."""
        mesh = self.here().mesh
        assert mesh is not None
        return Grid(mesh)

    def attributes(self, unit: object, ndim: int) -> dict[str, Any]:
        """Return no attributes: such an argument of `main` has no fixed sharding."""
        return {}

    def accept(self, x: Value) -> Any:
        """Return a traced argument unchanged: the compiler divides it anyhow."""
        return x

    def constrain(self, x: Value) -> Any:
        """Return `x`, a result of a traced function, with every axis left to the compiler."""
        value = as_value(x)
        open_ = [PartitionSpec.UNCONSTRAINED] * value.aval.ndim
        return NamedSharding(self.place.mesh, PartitionSpec(*open_)).constrain(value)


AUTO = AutoSharding(None)
