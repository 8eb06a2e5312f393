"""Sources that run on Windows and macOS, too: parts of one system stand under a branch.

Invariant: a use of a name, a file or an option that some system lacks lies in a `try` that catches
its absence, or in a function that looks which system it runs on.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("examples/*/src/**/*.py")])
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "os": {
        "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getuid",
        "killpg", "memfd_create", "mkfifo", "openpty", "posix_spawn", "pread", "pwrite",
        "register_at_fork", "sched_getaffinity", "sched_setaffinity", "setsid", "statvfs",
        "sysconf", "uname", "wait4", "waitid",
    },
    "signal": {
        "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGSTOP",
        "SIGUSR1", "SIGUSR2", "SIGXCPU", "alarm", "pthread_kill", "setitimer", "sigwait",
    },
    "socket": {"AF_UNIX", "SO_REUSEPORT", "socketpair"},
    "time": {"clock_gettime", "tzset"},
}  # fmt: skip
OPTIONS = {"pass_fds", "preexec_fn", "process_group", "start_new_session"}
FOLDERS = ("/proc/", "/sys/", "/dev/", "/etc/", "/tmp/", "/usr/")
CAUGHT = {"AttributeError", "Exception", "ImportError", "NotImplementedError", "OSError"}
LOOKS = ("sys.platform", "os.name", "hasattr(os", "os.path.exists(", "expect_posix(")
"""The names in functions that look which system they run on."""


def named(node: ast.AST) -> str | None:
    """Return the name in one node of a program that some system lacks, or None."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        if isinstance(node, ast.ImportFrom) and node.module in NAMES:
            names += [a.name for a in node.names if a.name in NAMES[node.module]]
            return next((n for n in names if n != node.module), None)
        return next((n for n in names if n in MODULES), None)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = node.value.id.strip("_")  # packages import os as _os
        if node.attr in NAMES.get(module, ()):
            return f"{module}.{node.attr}"
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("open", "Path") and node.args:
            text = ast.unparse(node.args[0]).lstrip("f").strip("'\"")
            if text.startswith(FOLDERS):
                return text
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get_context":
            if node.args and ast.unparse(node.args[0]).strip("'\"") in ("fork", "forkserver"):
                return ast.unparse(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_signal_handler":
            return node.func.attr
        if isinstance(node.func, ast.Attribute) and node.func.attr == "CDLL":
            nothing = isinstance(node.args[0], ast.Constant) and node.args[0].value is None
            return "ctypes.CDLL(None)" if nothing else None
        return next((k.arg for k in node.keywords if k.arg in OPTIONS), None)
    return None


def without_a_branch(text: str) -> list[str]:
    """The uses in a module that no branch guards, each with its line."""
    found, lines = [], text.splitlines()

    def looks(node: ast.expr | ast.stmt) -> bool:
        written = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        return any(look in written for look in LOOKS)

    def visit(node: ast.AST, guarded: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            guarded = guarded or looks(node)
        if isinstance(node, ast.If | ast.IfExp):
            guarded = guarded or looks(node.test)
        what = named(node)
        if what is not None and not guarded:
            found.append(f"{node.lineno}: {what}")
        if isinstance(node, ast.Try):
            kinds = {w for h in node.handlers for w in names(h.type)}
            for child in node.body:
                visit(child, guarded or bool(kinds & CAUGHT))
            for child in (*node.handlers, *node.orelse, *node.finalbody):
                visit(child, guarded)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, guarded)

    visit(ast.parse(text), False)
    return found


def names(kind: ast.expr | None) -> set[str]:
    """The names of the classes that a handler catches."""
    if kind is None:
        return {"Exception"}
    return {n.id for n in ast.walk(kind) if isinstance(n, ast.Name)}


def test_nothing_of_one_system_stands_without_a_branch():
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in SOURCES
        if (found := without_a_branch(path.read_text(encoding="utf-8")))
    }
    assert not wrong


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("import fcntl", 1),
        ("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None", 0),
        ("try:\n    import fcntl\nexcept ValueError:\n    fcntl = None", 1),
        ("def f():\n    os.killpg(1, 2)", 1),
        ("def f():\n    if os.name == 'posix':\n        os.killpg(1, 2)", 0),
        ("def f():\n    os.kill(1, signal.SIGKILL)", 1),
        ("open('/proc/self/maps')", 1),
        ("def f(pid):\n    return open(f'/proc/{pid}/stat')", 1),
        ("try:\n    open('/proc/self/maps')\nexcept OSError:\n    pass", 0),
        ("Popen(x, pass_fds=[3])", 1),
        ("def f():\n    expect_posix()\n    Popen(x, pass_fds=[3])", 0),
        ("ctypes.CDLL(None)", 1),
        ("n = os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else 1", 0),
        ("import os as _os\n_os.fork()", 1),
        ("from os import fork, getpid", 1),
        ("from os import getpid", 0),
        ("from signal import SIGKILL", 1),
        ("Path('/proc/cpuinfo').read_text()", 1),
        ("multiprocessing.get_context('fork')", 1),
        ("multiprocessing.get_context('spawn')", 0),
        ("loop.add_signal_handler(2, f)", 1),
        ("os.getpid()", 0),
    ],
)
def test_what_the_reader_finds(text, wrong):
    assert len(without_a_branch(text)) == wrong
