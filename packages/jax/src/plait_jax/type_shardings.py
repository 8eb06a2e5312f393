"""`jax.typeof`: types that all have a sharding, over the axes of an abstract mesh, as in JAX.

In Plait `typeof(x).sharding` is None for values that no explicit axis divides, and its mesh has
devices.  Code written for JAX reads `.spec` and `.mesh` of every type.  The mesh of an array is the
one that it lies on.  A program does not depend on the meshes of its arguments, so the type of a
traced value has the mesh in context.

Invariant: a sharding from here stands for the type's own division wherever Plait is given it; where
that is None, it says nothing.  Types derived from one of `jax.typeof` are Plait's.
"""

from typing import Any

import plait
from plait.ext import Aval
from plait.ext.values import Array

__all__ = ["TypeSharding", "typeof"]


class TypeSharding(plait.NamedSharding):
    """The sharding in the type of a value.

    Attributes:
      mesh: an AbstractMesh; without axes if no mesh is in context.
      spec: an entry for each axis of the value.
      division: the sharding that Plait's type has, or None.
    """

    __slots__ = ("division",)
    division: plait.NamedSharding | None

    def __init__(self, mesh: Any, spec: plait.P, division: plait.NamedSharding | None):
        self.mesh, self.spec, self.division = mesh, spec, division
        self.explicit = None if division is None else division.explicit
        self._divided = spec.trimmed
        self._hash = hash((mesh, self._divided))

    def here(self) -> plait.NamedSharding | None:
        """Return the division in the type; None if it has none."""
        return self.division

    def with_spec(self, spec: Any) -> Any:
        """Return a sharding over the same mesh with another plait.P."""
        if self.division is not None:
            return self.division.with_spec(spec)
        wanted = spec if isinstance(spec, plait.P) else plait.P(*spec)
        if wanted.names:
            return plait.NamedSharding(self.mesh, wanted)
        return TypeSharding(self.mesh, wanted, None)

    def __reduce__(self) -> tuple[object, ...]:
        return TypeSharding, (self.mesh, self.spec, self.division)


class Type(Aval):
    """A type of Plait's whose `sharding` is JAX's; it compares equal to that type.

    Attributes:
      plain: Plait's type, which operations and programs use.
      mesh: the abstract mesh that an array of this type lies on; None if it lies on no mesh, and
        for values that are traced, whose type does not depend on where they lie.
    """

    __slots__ = ("plain", "mesh")
    plain: Aval
    mesh: plait.sharding.AbstractMesh | None
    _views: "dict[tuple[Aval, Any], Type]" = {}

    @classmethod
    def of(cls, plain: Aval, mesh: Any = None) -> "Type":
        """Return the view of a type, the same object for the same type and mesh."""
        found = cls._views.get((plain, mesh))
        if found is None:
            found = object.__new__(cls)
            for name in Aval.__slots__:
                setattr(found, name, getattr(plain, name))
            found.plain, found.mesh = plain, mesh
            found = cls._views.setdefault((plain, mesh), found)
        return found

    @property
    def sharding(self) -> TypeSharding:
        """The sharding over the mesh of the division, else that of the array or in context."""
        division: Any = self.division
        if division is None:
            spec = plait.P(*[None] * self.ndim)
            mesh = plait.sharding.get_abstract_mesh() if self.mesh is None else self.mesh
            return TypeSharding(mesh, spec, None)
        return TypeSharding(division.mesh.abstract_mesh, division.spec, division)

    def with_vma(self, axes: frozenset[str]) -> Aval:
        return self.plain.with_vma(axes)

    def with_sharding(self, sharding: Any) -> Aval:
        return self.plain.with_sharding(sharding)

    def strong(self) -> Aval:
        return self.plain.strong()

    @property
    def tangent_type(self) -> Aval:
        return self.plain.tangent_type

    def __str__(self) -> str:
        entries = [()] * self.ndim if self.division is None else self.division.entries(self.ndim)
        over = [f"({','.join(names)})" if len(names) > 1 else "".join(names) for names in entries]
        sizes = [f"{n}@{names}" if names else str(n) for n, names in zip(self.shape, over)]
        return f"{self.dtype.name}[{','.join(sizes)}]"

    def __eq__(self, other: object) -> bool:
        return (other.plain if isinstance(other, Type) else other) is self.plain

    def __hash__(self) -> int:
        return hash(self.plain)

    def __reduce__(self) -> tuple[object, ...]:
        return Type.of, (self.plain, self.mesh)


def typeof(x: object) -> Any:
    """Return the type of an array, a traced value or a Python number."""
    found = plait.typeof(x)
    if found.__class__ is not Aval:
        return found
    return Type.of(found, _mesh_of(x) if isinstance(x, Array) else None)


def _mesh_of(x: Array) -> Any:
    """Return the abstract mesh that an array lies on, if one does; else None."""
    place = x.sharding
    return place.mesh.abstract_mesh if isinstance(place, plait.NamedSharding) else None
