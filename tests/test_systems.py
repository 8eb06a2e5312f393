"""Sources that run on Windows and macOS, too: parts of one system stand under a branch.

Invariant: a use of a name, a file or an option that some system lacks lies in a `try` that catches
its absence, or in a function that looks which system it runs on.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("examples/*/src/**/*.py")])
MODULES = {
    "curses", "fcntl", "grp", "msvcrt", "posix", "pty", "pwd", "readline", "resource", "syslog",
    "termios", "tty", "winreg",
}  # fmt: skip
NAMES = {
    "os": {
        "O_CLOEXEC", "O_DIRECT", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "O_TMPFILE",
        "RTLD_GLOBAL", "RTLD_NOW", "WEXITSTATUS", "WIFEXITED", "WIFSIGNALED", "WNOHANG",
        "WTERMSIG", "chown", "chroot", "confstr", "copy_file_range", "eventfd", "fchmod", "fchown",
        "fdatasync", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups", "getloadavg",
        "getpgid", "getpgrp", "getpriority", "getrandom", "getsid", "getuid", "getxattr", "killpg",
        "lchown", "lockf", "memfd_create", "mkfifo", "mknod", "nice", "openpty", "pathconf",
        "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "posix_spawn", "posix_spawnp",
        "pread", "preadv", "pwrite", "pwritev", "readv", "register_at_fork", "sched_getaffinity",
        "sched_setaffinity", "sched_yield", "sendfile", "setgid", "setpgid", "setpriority",
        "setsid", "setuid", "setxattr", "splice", "startfile", "statvfs", "sync", "sysconf",
        "tcgetpgrp", "ttyname", "uname", "wait", "wait3", "wait4", "waitid", "writev",
    },
    "signal": {
        "CTRL_C_EVENT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGIO", "SIGKILL",
        "SIGPIPE", "SIGPROF", "SIGQUIT", "SIGRTMIN", "SIGSTOP", "SIGSYS", "SIGTRAP", "SIGTSTP",
        "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ", "alarm", "getitimer",
        "pause", "pthread_kill", "pthread_sigmask", "setitimer", "siginterrupt", "sigpending",
        "sigtimedwait", "sigwait", "sigwaitinfo",
    },
    "socket": {
        "AF_NETLINK", "AF_PACKET", "AF_UNIX", "MSG_DONTWAIT", "MSG_NOSIGNAL", "SCM_RIGHTS",
        "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_BINDTODEVICE", "SO_PEERCRED", "SO_REUSEPORT",
        "TCP_KEEPIDLE", "TCP_USER_TIMEOUT", "recv_fds", "send_fds", "sethostname", "socketpair",
    },
    "time": {
        "CLOCK_BOOTTIME", "CLOCK_MONOTONIC", "CLOCK_PROCESS_CPUTIME_ID", "CLOCK_REALTIME",
        "clock_getres", "clock_gettime", "clock_gettime_ns", "pthread_getcpuclockid", "tzset",
    },
    "select": {"EPOLLIN", "devpoll", "epoll", "kevent", "kqueue", "poll"},
    "mmap": {
        "MADV_DONTNEED", "MADV_HUGEPAGE", "MAP_ANONYMOUS", "MAP_NORESERVE", "MAP_POPULATE",
        "MAP_PRIVATE", "MAP_SHARED", "PROT_EXEC", "PROT_READ", "PROT_WRITE",
    },
}  # fmt: skip
"""Names that the type stubs of the standard library give to Linux or to one other system alone."""
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
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if node.value.startswith(FOLDERS) else None
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get_context":
            if node.args and ast.unparse(node.args[0]).strip("'\"") in ("fork", "forkserver"):
                return ast.unparse(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_signal_handler":
            return node.func.attr
        if isinstance(node.func, ast.Attribute) and node.func.attr == "CDLL":
            # the process itself, or a library by the name that one system gives it
            return ast.unparse(node) if isinstance(node.args[0], ast.Constant) else None
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
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # words
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
        ("ctypes.CDLL('libc.so.6').mallopt(-1, 0)", 1),
        ("ctypes.CDLL(path)", 0),
        ("WHERE = '/proc/self/maps'", 1),
        ("def f(name):\n    return f'/tmp/{name}'", 1),
        ("os.path.join('/sys/fs', name)", 1),
        ('"""/proc/self/maps is read elsewhere."""', 0),
        ("select.poll()", 1),
        ("mmap.mmap(-1, 8, mmap.MAP_PRIVATE)", 1),
        ("os.waitpid(1, os.WNOHANG)", 1),
        ("signal.signal(signal.SIGPIPE, signal.SIG_DFL)", 1),
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
