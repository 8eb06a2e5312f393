"""Commands of `python -m plait_export`: one function for each.

Invariant: any problem with a file or with the command line gives one message and the exit code 2;
the exit code is 0 if the command succeeded.
"""

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import ArgumentError, PlaitError
from plait.ext.sizes import Dim

from . import files, sealing, tensorflow
from .facts import bytes_of, check
from .isolation import Limits
from .opened import Opened, arrays_of, file_of, open_artifact
from .serving import server_of

_MOST = 64 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of a command line; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # its encoding may lack characters of a file
            stream.reconfigure(errors="backslashreplace")
    asked = _parser().parse_args(arguments)
    try:
        asked.act(asked)
        sys.stdout.flush()
    except PlaitError as e:
        said = f"{e.what}\n  {e.fix}" if e.fix else e.what
    except BrokenPipeError:
        sys.stdout = None  # The reader is gone, and the flush at exit would fail.
        return 2
    except OSError as e:
        said = f"{e.filename or 'a file'}: {e.strerror or e}\n  see that it is there, and yours"
    except KeyboardInterrupt:
        said = "interrupted"
    else:
        return 0
    print(f"plait_export {asked.word}: {said}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plait_export",
        description="Artifacts of plait.export: looked at, called, and made into others. Files are "
        "read in a process of their own, and nothing in them is run but the function itself.",
    )
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")

    def word(name: str, act: Callable[..., Any], about: str) -> argparse.ArgumentParser:
        made = words.add_parser(name, help=about, description=about)
        made.set_defaults(act=act)
        made.add_argument("file", metavar="FILE", help="what Exported.serialize() returned")
        made.add_argument("--key", metavar="FILE", help="a file with the key that it is sealed by")
        made.add_argument("--allow", metavar="NAME", action="append", default=[],
                          help="a function outside StableHLO that it may call")  # fmt: skip
        made.add_argument("--seconds", type=float, default=Limits().seconds,
                          help="in which it is to be read")  # fmt: skip
        return made

    word("check", _check, "say what is wrong with a file, or that nothing is")
    inspect = word("inspect", _inspect, "say what a file holds")
    inspect.add_argument("--module", action="store_true", help="show its StableHLO, too")
    run = word("run", _run, "call the function: arrays from a file, and into another")
    run.add_argument("inputs", metavar="IN", help="arrays, in numpy's npz format")
    run.add_argument("outputs", metavar="OUT", help="where the results are written, as npz")
    fixed = word("specialize", _specialize, "write it for sizes that are numbers, for one platform")
    fixed.add_argument("outputs", metavar="OUT", help="where the new artifact is written")
    fixed.add_argument("sizes", metavar="NAME=SIZE", nargs="*", help="each symbolic size")
    fixed.add_argument("--platform", help="one of those that it is for")
    made = word("compile", _compile, "write it with machine code for this machine")
    made.add_argument("outputs", metavar="OUT", help="where the new file is written")
    made.add_argument("sizes", metavar="NAME=SIZE", nargs="*", help="each symbolic size")
    saved = word("to-tf", _to_tf, "write it as a SavedModel of TensorFlow's")
    saved.add_argument("folder", metavar="FOLDER", help="where it is written")
    serve = word("serve", _serve, "answer programs on this machine: POST npz or JSON to /")
    serve.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    serve.add_argument("--largest", type=int, default=_MOST, metavar="BYTES",
                       help="bytes that a request may have")  # fmt: skip
    return parser


def _key(asked: argparse.Namespace) -> bytes | None:
    return None if asked.key is None else files.contents(asked.key, "the key")


def _opened(asked: argparse.Namespace) -> Opened:
    limits = Limits(seconds=_positive(asked.seconds))
    return open_artifact(bytes_of(asked.file), asked.allow, _key(asked), limits)


