"""Exported: a function as data that can be saved, read, inspected and called.

Invariant: an `Exported` computes, saves and shows only the contents of its modules.  It keeps the
program of the original function solely to make derivatives on request.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from operator import index
from typing import Any

from plait.ext.errors import ArgumentError, PlaitError, TreeMismatch, border
from plait.ext.ir import Program
from plait.ext.lower import JAXLIB_VERSION, lock
from plait.ext.lower import STABLE as LAPACK
from plait.ext.rules import core_version
from plait.ext.sizes import Dim, Scope
from plait.ext.trace import GROUND, current
from plait.ext.tree import TreeDef, difference, fitted, flatten, in_words, key_paths
from plait.ext.types import COMPLEX, Aval, ShapeDtypeStruct
from plait.ext.values import Array, Literal, as_argument, as_value, is_tracer

from . import container, division, portable, safetensors, sealing, signature, structure
from .calling import FlatFunction
from .checks import DisabledSafetyCheck
from .constants import Constants
from .division import Division
from .errors import NotExportable, NotReadable, expecting
from .machine_code import CompiledArtifact, compiled
from .parameters import flag_of
from .parts import as_tuples, laid_out
from .reader import functions_of, names_in
from .weights import Weight, described, replacing

STABLE_CALLS = portable.UNTIL_SIZES_ARE_KNOWN | {portable.ASKED} | LAPACK
"""Functions outside StableHLO that every reader supports."""

MAIN = "main.mlirbc"
NO_SCOPE = Scope()
"""The scope for reading types that have no symbolic sizes."""


class Exported(FlatFunction):
    """A function for given argument types, as StableHLO.

    Attributes:
      fun_name: name of the function.
      in_avals, out_avals: types of the flat arguments and results; sizes may be symbolic.
      in_tree, out_tree: structures of (args, kwargs) and of the results.
      platforms: platforms that it was lowered for: "cpu", "cuda", "rocm", "tpu".
      custom_calls: functions outside StableHLO that it calls.
      scope: the scope of its symbolic sizes, with their constraints; None if it has no such sizes.
      mlir_module_serialized: the portable StableHLO artifact, for other tools.
      by_argument: whether the first argument of `main` is the index, in `platforms`, of the
        platform that it runs on.  True if there are several platforms, except in artifacts of
        format 1.
      linear_from: the function is jointly linear in its arguments from this index on; None if
        unknown.  A derivative is linear in the cotangents.
      custom_rules: the function's own rules for derivatives and for mapping, as `custom_jvp of f`.
        The module does not hold them, so reading it back loses them.  None if unknown, as in files
        written by other programs or by older releases.
    """

    __slots__ = (
        "in_tree", "out_tree", "custom_calls", "scope", "linear_from", "custom_rules",
        "rules_may_go", "_derive", "_vjp",
    )  # fmt: skip
    in_tree: TreeDef
    out_tree: TreeDef
    custom_calls: tuple[str, ...]
    scope: Scope | None
    linear_from: int | None
    custom_rules: tuple[str, ...] | None
    rules_may_go: bool

    def __init__(
        self,
        fun_name: str,
        in_avals: Iterable[Aval],
        in_tree: TreeDef,
        out_avals: Iterable[Aval],
        out_tree: TreeDef,
        platforms: Iterable[str],
        scope: Scope | None,
        mlir_module_serialized: bytes,
        custom_calls: Iterable[str],
        by_argument: bool,
        derive: "Callable[[], Exported] | None" = None,
        linear_from: int | None = None,
        custom_rules: Iterable[str] | None = None,
        held: Iterable[Weight] = (),
        division: Division | None = None,
        parameters: Iterable[str] = (),
    ):
        paths = paths_of(in_tree)
        super().__init__(
            fun_name, in_avals, out_avals, platforms, mlir_module_serialized, paths, by_argument,
            held, division, parameters,
        )  # fmt: skip
        self.in_tree, self.out_tree = in_tree, out_tree
        self.scope, self.custom_calls = scope, tuple(custom_calls)
        self.linear_from, self._derive = linear_from, derive
        self.custom_rules = None if custom_rules is None else tuple(custom_rules)
        self.rules_may_go = False
        self._vjp: Exported | None = None

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(repr, avals)) for avals in (self.in_avals, self.out_avals))
        known = f" given {', '.join(self.constraints)}" if self.constraints else ""
        where = ", ".join(self.platforms)
        return f"<Exported {self.fun_name}({ins}) -> ({outs}){known} for {where}>"

    @property
    def constraints(self) -> tuple[str, ...]:
        """Constraints on its symbolic sizes, besides the default lower bound of its scope."""
        return () if self.scope is None else self.scope.constraints

    def mlir_module(self) -> str:
        """Return the StableHLO as text."""
        return portable.text_of(self.mlir_module_serialized)

    # -- calling ---------------------------------------------------------------------------

    @border
    def call(self, *args: object, **kwargs: object) -> Any:
        """Apply the function to arrays, or to traced values as one operation.

        Every dtype and shape must equal the exported one.  Python numbers are converted to the
        expected dtype.  Symbolic sizes take the sizes of the arguments, which must agree for equal
        names and satisfy the constraints.  Arrays on other devices are moved to the default device.

        Raises TreeMismatch, TypeRule, DimMismatch and UndecidedDim, naming the argument, and
        NotExportable if it was exported for other platforms only.
        """
        leaves, tree = flatten((args, kwargs))
        if tree != self.in_tree:
            fits = fitted((args, kwargs), self.in_tree)
            if fits is not None:
                leaves = flatten(fits)[0]
            elif tree == as_tuples(self.in_tree):
                leaves = laid_out(leaves, self.in_tree, self.in_avals)
            else:
                raise self._other_tree(args, kwargs, tree)
        if current() is not GROUND or any(map(is_tracer, leaves)):
            values = [self._fitted(i, as_value(x)) for i, x in enumerate(leaves)]
            outs = self.bind(values)
        else:
            arrays = [x if x.__class__ is Array else self.as_array(i, x)
                      for i, x in enumerate(leaves)]  # fmt: skip
            outs = self.run(arrays)
        return self.out_tree.unflatten(outs)

    def _fitted(self, i: int, v: Any) -> Any:
        """Return `v`; a Python number takes the expected dtype if it can be promoted to that."""
        a, want = v.aval, self.in_avals[i]
        if v.__class__ is Literal and a.weak_type and a.category <= want.category <= COMPLEX:
            return Literal(v.value, Aval((), want.dtype, want.weak_type))
        return v

    def as_array(self, i: int, x: object) -> Array:
        """Convert argument `i` to an array; weakly typed values take the expected dtype."""
        v = as_argument(x)
        a, want = v.aval, self.in_avals[i]
        if a.weak_type and a.dtype != want.dtype and a.category <= want.category <= COMPLEX:
            return as_argument(v.numpy().astype(want.dtype))
        return v

    def _other_tree(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tree: TreeDef
    ) -> PlaitError:
        want: Any = None
        try:
            want = self.in_tree.unflatten([0] * self.in_tree.num_leaves)
            found = difference(want, (args, kwargs))
        except Exception:  # a user's class may refuse zeros as children
            found = f"they have the structure {tree}"
        match want:
            case (tuple() as places, dict() as names):
                told, given = (places, names), (args, kwargs)
                return signature.other_arguments(self.fun_name, told, given, found, self.parameters)
        return TreeMismatch(  # such a file was changed, or a class refused zeros
            f"{self.fun_name} was exported for other arguments: {found}",
            fix=f"call it with (args, kwargs) like {in_words(self.in_tree)}",
        )

    # -- derivatives -----------------------------------------------------------------------

    def has_vjp(self) -> bool:
        """Return whether it has a derivative in reverse mode.

        A function exported in this process has one; a function that was read has one if it was
        saved with it.
        """
        return self._derive is not None

    @border
    def vjp(self) -> "Exported":
        """Return its derivative in reverse mode.

        The result is an Exported.  It takes the flat arguments and then the flat cotangents of the
        results, and returns the tuple of cotangents of the flat arguments.  Cotangents have the
        types of tangents: those of integers are `float0`, both as arguments and as results.
        Sizes, platforms and custom rules are those of this function.  In the process that exports
        the function, this needs plait-autodiff.

        Raises NotExportable if it was read from bytes without a derivative, or if the derivative
        has no portable form; MissingRule if an operation has no derivative.

        >>> import numpy as np, plait
        >>> exported = plait.export.export(lambda x: x * x)(np.float32(1))
        >>> exported.vjp().call(np.float32(3), np.float32(1))  # doctest: +SKIP
        (Array(6., dtype=float32),)
        """
        if self._vjp is None:
            if self._derive is None:
                raise self._underived()
            self._vjp = self._derive()
        return self._vjp

    def _underived(self) -> PlaitError:
        return NotExportable(
            f"{self.fun_name} was saved without its derivative",
            fix="where it is exported, save it with Exported.serialize(vjp_order=1), or a greater "
            "order for further derivatives",
        )

    # -- read back -------------------------------------------------------------------------

    @border
    def program(self, platform: str | None = None, *, lose_custom_rules: bool = False) -> Program:
        """Read the module back as a Program of the flat arguments, with the exported sizes.

        Args:
          platform: one of `platforms`, to read only the branches for that platform.  By default the
            program covers all of them, and selects the branch when it runs.
          lose_custom_rules: whether to read the module even if the function has, or may have, its
            own rules for derivatives (`custom_rules`).  The program is then differentiated through
            its operations.

        Operations that StableHLO lacks, such as a sort or an error function, keep their names.

        Raises NotReadable, with the name of the operation, if Plait has no operation for part of
        the module, or if rules would be lost; NotExportable for a platform that it is not for.

        >>> import numpy as np, plait
        >>> exported = plait.export.export(lambda x: plait.lax.sin(x) * 2)(np.float32(1))
        >>> print(plait.export.deserialize(exported.serialize()).program())
        'lambda'(%0: f32[]) {
          %1: f32[] = core.sin(%0)
          %2: f32[] = core.mul(%1, 2.0:f32[])
          return %2
        }
        """
        if platform is not None:
            (platform,) = self._platforms_of(platform)
        if not flag_of(lose_custom_rules, "lose_custom_rules"):
            self.expect_rules("read back")
        return self.read_for(self.in_avals, platform)

    def expect_rules(self, does: str) -> None:
        """Raise NotReadable if custom rules would be lost without permission."""
        if self.rules_may_go or self.custom_rules == ():
            return
        if self.custom_rules is None:
            raise NotReadable(
                f"{self.fun_name} cannot be {does} from its module: nothing is said of whether it "
                "has derivatives of its own, which a module does not hold",
                fix="if it has none, or they may go: pass lose_custom_rules=True where it is read",
            )
        raise NotReadable(
            f"{self.fun_name} cannot be {does} from its module, which does not hold "
            f"{', '.join(self.custom_rules)}",
            fix="save it with Exported.serialize(vjp_order=1), where it is exported; or, if they "
            "may go, pass lose_custom_rules=True where it is read",
        )

    # -- compiled --------------------------------------------------------------------------

    @border
    def compile(self, *sizes: Mapping[str, int]) -> CompiledArtifact:
        """Compile the function to machine code for this machine, for given sizes.

        Args:
          sizes: for each executable, the size of each symbolic name; omit it if all are numbers.

        Returns a CompiledArtifact, with the methods `call` and `save(path)`.  Another process on
        this machine can load the saved file (`load_compiled`) without compiling.

        The code of a function on several devices runs on any equal number of devices, in any order.

        Raises ArgumentError for missing sizes, the errors of `specialize` for sizes that do not
        fit, and PlacementError if this process has fewer devices.

        >>> import numpy as np, plait
        >>> types = plait.export.symbolic_args_specs(np.ones((2, 3), np.float32), "b, 3")
        >>> plait.export.export(lambda x: x.T)(types).compile({"b": 1}, {"b": 8})
        <CompiledArtifact lambda(f32[1,3]; f32[8,3])>
        """
        return compiled(self, sizes)

    # -- specialised to sizes and a platform -----------------------------------------------

    @border
    def specialize(
        self, sizes: Mapping[str, int] | None = None, platform: str | None = None
    ) -> "Exported":
        """Return the same function for sizes that are numbers, and for one platform.

        Symbolic sizes, their checks, and branches for other platforms are removed, as some other
        readers of StableHLO require.  Derivatives are specialised, too.

        Args:
          sizes: the size for each symbolic name; every name needs one.
          platform: one of `platforms`; by default all of them.

        Raises ArgumentError for unknown or missing names; DimMismatch for sizes that break a
        constraint; NotExportable if it was not exported for the platform; ArtifactError if the
        module refuses the sizes.

        >>> import numpy as np, plait
        >>> types = plait.export.symbolic_args_specs(np.ones((2, 3), np.float32), "b, 3")
        >>> plait.export.export(lambda x: x.T)(types).specialize({"b": 4})
        <Exported lambda(f32[4,3]) -> (f32[3,4]) for cpu>
        """
        return self._specialized(self.sizes_of(sizes), self._platforms_of(platform))

    def _specialized(self, sizes: signature.Sizes, platforms: tuple[str, ...]) -> "Exported":
        ins, outs = ([signature.with_sizes(a, sizes) for a in avals]
                     for avals in (self.in_avals, self.out_avals))  # fmt: skip
        asks = self.by_argument and len(platforms) > 1
        with expecting(f"{self.fun_name} cannot be specialised"):
            artifact = portable.specialised(
                self.code_for(ins, platforms), asks, self.division is not None
            )
            with lock:
                calls = portable.custom_calls(portable.parsed(artifact))
        derive = None
        if self.has_vjp():
            derive = lambda: self.vjp()._specialized(sizes, platforms)  # noqa: E731
        rules: tuple[str, ...] | None = self.custom_rules
        if rules is not None and artifact != self.mlir_module_serialized:
            try:
                rules = (*rules, *self._names_lost(artifact))
            except NotReadable:  # a module that cannot be read back may have lost any name
                rules = None
        made = Exported(
            self.fun_name, ins, self.in_tree, outs, self.out_tree, platforms, None, artifact,
            calls, asks, derive, self.linear_from, rules, self.held,
            self.division, self.parameters,
        )  # fmt: skip
        made.rules_may_go = self.rules_may_go
        return made

    def _names_lost(self, artifact: bytes) -> list[str]:
        """Return the named operations of this module whose names `artifact`, made of it, lacks."""
        kept, left = (names_in(functions_of(a, self.platforms).values())
                      for a in (self.mlir_module_serialized, artifact))  # fmt: skip
        return sorted(kept - left)

    def sizes_of(self, sizes: object) -> signature.Sizes:
        """Return the sizes given for the symbolic names; raise ArgumentError or DimMismatch."""
        given = {} if sizes is None else sizes
        dims = [d for a in self.in_avals for d in a.shape if d.__class__ is Dim]
        wanted = sorted({name for d in dims for name in d.variables})
        if not isinstance(given, Mapping):
            raise ArgumentError(
                f"sizes is {given!r}, and is a dictionary of numbers",
                fix=f"write specialize({dict.fromkeys(wanted, 4)})",
            )
        if sorted(map(str, given)) != wanted:
            raise ArgumentError(
                f"{self.fun_name} has the symbolic sizes {', '.join(wanted) or '(none)'}, and "
                f"numbers are given for {', '.join(map(str, given)) or 'none'}",
                fix=f"write specialize({dict.fromkeys(wanted, 4)})",
            )
        return signature.given_sizes(dims, given, self.fun_name)

    def _platforms_of(self, platform: object) -> tuple[str, ...]:
        if platform is None:
            return self.platforms
        if not isinstance(platform, str) or platform not in self.platforms:
            raise NotExportable(
                f"{self.fun_name} was exported for {', '.join(self.platforms)}, and not for "
                f"{platform!r}",
                fix=f"name one of these, or export it for all: platforms="
                f"{[*self.platforms, platform]}",
            )
        return (platform,)

    # -- weights ---------------------------------------------------------------------------

    @property
    def weights(self) -> dict[str, ShapeDtypeStruct]:
        """The types of the arrays stored beside the module, by name.

        >>> import numpy as np, plait
        >>> params = {"w": np.ones((3, 2), np.float32)}
        >>> f = plait.export.export(lambda x: x @ params["w"], weights=1)(np.ones(3, np.float32))
        >>> f.weights
        {"params['w']": ShapeDtypeStruct(shape=(3, 2), dtype=float32)}
        """
        return {w.name: ShapeDtypeStruct(w.aval.shape, w.aval.dtype) for w in self.held}

    @border
    def with_weights(self, weights: Mapping[str, Any]) -> "Exported":
        """Return the same function, and its derivatives, with new values for some of its weights.

        Args:
          weights: arrays by the names of weights, of the same shapes and dtypes.

        Nothing is staged or compiled again.  Raises ArgumentError for unknown names,
        OperandTypeError and ShapeError for arrays of other types.

        >>> import numpy as np, plait
        >>> w = np.ones((2,), np.float32)
        >>> f = plait.export.export(lambda x: (x * w).sum(), weights=1)(w)
        >>> f.with_weights({"w": np.float32([3, 4])}).call(w).item()
        7.0
        """
        return self._with(replacing(self.held, weights, self.fun_name))

    def _with(self, new: Mapping[str, Weight]) -> "Exported":
        """Return the function with each weight in `new` replacing the one of the same name."""
        derive = None
        if self.has_vjp():
            derive = lambda: self.vjp()._with(new)  # noqa: E731
        made = Exported(
            self.fun_name, self.in_avals, self.in_tree, self.out_avals, self.out_tree,
            self.platforms, self.scope, self.mlir_module_serialized, self.custom_calls,
            self.by_argument, derive, self.linear_from, self.custom_rules,
            [new.get(w.name, w) for w in self.held], self.division, self.parameters,
        )  # fmt: skip
        made.rules_may_go = self.rules_may_go
        made.made = self.made
        if self.division is None:
            # Weights are operands, so executables can be shared.  Those for several devices hold
            # the weights on their devices, and cannot.
            made.compiled = self.compiled
        made._code, made._reading = self._code, self._reading
        return made

    @border
    def with_weights_inside(self) -> "Exported":
        """Return the same function, and its derivatives, with its weights as module constants.

        Readers of StableHLO other than Plait have no separate weights.

        Raises NotExportable for a weight that has no form in a module.
        """
        if not self.held:
            return self
        derive = None
        if self.has_vjp():
            derive = lambda: self.vjp().with_weights_inside()  # noqa: E731
        values = [(w.numpy(), w.aval) for w in self.held]
        artifact = portable.with_constants(
            self.mlir_module_serialized, values, self.by_argument, self.symbolic,
            self.division is not None,
        )  # fmt: skip
        made = Exported(
            self.fun_name, self.in_avals, self.in_tree, self.out_avals, self.out_tree,
            self.platforms, self.scope, artifact, self.custom_calls, self.by_argument, derive,
            self.linear_from, self.custom_rules, (), self.division, self.parameters,
        )  # fmt: skip
        made.rules_may_go = self.rules_may_go
        return made

    # -- several devices -------------------------------------------------------------------

    @property
    def nr_devices(self) -> int:
        """The number of devices that it runs on."""
        return 1 if self.division is None else self.division.devices

    @border
    def in_shardings_jax(self, mesh: object) -> tuple[Any, ...]:
        """Return the NamedSharding of each flat argument on the devices of a mesh, in their order.

        Arguments without a recorded sharding have None.

        Args:
          mesh: a mesh of `nr_devices` devices; its axes may differ from those of the export.

        Raises PlacementError for more or fewer devices.
        """
        division = self.division
        if division is None:
            return (None,) * len(self.in_avals)
        return division.over(mesh, division.ins, self.fun_name)

    @border
    def out_shardings_jax(self, mesh: object) -> tuple[Any, ...]:
        """Return the NamedSharding of each flat result; see `in_shardings_jax`."""
        division = self.division
        if division is None:
            return (None,) * len(self.out_avals)
        return division.over(mesh, division.outs, self.fun_name)

    # -- attributes of jax.export ----------------------------------------------------------

    @property
    def disabled_safety_checks(self) -> tuple[DisabledSafetyCheck, ...]:
        """Permits for the custom calls that not every reader supports."""
        calls = [c for c in self.custom_calls if c not in STABLE_CALLS]
        return tuple(map(DisabledSafetyCheck.custom_call, calls))

    @property
    def uses_global_constants(self) -> bool:
        """True if its module depends on symbolic sizes or on the platform."""
        return self.symbolic or self.by_argument

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """Indices of the arguments that the module takes after the weights: all of them."""
        return tuple(range(len(self.in_avals)))

    @property
    def ordered_effects(self) -> tuple[()]:
        """Always empty: functions with effects cannot be exported."""
        return ()

    @property
    def unordered_effects(self) -> tuple[()]:
        """Always empty: functions with effects cannot be exported."""
        return ()

    # -- saving ----------------------------------------------------------------------------

    @border
    def serialize(self, vjp_order: int = 0, *, key: bytes | None = None) -> bytes:
        """Return the artifact as bytes, which may be written to a file; `deserialize` reads them.

        Args:
          vjp_order: the number of reverse-mode derivatives to save, each of the one before.  The
            function that is read can be differentiated this many times.  Constants are stored once.
          key: a secret of 16 bytes or more that seals the artifact (HMAC-SHA256).  Reading it with
            the same key verifies that a holder of the key wrote it.  The contents are not
            encrypted.

        Equal functions give equal bytes, in the oldest format that can express them.  Raises
        NotExportable for trees of classes that are not registered under a name, ArgumentError for
        an invalid key, and the errors of `vjp`.
        """
        manifest, members = self.said(_order(vjp_order))
        if key is None:
            return container.pack(manifest, members)
        return sealing.seal(container.pack(manifest, members, sealing.BEFORE), key)

    @border
    def save(
        self, path: "str | os.PathLike[str]", vjp_order: int = 0, *, key: bytes | None = None
    ) -> None:
        """Write the bytes of `serialize` to a file, which `load` reads, without copying weights.

        The file appears complete or not at all.

        Raises the errors of `serialize`, and NotWritable, an OSError, if writing fails.
        """
        sealing.write_file(path, *self.said(_order(vjp_order)), key)

    def said(self, order: int) -> tuple[dict[str, Any], dict[str, container.Member]]:
        """Return the manifest and the members of its file."""
        chain: list[Exported] = [self]
        for _ in range(order):
            chain.append(chain[-1].vjp())
        names: set[str] = set()
        sides = {
            "inputs": _side(self.in_avals, self.in_tree, "the arguments", names),
            "outputs": _side(self.out_avals, self.out_tree, "the result", names),
        }
        held = {w.name: w for each in chain for w in each.held}
        requires = ["symbolic-sizes"] if self.symbolic else []
        requires += ["registered-nodes"] if names else []
        requires += ["platform-argument"] if self.by_argument else []
        requires += ["separate-weights"] if held else []
        requires += ["meshes"] if self.division is not None else []
        version = container.FORMAT if self.by_argument else 1
        scope = self.scope
        manifest = {
            "format": version,
            "min_reader": version,
            "producer": f"plait-core {core_version()}, jaxlib {JAXLIB_VERSION}",
            "requires": requires,
            "name": self.fun_name,
            "platforms": list(self.platforms),
            "custom_calls": list(self.custom_calls),
            **({"parameters": list(self.parameters)} if self.parameters else {}),
            **_more_said(self),
            "sizes": None
            if scope is None
            else {"constraints": list(scope.constraints), "least": scope.least},
            **sides,
        }
        members: dict[str, container.Member] = {MAIN: self.mlir_module_serialized}
        if order:
            constants = Constants()
            for k, each in enumerate(chain):
                members[member_of(k)] = constants.hollowed(each.mlir_module_serialized)
            manifest["vjp"] = [
                {"custom_calls": list(e.custom_calls), **_more_said(e)} for e in chain[1:]
            ]
        if any(w.is_here for w in held.values()):
            arrays = {name: w.numpy() for name, w in held.items()}
            members[container.WEIGHTS] = safetensors.chunks(arrays)
        return manifest, members


def _more_said(exported: Exported) -> dict[str, Any]:
    """Return the optional manifest fields for rules, weights and devices."""
    rules, held = exported.custom_rules, exported.held
    said: dict[str, Any] = {} if rules is None else {"custom_rules": list(rules)}
    said |= {"weights": described(held)} if held else {}
    return said if exported.division is None else {
        **said, "devices": division.described(exported.division)
    }  # fmt: skip


def _order(vjp_order: int) -> int:
    try:
        order = index(vjp_order)
    except TypeError:
        order = -1
    if order < 0:
        raise ArgumentError(
            f"vjp_order is {vjp_order!r}, and is a number of derivatives",
            fix="give 0, 1 or more",
        )
    return order


def member_of(order: int) -> str:
    """Return the archive member that holds the derivative of an order; order 0 is the function."""
    return f"vjp{order}.mlirbc" if order else MAIN


def pullback_name(name: str) -> str:
    """Return the name of the derivative of a function."""
    return f"vjp_of_{name}"


def pullback_types(ins: Iterable[Aval], outs: Iterable[Aval]) -> tuple[list[Aval], list[Aval]]:
    """Return the argument and result types of the derivative of a function of these types."""
    ins, outs = list(ins), list(outs)
    return [*ins, *[a.strong().tangent_type for a in outs]], [a.strong().tangent_type for a in ins]


def _side(avals: Iterable[Aval], tree: TreeDef, what: str, names: set[str]) -> dict[str, Any]:
    return {"types": [*map(signature.shown, avals)], "tree": structure.written(tree, what, names)}


def paths_of(in_tree: TreeDef) -> list[str]:
    """Return the path of every leaf of (args, kwargs), such as args[0]['w']."""
    try:
        paths = key_paths(in_tree.unflatten([0] * in_tree.num_leaves))
    except Exception:  # a user's class may refuse zeros as children
        return [f"argument {i}" for i in range(in_tree.num_leaves)]
    return [p.replace("[0]", "args", 1) if p.startswith("[0]") else p[3:] for p in paths]
