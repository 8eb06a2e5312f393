"""The command line of Plait: `python -m plait --help`.

Invariant: a mistake in the arguments ends in one message and status 2, a fault of the installation
in status 1; neither ends in a traceback.
"""

import argparse
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from .._base.errors import PlaitError, PluginError, RegistrationError
from .._base.lazy import later
from .doctor import diagnosis
from .inventory import columns, inventory_text
from .skeleton import write_transform

__all__ = ["main"]

PROGRAM = "python -m plait"


class Parser(argparse.ArgumentParser):
    """A parser that shows its whole help after a wrong usage."""

    def error(self, message: str) -> NoReturn:
        self.print_help(sys.stderr)
        self.exit(2, f"\n{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None, core_names: Sequence[str] = ()) -> int:
    """Run one command; return the exit status.

    Args:
      argv: the arguments; by default those of the process.
      core_names: the public names that core has itself.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(frozenset(core_names))
    if not given:
        parser.print_help(sys.stderr)
        return 2
    asked = parser.parse_args(given)
    try:
        status = asked.run(asked)
        sys.stdout.flush()
        return status
    except PlaitError as e:
        print("\n".join([e.what, f"  at {PROGRAM} {shlex.join(given)}"]), file=sys.stderr)
        if e.fix:
            print("  " + e.fix.replace("\n", "\n  "), file=sys.stderr)
        return 1 if isinstance(e, PluginError | RegistrationError) else 2
    except BrokenPipeError:  # the reader has closed the pipe, like `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser(core_names: frozenset[str]) -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Say what of Plait is installed and whether it fits; begin a plugin.",
        epilog=f"`{PROGRAM} COMMAND --help` says more of a command.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str, more: str = ""):
        made = commands.add_parser(name, help=text, description=f"{_sentence(text)} {more}".strip())
        made.set_defaults(run=run)
        return made

    doctor = command(
        "doctor",
        lambda asked: _doctor(core_names, asked.check),
        "the installed packages, whether they fit together, and how to mend them",
        "Every entry point of every plugin is tried. The exit status is 1 if something is wrong.",
    )
    doctor.add_argument(
        "--check", action="store_true", help="run a small program of each package, too"
    )
    command(
        "plugins",
        _plugins,
        "the installed plugins, and the names, tables, primitives and rules they bring",
    )
    coverage = command(
        "coverage",
        _coverage,
        "which primitive has a rule in which table",
        "A cell says where the table finds its answer: own (a rule for this primitive), trait "
        "(for one of its traits), expand (it is written with other primitives), wiring (none is "
        "needed), not applicable, or missing.",
    )
    coverage.add_argument("table", metavar="TABLE", nargs="?", help="only this one, like lower")
    begin = command(
        "new-transform",
        lambda asked: _new_transform(asked, core_names),
        "write the skeleton of a distribution with a transformation of your own",
        "It works and passes its tests as it is: a carrier that takes f(x + d) - f(x) through "
        "programs. Put your transformation in its place.",
    )
    begin.add_argument("name", metavar="NAME", help="of the package, the table and plait.NAME")
    begin.add_argument("folder", metavar="DIR", type=Path, help="a folder that is new or empty")
    return parser


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _doctor(core_names: frozenset[str], check: bool) -> int:
    found = diagnosis(core_names, check)
    print(found)
    return 1 if found.problems else 0


def _plugins(asked: argparse.Namespace) -> int:
    print(inventory_text())
    return 0


def _coverage(asked: argparse.Namespace) -> int:
    testing = later("testing")  # loaded only here, since it imports everything
    if asked.table is None:
        cells = testing.matrix()
        print(testing.matrix_text())
        made = {t: {p: row[t] for p, row in cells.items()} for t in next(iter(cells.values()))}
    else:
        made = {asked.table: testing.coverage(asked.table)}
        print("\n".join(columns(list(made[asked.table].items()))) + "\n")
    for table, column in made.items():
        counts = Counter(column.values())
        told = ", ".join(f"{n} {cell}" for cell, n in sorted(counts.items()))
        print(f"{table}: {len(column)} primitives: {told}")
        missing = [p for p, cell in column.items() if cell == "missing"]
        if missing:
            print(f"  missing: {' '.join(missing)}")
    return 0


def _new_transform(asked: argparse.Namespace, core_names: frozenset[str]) -> int:
    written = write_transform(asked.name, asked.folder, core_names)
    print("\n".join(f"wrote {path}" for path in written))
    place = shlex.quote(str(asked.folder))
    tested = shlex.quote(f"{asked.folder}[test]")
    print(f"\nnext:  python -m pip install -e {tested} && python -m pytest {place}")
    return 0
