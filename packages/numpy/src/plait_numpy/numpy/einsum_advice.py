"""Corrections of einsum's notation, computed from the call that failed.

Invariant: a correction fits the operands of the call; without one the general form is returned.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

__all__ = ["corrected"]

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def corrected(text: str, shapes: Sequence[tuple[Any, ...]]) -> str:
    """Return what to write for a notation that does not fit operands of these shapes."""
    terms, arrow, out = text.replace(" ", "").partition("->")
    return (
        _counted(terms.split(","), arrow + out, shapes)
        or _transposed(terms.split(","), arrow + out, shapes)
        or _renamed(terms.split(","), out, arrow, shapes)
        or 'write for instance einsum("ij,jk->ik", x, y)'
    )


def _call(terms: Sequence[str], rest: str) -> str:
    names = "xyzabcdefgh"[: len(terms)] if len(terms) < 11 else "x"
    return f'einsum("{",".join(terms)}{rest}", {", ".join(names)})'


def _counted(terms: list[str], rest: str, shapes: Sequence[tuple[Any, ...]]) -> str | None:
    """Return a correction of the numbers of terms and of letters, if these are wrong."""
    if len(terms) != len(shapes):
        few = len(terms) < len(shapes)
        what = "a term for each operand" if few else "no more terms than operands"
        full = [*terms, *[_fresh(terms, len(s)) for s in shapes[len(terms) :]]][: len(shapes)]
        return f"write {what}: {_call(full, rest)}"
    if any("..." in t for t in terms):
        return None
    ranks = [len(s) for s in shapes]
    if ranks == [len(t) for t in terms]:
        return None
    if "->" in rest and all(n >= len(t) for t, n in zip(terms, ranks)):
        full = ["..." * (n > len(t)) + t for t, n in zip(terms, ranks)]
        return f"write ... for the other axes: {_call(full, rest.replace('->', '->...'))}"
    full = [t[:n] + _fresh(terms, n - len(t)) for t, n in zip(terms, ranks)]
    kept = "".join([c for c in rest if not c.isalpha() or any(c in t for t in full)])
    said = " and ".join([f"{n} letters for shape {s}" for n, s in zip(ranks, shapes)])
    return f"write {said}: {_call(full, kept)}"


def _transposed(terms: list[str], rest: str, shapes: Sequence[tuple[Any, ...]]) -> str | None:
    """Return the notation with the letters of one term in another order, if its sizes fit then."""
    if _fits(terms, shapes):
        return None
    for i in reversed(range(len(terms))):
        if len(terms[i]) > 4:
            continue
        for order in permutations(terms[i]):
            changed = [*terms[:i], "".join(order), *terms[i + 1 :]]
            if _fits(changed, shapes):
                return f"write {_call(changed, rest)}, whose sizes fit, or transpose an operand"
    return "give axes of one letter one size, or another letter to one of them"


def _renamed(
    terms: list[str], out: str, arrow: str, shapes: Sequence[tuple[Any, ...]]
) -> str | None:
    """Return the notation with a result that has letters of the operands only, each once."""
    del shapes
    every = "".join(terms)
    if not arrow or not every.replace(".", "").isalpha():
        return None
    left = iter([c for c in every if every.count(c) == 1 and c not in out])
    good = [c if c in every else next(left, "") for c in dict.fromkeys(out)]
    return f"write {_call(terms, '->' + ''.join(good))}"


def _fits(terms: Sequence[str], shapes: Sequence[tuple[Any, ...]]) -> bool:
    sizes: dict[str, Any] = {}
    if any(len(t) != len(s) for t, s in zip(terms, shapes, strict=True)):
        return True  # an ellipsis stands for axes; the sizes are not compared here
    pairs = [(c, n) for t, s in zip(terms, shapes) for c, n in zip(t, s)]
    return all(n == 1 or sizes.get(c, 1) in (1, n) and not sizes.update({c: n}) for c, n in pairs)


def _fresh(terms: Sequence[str], count: int) -> str:
    """Return letters that no term has."""
    free = [c for c in _LETTERS if not any(c in t for t in terms)]
    return "".join(free[: max(count, 0)])