def _positive(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise ArgumentError(f"--seconds {seconds} is no time", fix="give a number above 0")
    return seconds


def _check(asked: argparse.Namespace) -> None:
    limits = Limits(seconds=_positive(asked.seconds))
    facts = check(asked.file, custom_calls=asked.allow, key=_key(asked), limits=limits)
    print(f"{asked.file}: {facts.name}, {facts.size} bytes, whole"
          f"{' and sealed by this key' if facts.sealed else ''}")  # fmt: skip


def _inspect(asked: argparse.Namespace) -> None:
    opened = _opened(asked)
    facts = opened.facts
    known = [*facts.constraints, f"at least {facts.least}"]
    lines = [
        ("function", facts.name),
        *[("argument", f"{n}: {t}") for n, t in zip(opened.arguments, facts.inputs)],
        *[("result", f"{n}: {t}") for n, t in zip(opened.results, facts.outputs)],
        *([("sizes", ", ".join(known))] if opened.flat.symbolic else []),
        ("platforms", ", ".join(facts.platforms)),
        *([("devices", str(facts.nr_devices))] if facts.nr_devices > 1 else []),
        ("calls", ", ".join(facts.custom_calls) or "nothing outside StableHLO"),
        ("derivatives", f"of order {facts.vjp_order}" if facts.vjp_order else "none"),
        ("own rules", _rules(facts.custom_rules)),
        *[("weight", f"{n}: {t}") for n, t in facts.weights.items()],
        *([("classes", ", ".join(facts.classes))] if facts.classes else []),
        ("format", f"{facts.format}, by {facts.producer}"),
        *[("module", f"{name}: StableHLO {v}") for name, v in facts.stablehlo.items()],
        ("seal", "by this key" if facts.sealed else "none"),
        *[("executable", f"for {types}") for types in facts.executables],
        ("size", f"{facts.size} bytes"),
    ]
    for what, said in lines:
        print(f"{what:<12}{said}")
    if asked.module:
        print(opened.flat.mlir_module())


def _rules(rules: tuple[str, ...] | None) -> str:
    return "nobody says" if rules is None else ", ".join(rules) or "none"


def _run(asked: argparse.Namespace) -> None:
    opened = _opened(asked)
    found = opened.call(arrays_of(files.contents(asked.inputs, "the arguments")))
    files.write(asked.outputs, lambda file: file.write(file_of(found)))


def _specialize(asked: argparse.Namespace) -> None:
    sizes = _sizes(asked)
    opened = _opened(asked)
    _expect_sizes(opened, sizes)
    made = opened.flat.specialize(sizes, asked.platform)
    saved = opened.with_trees(*made.said(opened.facts.vjp_order))
    sealing.write_file(asked.outputs, *saved, None)


def _compile(asked: argparse.Namespace) -> None:
    sizes = _sizes(asked)
    opened = _opened(asked)
    _expect_sizes(opened, sizes)
    made = opened.flat.compile(*([sizes] if sizes else []))
    sealing.write_file(asked.outputs, *opened.with_trees(*made.said()), _key(asked))


def _sizes(asked: argparse.Namespace) -> dict[str, int]:
    """Return the sizes on the command line, by name."""
    found: dict[str, int] = {}
    for name, size in map(_size, asked.sizes):
        if found.get(name, size) != size:
            raise ArgumentError(f"{name} is {found[name]} and {size}", fix="say each size once")
        found[name] = size
    return found


def _expect_sizes(opened: Opened, sizes: dict[str, int]) -> None:
    """Raise ArgumentError unless exactly the symbolic sizes are given."""
    dims = [d for a in opened.flat.in_avals for d in a.shape if isinstance(d, Dim)]
    names = sorted({name for d in dims for name in d.variables})
    if sorted(sizes) != names:
        raise ArgumentError(
            f"{opened.facts.name} has the symbolic sizes {', '.join(names) or '(none)'}, and "
            f"numbers are given for {', '.join(sizes) or 'none'}",
            fix=f"write {' '.join([f'{name}=8' for name in names])} behind the names of the files"
            if names else "leave them out",
        )  # fmt: skip


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not (name.isidentifier() and number.isascii() and number.isdigit()):
        raise ArgumentError(f"{text!r} is not a size", fix="write NAME=SIZE, as in batch=8")
    return name, int(number)


def _to_tf(asked: argparse.Namespace) -> None:
    opened = _opened(asked)
    tensorflow.save_artifact(opened.flat, asked.folder, opened.arguments, opened.results)


def _serve(asked: argparse.Namespace) -> None:
    if asked.largest <= 0 or not 0 <= asked.port < 2**16:
        raise ArgumentError(
            f"--port {asked.port} --largest {asked.largest}: one of them is out of range",
            fix="give a port up to 65535, and bytes above 0",
        )
    opened = _opened(asked)
    server = server_of(opened, asked.port, asked.largest)
    host, port = server.server_address[:2]
    print(f"{opened.facts.name} is at http://{host}:{port}/", flush=True)
    with server:
        server.serve_forever()
