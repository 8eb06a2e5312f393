"""Types of references: opaque scalars, one for each type of contents.

Invariant: two references have the same type if and only if their contents have.  The type of the
contents is looked up by the type of the reference.
"""

from plait.ext.errors import OperandTypeError
from plait.ext.types import Aval, Opaque, short_name

__all__ = ["content_type", "is_ref", "ref_type"]

_contents: dict[Opaque, Aval] = {}
_types: dict[Aval, Aval] = {}
_ADVICE = "read the reference: ref[...] is an array"


def ref_type(content: Aval) -> Aval:
    """Return the type of references to arrays of this type."""
    found = _types.get(content)
    if found is None:
        dtype = Opaque(f"ref<{_name(content)}>", (), "uint32", "reference", _ADVICE)
        _contents[dtype] = content
        found = _types.setdefault(content, Aval((), dtype))
    return found


def _name(content: Aval) -> str:
    """Return a unique name for a type that is an identifier: `f32_2x3`."""
    said = f"{short_name(content.dtype)}{'w' * content.weak_type}"
    said = "_".join([said, *(["x".join(map(str, content.shape))] if content.ndim else [])])
    if not said.isidentifier() or content.vma or content.division is not None:
        said = f"type_{len(_contents)}"  # for keys, named sizes, meshes
    return said


def is_ref(aval: Aval) -> bool:
    """Return whether this is the type of a reference."""
    return aval.dtype in _contents


def content_type(aval: Aval) -> Aval:
    """Return the type of the contents of references of this type; raise OperandTypeError for other
    types."""
    found = _contents.get(aval.dtype)
    if found is None:
        raise OperandTypeError(f"{aval!r} is not a reference", fix="make one with plait.new_ref")
    return found
