#!/usr/bin/env -S uv run --script
# /// script
# requires-python = ">=3.11"
# dependencies = ["nox[uv]>=2024.4.15"]
# ///
"""Every way to run things: `python -m nox -l` lists them.

Nothing but Python is needed beforehand. Environments are made by uv where it is installed, and by
virtualenv where it is not. All sessions but `lint`, `docs` and `build` run against *built wheels*,
so that what is tested is what a user installs.

Invariant: no session but `release` changes a tracked file, and `tests` runs every check that a
change must pass.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nox

sys.path.insert(0, str(Path(__file__).resolve().parent))  # nox runs this file, and finds no other
import releasing  # noqa: E402

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_missing_interpreters = True

os.environ["PLAIT_CACHE_DIR"] = ""  # what is tested and measured is compiled, not found on disk

ROOT = Path(__file__).resolve().parent
PLUGINS = (
    "numpy", "checks", "testing", "inspect", "autodiff", "batching", "sharding", "export", "state",
    "sparse",
)  # fmt: skip
PACKAGES = ("core", *PLUGINS, "jax")
"""All that is released; `jax` is no transformation, and `plait[all]` does not bring it."""
WRITTEN_WITH = ("core", "numpy", "checks", "testing")
"""What the tests of every package are written with; `subsets` shows what works without."""
RELEASED = (releasing.META, *PACKAGES)
"""The distributions: the packages, and the meta-distribution at the root."""
BUILDER = "hatchling==1.33.0"
"""The builder of releases: another version builds other bytes."""
SAMPLES = sorted(p.parent for p in ROOT.glob("examples/*/pyproject.toml"))

JAXLIB = "jaxlib==0.10.2"  # what results are compared on; `tests-latest` takes the newest
TENSORFLOW = "tensorflow-cpu==2.21.0"  # what reads artifacts besides us
IREE = ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0")  # likewise
ONNX = ("tf2onnx==1.17.0", "onnxruntime==1.32.0")
COREML = ("coremltools==9.0", "stablehlo-coreml-experimental==0.0.18")  # which brings a jaxlib
# What compiles for GPUs and TPUs.
LIBRARIES = ("jax-cuda12-pjrt==0.10.2", "jax-cuda12-plugin==0.10.2", "libtpu==0.0.52")
RAY = "ray==2.60.0"  # what starts processes on clusters
DASK = "distributed==2026.8.0"  # likewise
PEER = "jax==0.10.2"  # only to compare with, and only in environments of its own
TORCH = "torch==2.15.0"  # likewise
LATEST = ("3.14", "3.13", "3.12")
# The conformance suite of the array API standard, whose newest commits ask for a later version.
CONFORMANCE = "https://github.com/data-apis/array-api-tests", "55fcc60"
# What it asks of arrays that ours refuse: to be written to, and to show what another was written.
MUTATING = (
    "test_array_object.py::test_setitem",
    "test_array_object.py::test_setitem_masking",
    "test_creation_functions.py::test_asarray_arrays",
)
STYLE = ("ruff", "codespell", "zizmor")
DEMO_TOOLS = ("matplotlib", "scikit-learn", "tqdm")
# What makes the site, and what the tutorials are written with.
DOCS_TOOLS = ("mkdocs-material>=9.7", "mike", "matplotlib", "scikit-learn", "scipy", "absl-py")
# The hostile distributions and the sample packages are built in the tests: hence hatchling.
TEST_TOOLS = (
    "pytest>=8",
    "pytest-timeout",
    "pytest-xdist",
    "hatchling>=1.27",
    "array-api-strict",
    "cloudpickle",
    "hypothesis",
    "mpmath",
    "pyyaml",
    "rich",
    "safetensors",
    "scipy",
    "tensorstore",
    "tqdm",
)
# How tests of many programs that run once are compiled: in half of the time, each program checked.
# One piece of code per module, because the workers of pytest occupy the processors already.
FAST = {
    "PLAIT_TIER": "fast",
    "PLAIT_CHECKS": "1",
    "XLA_FLAGS": "--xla_cpu_parallel_codegen_split_count=1",
}
SOME = ("-m", "not wide")  # the others are those of `full`
# What `quick` runs: files that take few seconds each, of every package and of most that is tested
# of all together. What they do not find, `tests` does.
QUICK = (
    "tests/test_architecture.py",
    "tests/test_distributions.py",
    "tests/test_readme.py",
    "packages/core/tests/test_tree.py",
    "packages/core/tests/test_dims.py",
    "packages/core/tests/test_text.py",
    "packages/core/tests/test_forms.py",
    "packages/core/tests/test_reduction.py",
    "packages/core/tests/test_subscript.py",
    "packages/core/tests/test_lax.py",
    "packages/core/tests/test_blocks.py",
    "packages/core/tests/test_misses.py",
    "packages/numpy/tests/test_wrong_inputs.py",
    "packages/core/tests/test_simplify.py",
    "packages/autodiff/tests/test_functions.py",
    "packages/autodiff/tests/test_mistakes.py",
    "packages/autodiff/tests/test_custom.py",
    "packages/autodiff/tests/test_reduction.py",
    "packages/autodiff/tests/test_linearized.py",
    "packages/batching/tests/test_indexing.py",
    "packages/batching/tests/test_reduction.py",
    "packages/batching/tests/test_contraction.py",
    "packages/sharding/tests/test_mesh.py",
    "packages/sharding/tests/test_variance.py",
    "packages/sharding/tests/test_movement.py",
    "packages/export/tests/test_calling.py",
    "packages/export/tests/test_container.py",
    "packages/export/tests/test_golden.py",
    "packages/state/tests/test_references.py",
    "packages/checks/tests/test_checks.py",
    "packages/sparse/tests/test_sparsify.py",
    "packages/testing/tests/test_testing.py",
    "packages/inspect/tests/test_show.py",
    "packages/jax/tests/test_finder.py",
    "packages/jax/tests/test_jaxprs.py",
    "tests/families/test_loops.py",
    "tests/composition/test_custom_rules.py",
    "tests/leaks/test_escaped.py",
    "tests/leaks/test_levels.py",
    "tests/carriers/test_fields.py",
    "tests/export/test_transformed.py",
    "examples/interval/tests/test_interval.py",
)


# What the sessions share


def module(package: str) -> str:
    """The import name of one of our packages."""
    return "plait" if package == "core" else f"plait_{package}"


def cache(session: nox.Session, name: str) -> Path:
    """A folder that lives as long as the environments do."""
    folder = Path(session.cache_dir) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def has_uv(session: nox.Session) -> bool:
    """Whether this session's environments are made by uv."""
    return session.virtualenv.venv_backend == "uv"


def build_wheel(session: nox.Session, source: Path, folder: Path) -> Path:
    """Build the wheel of one source tree into an emptied folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    if has_uv(session):
        command = ("uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(source))
    else:
        pip = ("python", "-m", "pip", "wheel", "--quiet", "--no-deps")
        command = (*pip, "--wheel-dir", str(folder), str(source))
    session.run(*command, external=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


_built: dict[Path, Path] = {}


def wheel(session: nox.Session, source: Path) -> Path:
    """The wheel of a source tree, built once per run of nox."""
    if source not in _built:
        folder = cache(session, "wheels") / "-".join(source.relative_to(ROOT).parts[-3:])
        _built[source] = build_wheel(session, source, folder)
    return _built[source]


def wheels(session: nox.Session, *packages: str) -> list[str]:
    """The wheels of some of our packages."""
    return [str(wheel(session, ROOT / "packages" / package)) for package in packages]


def environment(session: nox.Session, name: str, *needs: str) -> Path:
    """The interpreter of an environment beside the session's own, with these distributions."""
    folder = cache(session, name)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if has_uv(session):
        session.run("uv", "venv", "--quiet", "--clear", str(folder), external=True)
        session.run("uv", "pip", "install", "-q", "--python", str(python), *needs, external=True)
    else:
        session.run(sys.executable, "-m", "venv", "--clear", str(folder), external=True)
        session.run(str(python), "-m", "pip", "install", "-q", *needs, external=True)
    return python.absolute()


def dependencies(package: str) -> list[str]:
    """What one of our packages requires."""
    text = (ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["dependencies"]


_tools: dict[str, str] = {}


def test_tools(session: nox.Session) -> None:
    """Add what tests need besides our packages to the session's environment.

    The sessions of a run share one environment of these, on the path of each: its files are
    unpacked once, and compiled to bytecode once.
    """
    folder = ("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    if "site" not in _tools:
        python = environment(session, "tools", *dependencies("core"), JAXLIB, *TEST_TOOLS)
        _tools["site"] = session.run(str(python), *folder[1:], silent=True, external=True).strip()
    own = session.run(*folder, silent=True).strip()
    (Path(own) / "tools.pth").write_text(_tools["site"] + "\n", encoding="utf-8")


def pytest(
    session: nox.Session,
    report: str,
    *args: str,
    python: Path | None = None,
    workers: str = "auto",
    **env: str,
) -> None:
    """Run pytest, by default that of the session's environment.

    Its counts are kept for the summary that `.ci/run` prints.
    """
    xml = cache(session, "reports").resolve() / f"{report}.xml"
    kept = {"PLAIT_TEST_PROGRAMS": programs(session)} if FAST.items() <= env.items() else {}
    session.run(
        *(str(python or "python"), "-P", "-m", "pytest"),
        # neighbours stay in one worker, which has compiled before what they share
        *(() if workers == "0" else ("-n", workers, "--dist=worksteal")),
        f"--junitxml={xml}",
        f"--override-ini=junit_suite_name={report}",
        f"--override-ini=cache_dir={cache(session, 'pytest').resolve() / report}",
        *args,
        *session.posargs,
        env={"PYTHONPATH": None, **kept, **env},
        external=python is not None,
    )


def programs(session: nox.Session) -> str:
    """Return the folder of what tests compile fast, which later runs load in place of compiling.

    The name of an entry is a digest of the compiler's input. What makes the input and the output
    of the compiler is in a few files: where one of them has changed, nothing is kept.
    """
    source = ROOT / "packages" / "core" / "src" / "plait"
    digest = hashlib.sha256()
    for file in sorted([*source.glob("_xla/*.py"), source / "_base" / "jaxlib_api.py"]):
        digest.update(file.read_bytes())
    folder = cache(session, "programs").resolve() / digest.hexdigest()
    for other in folder.parent.iterdir():
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(mode=0o700, exist_ok=True)  # programs that others could write are not run
    return str(folder)


def has_tests(folder: Path) -> bool:
    """Whether a folder holds a test file."""
    return any(folder.rglob("test_*.py"))


def working(interpreter: str) -> str | None:
    """The true path of an interpreter, if it can be started."""
    ask = [interpreter, "-c", "import sys; print(sys.executable)"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None  # a launcher (pyenv's shims) may be there for a version that is not


def found_python(*versions: str) -> str | None:
    """The first of these interpreters that is here and can be started."""
    for version in versions:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), reverse=True)
        for found in (shutil.which(f"python{version}"), *map(str, kept)):
            if found and (path := working(found)):
                return path
    return None


def latest_python() -> str | None:
    """The newest supported interpreter that is newer than the one which runs nox."""
    mine = sys.version_info[:2]
    return found_python(*(v for v in LATEST if tuple(map(int, v.split("."))) > mine))


# Sessions for everybody


@nox.session
def demo(session: nox.Session) -> None:
    """Every transformation at work on a classifier of digits; `-- PICTURE` for its loss curve."""
    session.install(*wheels(session, *PACKAGES), JAXLIB, *DEMO_TOOLS)
    session.install("--no-deps", str(wheel(session, ROOT / "examples" / "interval")))
    reader = environment(session, "reader", *wheels(session, "core", "numpy", "export"), JAXLIB)
    command = ("python", "examples/digits.py", "--reader", str(reader))
    session.run(*command, *session.posargs, env={"PYTHONPATH": None})


@nox.session
def tests(session: nox.Session) -> None:
    """Everything that a change must pass: all packages together, then each of the parts.

    It takes some 13 minutes on two cores: it compiles fast, and leaves to `full` the cases
    that are marked wide.
    """
    if not session.posargs:
        shutil.rmtree(cache(session, "reports"))
        for package in PACKAGES:
            session.notify(f"alone({package})")
        session.notify("subsets")
        session.notify("lint")
        session.notify("types")
    session.install("--no-deps", *wheels(session, *PACKAGES))
    test_tools(session)
    # Most tests compile many programs that run once. `full` compiles as users do.
    chosen = () if session.posargs else SOME
    run_together(session, "together", *chosen, own=bool(session.posargs), **FAST)


def run_together(
    session: nox.Session, report: str, *chosen: str, own: bool = False, **options: Any
) -> None:
    """Run the tests of the repository, where all packages are installed; with `own` also those of
    every plugin, which otherwise run where it alone is installed."""
    session.install("--no-deps", *(str(wheel(session, sample)) for sample in SAMPLES))
    # the core's own tests run where nothing else is installed: plugins change nothing in them
    plugins = (*PLUGINS, "jax") if own else ()
    folders = [ROOT / "tests", *(ROOT / "packages" / p / "tests" for p in plugins)]
    folders += [sample / "tests" for sample in SAMPLES]
    pytest(
        session,
        report,
        "--ignore=tests/install",
        "--ignore=tests/releases",
        "--ignore=tests/coexistence",
        "--ignore=tests/libraries",
        "--ignore=tests/tensorflow",
        "--ignore=tests/iree",
        "--ignore=tests/onnx",
        "--ignore=tests/coreml",
        "--ignore=tests/topologies",
        "--ignore=tests/typing",
        *chosen,
        *(str(f.relative_to(ROOT)) for f in folders if has_tests(f)),
        **options,
    )


@nox.session(name="tests-latest", python=latest_python() or False)
def tests_latest(session: nox.Session) -> None:
    """The tests of all packages together on the newest Python here, with the newest jaxlib."""
    if not session.python:
        session.skip(f"no newer Python ({' or '.join(LATEST)}) than the one that runs nox is here")
    session.install(*wheels(session, *PACKAGES), *TEST_TOOLS)
    session.run("python", "-c", "import sys, jaxlib; print(sys.version, jaxlib.__version__)")
    run_together(session, "latest", own=True)


@nox.session(name="tests-3.14", python=found_python("3.14") or False)
def tests_on_3_14(session: nox.Session) -> None:
    """Each package's own tests on Python 3.14, if it is here, with the newest requirements."""
    if not session.python:
        session.skip("no Python 3.14 is here")
    session.install(*wheels(session, *PACKAGES), *TEST_TOOLS)
    own_tests(session, "3.14")


@nox.session(name="free-threaded", python=found_python("3.14t", "3.13t") or False)
def free_threaded(session: nox.Session) -> None:
    """Run sixteen threads at once on a Python without the global lock, if one is here."""
    if not session.python:
        session.skip("no free-threaded Python is here")
    # the newest numpy may have no wheel for 3.13t, and its sources take long to compile
    session.install("--only-binary=:all:", *wheels(session, *PACKAGES), "pytest>=8")
    session.install("pytest-timeout", "pytest-xdist")
    kept = "import sys, plait; plait.numpy.ones(2) + 1; assert not sys._is_gil_enabled()"
    session.run("python", "-c", kept)
    pytest(session, "free-threaded", "tests/threads", workers="0")


def own_tests(session: nox.Session, report: str) -> None:
    """Run each package's own tests, one package after the other: they set up different numbers of
    devices."""
    session.install("--no-deps", *(str(wheel(session, sample)) for sample in SAMPLES))
    versions = (
        "import sys, jaxlib, numpy; print(sys.version, jaxlib.__version__, numpy.__version__)"
    )
    session.run("python", "-c", versions)
    for package in PACKAGES:
        if has_tests(ROOT / "packages" / package / "tests"):
            pytest(session, f"{report}-{package}", *SOME, f"packages/{package}/tests", **FAST)


def required(session: nox.Session, report: str, *options: str) -> None:
    """Run the cross-section of `quick` with requirements resolved by uv with these options."""
    install_required(session, *options)
    session.install("--no-deps", *(str(wheel(session, sample)) for sample in SAMPLES))
    session.run(
        "python", "-c", "import jaxlib, numpy; print(jaxlib.__version__, numpy.__version__)"
    )
    pytest(session, report, *SOME, *QUICK, **FAST)


def install_required(session: nox.Session, *options: str) -> None:
    """Install all packages, and the versions of what they require that these options choose."""
    # what the packages require is direct here, so that `lowest-direct` applies to it
    needs = [n for p in PACKAGES for n in requirements(p) if not n.startswith("plait-")]
    session.install(*wheels(session, *PACKAGES), *dict.fromkeys(needs), *options)
    session.install(*TEST_TOOLS)


def requirements(package: str) -> list[str]:
    """The requirements of one of our packages and its extras; TensorFlow has its own session."""
    text = (ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"].get("optional-dependencies", {})
    named = [n for extra in extras.values() for n in extra if not n.startswith("tensorflow")]
    return [*dependencies(package), *named]


@nox.session(venv_backend="uv")
def floors(session: nox.Session) -> None:
    """Each package's own tests with the oldest versions that it admits: of ours those that were
    released, built of their commits, and of others the lowest; `-- PACKAGE` for one."""
    chosen, session.posargs[:] = list(session.posargs), []
    for package in chosen or PACKAGES:
        if not has_tests(ROOT / "packages" / package / "tests"):
            continue
        present = list(dict.fromkeys((*WRITTEN_WITH, package)))
        ours = dict(zip(present, wheels(session, *present), strict=True))
        for of in releasing.oldest(package):
            ours[of.package.removeprefix("plait-")] = released_wheel(session, of)
        # what they require is direct here, so that `lowest-direct` applies to it
        needs = [n for p in present for n in requirements(p) if not n.startswith("plait-")]
        lowest = (*dict.fromkeys(needs), "--resolution=lowest-direct")
        python = environment(session, "floors", *ours.values(), *lowest)
        install = ("uv", "pip", "install", "-q", "--python", str(python))
        session.run(*install, *ours.values(), *TEST_TOOLS, external=True)
        session.run("uv", "pip", "list", "--python", str(python), external=True)
        pytest(
            session, f"floors-{package}", *SOME, f"packages/{package}/tests", python=python, **FAST
        )


def released_wheel(session: nox.Session, of: releasing.Release) -> str:
    """The wheel of a release, built of its commit."""
    folder = cache(session, "released").resolve() / of.tag
    source = releasing.unpacked(of.commit, of.folder, folder / "source")
    return str(build_wheel(session, source, folder / "wheel"))


@nox.session
def coverage(session: nox.Session) -> None:
    """The share of lines that each package's own tests run, as a table; `-- PACKAGE` for one.

    It is not part of `tests`, which it would make twice as long.
    """
    chosen, session.posargs[:] = list(session.posargs), []
    session.install("--no-deps", *wheels(session, *PACKAGES))
    test_tools(session)
    session.install("pytest-cov>=6")
    data = cache(session, "coverage").resolve()
    shutil.rmtree(data)
    data.mkdir()
    kept = {"COVERAGE_FILE": str(data / "data")}
    named = [f"--cov={module(package)}" for package in PACKAGES]
    for package in chosen or PACKAGES:  # one by one: they set up different numbers of devices
        if has_tests(ROOT / "packages" / package / "tests"):
            options = (*named, "--cov-append", "--cov-report=", *SOME)
            where = f"packages/{package}/tests"
            pytest(session, f"coverage-{package}", *options, where, **kept, **FAST)
    report = data / "report.json"
    session.run("python", "-m", "coverage", "json", "-q", "-o", str(report), env=kept)
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    for package in chosen or PACKAGES:
        marked = f"/{module(package)}/"
        counts = [f["summary"] for name, f in files.items() if marked in Path(name).as_posix()]
        run, total = (sum(c[k] for c in counts) for k in ("covered_lines", "num_statements"))
        print(f"plait-{package:10} {run:6} of {total:6} lines  {100 * run / max(total, 1):5.1f} %")


@nox.session(venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """A cross-section of the tests with the oldest version of each requirement."""
    required(session, "lowest", "--resolution=lowest-direct")


@nox.session(venv_backend="uv", python=latest_python() or False)
def newest(session: nox.Session) -> None:
    """The same with the newest versions, on the newest Python here."""
    if not session.python:
        session.skip(f"no newer Python ({' or '.join(LATEST)}) than the one that runs nox is here")
    required(session, "newest", "--resolution=highest")


@nox.session(venv_backend="uv")
def prereleases(session: nox.Session) -> None:
    """The same with versions that are not final yet."""
    required(session, "prereleases", "--prerelease=allow", "--resolution=highest")


@nox.session
def full(session: nox.Session) -> None:
    """Run what `tests` leaves out: each package as users compile, then the wide cases of the
    repository's tests, then mixtures of releases."""
    for package in with_tests():
        session.notify(f"compiled({package})")
    session.notify("wide")
    session.notify("releases")


@nox.session(name="full-tier")
def full_tier(session: nox.Session) -> None:
    """All of the packages' own tests, compiled as users compile."""
    for package in with_tests():
        session.notify(f"compiled({package})", posargs=["--again=1"])


def with_tests() -> list[str]:
    """The packages that have tests of their own."""
    return [p for p in PACKAGES if has_tests(ROOT / "packages" / p / "tests")]


@nox.session
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def compiled(session: nox.Session, package: str) -> None:
    """A package's own tests at the full tier and without checks, installed as in `alone`: its wide
    cases, and an eighth of those that `tests` runs; all of them with `-- --again=1`."""
    install_alone(session, package)
    pytest(session, f"full-{package}", "--again=8", f"packages/{package}/tests")


@nox.session
def wide(session: nox.Session) -> None:
    """The wide cases of the repository's tests."""
    session.install("--no-deps", *wheels(session, *PACKAGES))
    test_tools(session)
    run_together(session, "wide", "-m", "wide", **FAST)


# The parts of `tests`


@nox.session
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def alone(session: nox.Session, package: str) -> None:
    """The tests of one package, where only it, the core and what tests are written with is."""
    folder = ROOT / "packages" / package / "tests"
    if not has_tests(folder):
        session.skip(f"{folder.relative_to(ROOT)} holds no tests")
    install_alone(session, package)
    chosen = () if session.posargs else SOME
    pytest(session, f"alone-{package}", *chosen, str(folder.relative_to(ROOT)), **FAST)


def install_alone(session: nox.Session, package: str) -> None:
    """Install one package, the core, and what tests are written with."""
    session.install("--no-deps", *wheels(session, *dict.fromkeys((*WRITTEN_WITH, package))))
    test_tools(session)


@nox.session
def subsets(session: nox.Session) -> None:
    """Each subset of the plugins: what is there works, and what is not says what to install.

    One environment holds what all of them share (numpy and jaxlib); every wheel is installed into
    a folder of its own, and a subset is a search path of such folders.
    """
    session.install(*dependencies("core"), JAXLIB)
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist")
    site = cache(session, "site")
    shutil.rmtree(site)
    for package, built in zip(PACKAGES, wheels(session, *PACKAGES), strict=True):
        session.install("--no-deps", "--target", str(site / package), built)
    pytest(session, "subsets", "tests/install", PLAIT_TEST_SITE=str(site))


@nox.session
def releases(session: nox.Session) -> None:
    """Each mixture of releases with this tree: it works, or says why not."""
    session.install(*dependencies("core"), JAXLIB)
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist")
    session.install("hatchling>=1.27", "pip")  # to build earlier releases, and to ask pip for them
    pytest(session, "releases", "tests/releases", PLAIT_TEST_RELEASES="1")


@nox.session(venv_backend="uv")
def workplace(session: nox.Session) -> None:
    """`uv sync` and `hatch env create` in a clone: environments to work in, which work."""
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist")
    file = "tests/releases/test_environments.py"
    pytest(session, "workplace", file, workers="0", PLAIT_TEST_ENVIRONMENTS="1")


@nox.session
def coexistence(session: nox.Session) -> None:
    """Plait and jax in one process, imported in either order."""
    if not has_tests(ROOT / "tests" / "coexistence"):
        session.skip("tests/coexistence holds no tests")
    session.install(*wheels(session, *PACKAGES), JAXLIB, PEER, *TEST_TOOLS)
    pytest(session, "coexistence", "tests/coexistence")


@nox.session
def tensorflow(session: nox.Session) -> None:
    """Functions exported to TensorFlow: run, differentiated, saved and loaded there."""
    session.install(
        *wheels(session, *WRITTEN_WITH, "autodiff", "batching", "export"), JAXLIB, TENSORFLOW
    )
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist", "scipy")
    pytest(session, "tensorflow", "tests/tensorflow")


@nox.session
def iree(session: nox.Session) -> None:
    """Artifacts compiled and run by IREE, a compiler of others, and its virtual machine."""
    session.install(*wheels(session, "core", *PLUGINS), JAXLIB, *IREE)
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist")
    pytest(session, "iree", "tests/iree")


@nox.session
def onnx(session: nox.Session) -> None:
    """Functions as graphs of TensorFlow's, converted to ONNX and run by ONNX Runtime."""
    packages = (*WRITTEN_WITH, "autodiff", "batching", "export")
    session.install(*wheels(session, *packages), JAXLIB, TENSORFLOW, *ONNX)
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist", "scipy")
    pytest(session, "onnx", "tests/onnx")


@nox.session
def coreml(session: nox.Session) -> None:
    """Artifacts converted to Core ML, by an environment that has no Plait."""
    session.install(*wheels(session, "core", *PLUGINS), JAXLIB, "pytest>=8", "pytest-timeout")
    reader = environment(session, "coreml", *COREML)
    pytest(session, "coreml", "tests/coreml", workers="0", PLAIT_TEST_READER=str(reader))


@nox.session
def topologies(session: nox.Session) -> None:
    """Programs compiled for H100s and TPUs, by the libraries of these platforms and no device.

    It is no part of `tests`: the libraries are a gigabyte.
    """
    session.install(*wheels(session, "core", *PLUGINS), JAXLIB, *LIBRARIES)
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist")
    pytest(session, "topologies", "tests/topologies", workers="0", PLAIT_PLATFORM="cpu")


@nox.session
def ray(session: nox.Session) -> None:
    """Training in the actors of a Ray cluster of this machine, whose workers are killed."""
    on_cluster(session, "ray", RAY)


@nox.session
def dask(session: nox.Session) -> None:
    """Processes on Dask workers of three hosts of this machine, of which some are lost."""
    on_cluster(session, "dask", DASK)


def on_cluster(session: nox.Session, name: str, engine: str) -> None:
    """Run the tests of the way by an engine that starts processes."""
    packages = (*WRITTEN_WITH, "autodiff", "batching", "sharding")
    session.install(*wheels(session, *packages), JAXLIB, engine)
    session.install("pytest>=8", "pytest-timeout", "pytest-xdist", "tensorstore")
    pytest(session, name, f"tests/on_{name}", workers="0")


@nox.session(name="array-api")
def array_api(session: nox.Session) -> None:
    """The conformance suite of the array API standard; `-- FOLDER` if there is a checkout of it.

    It is no part of `tests`, since it is fetched from where it is published.
    """
    source, commit = CONFORMANCE
    given, session.posargs[:] = list(session.posargs), []
    folder = Path(given[0]).resolve() if given else cache(session, "array-api").resolve()
    if not given and not (folder / ".git").exists():
        session.run("git", "clone", "--quiet", source, str(folder), external=True)
    if not given:
        with session.chdir(folder):
            session.run("git", "checkout", "--quiet", commit, external=True)
            session.run("git", "submodule", "update", "--quiet", "--init", external=True)
    session.install(
        *wheels(session, "core", "numpy"), JAXLIB, "-r", str(folder / "requirements.txt")
    )
    with session.chdir(folder):
        pytest(
            session,
            "array-api",
            "array_api_tests",
            "--max-examples=20",
            "--disable-deadline",
            "--hypothesis-seed=0",
            *(f"--deselect=array_api_tests/{case}" for case in MUTATING),
            workers="0",
            ARRAY_API_TESTS_MODULE="plait.numpy",
            PLAIT_DEFAULT_FLOAT="float64",
            PLAIT_DEFAULT_INT="int64",
        )


@nox.session
def libraries(session: nox.Session) -> None:
    """JAX's libraries, unmodified and without jax: each is imported and runs the example of its
    README, and optimisers take piles; `-- --all` for every program."""
    everything = "--all" in session.posargs
    session.posargs[:] = [arg for arg in session.posargs if arg != "--all"]
    folder = Path("tests") / "libraries"
    session.install(
        *wheels(session, *PACKAGES), JAXLIB, "pytest>=8", "pytest-timeout", "pytest-xdist"
    )
    session.install("--no-deps", "-r", str(folder / "requirements.txt"))
    chosen = () if everything else ("-k", "first or test_piles")
    pytest(session, "libraries", *chosen, str(folder))


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random programs under random stacks of transformations, and random operations divided over
    devices, against numpy, and artifacts with changed bytes; others each time: `-- --minutes N`,
    `-- --seed S --count 1` for one again."""
    session.install(*wheels(session, *PACKAGES), JAXLIB, "pytest>=8", "scipy")
    session.run("python", "-m", "tests.fuzz.test_random_programs", *session.posargs)
    session.run("python", "-m", "tests.fuzz.random_piles", *session.posargs)
    session.run("python", "-m", "tests.fuzz.random_divisions", *session.posargs)
    session.run("python", "-m", "tests.sharding.varying_programs", *session.posargs)
    session.run("python", "tests/fuzz/test_changed_artifacts.py", *session.posargs)
    session.run("python", "-m", "tests.fuzz.random_piles", "--families")
    session.run("python", "-m", "tests.fuzz.random_expressions", *session.posargs)
    session.run("python", "-m", "tests.fuzz.random_rows", *session.posargs)
    session.run("python", "-m", "tests.fuzz.random_chains", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """Laws at their widest, for some five hours: a million random expressions compiled against
    their operations, then random programs of each kind, and strangers' transformations in every
    nesting of two operations."""
    session.install(*wheels(session, *PACKAGES), JAXLIB, "pytest>=8", "scipy")
    session.install("--no-deps", *(str(wheel(session, sample)) for sample in SAMPLES))
    session.run("python", "-m", "tests.carriers.nestings", env={"PLAIT_TIER": "fast"})
    expressions = ("-m", "tests.fuzz.random_expressions", "--tier", "fast")
    session.run("python", *expressions, "--count", "1000000", "--minutes", "240")
    for module in (
        "tests.fuzz.test_random_programs",
        "tests.fuzz.random_piles",
        "tests.fuzz.random_lengths",
        "tests.fuzz.random_divisions",
        "tests.fuzz.random_rows",
        "tests.fuzz.random_chains",
        "tests.sharding.varying_programs",
    ):
        session.run("python", "-m", module, "--minutes", "15")


@nox.session
def hostile(session: nox.Session) -> None:
    """Artifacts with changed bytes in great number, half of them with the right checksums, read
    apart: `-- --count N`, and `--seed S --count 1` for one again."""
    session.install(*wheels(session, *PACKAGES), JAXLIB, "pytest>=8")
    session.run("python", "tests/fuzz/hostile.py", *session.posargs)


# Sessions for those who change Plait


@nox.session
def quick(session: nox.Session) -> None:
    """Before each commit: style, the design's rules, a cross-section of all packages' tests."""
    session.install(*STYLE)
    style(session)
    session.install("--no-deps", *wheels(session, *PACKAGES))
    session.install("--no-deps", *(str(wheel(session, sample)) for sample in SAMPLES))
    test_tools(session)
    pytest(session, "quick", *SOME, *QUICK, **FAST)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and common mistakes, by ruff, misspelt words, and weak workflows; `-- --fix` mends
    what ruff can."""
    session.install(*STYLE)
    style(session, *session.posargs)


def style(session: nox.Session, *options: str) -> None:
    """Run ruff, codespell and zizmor; the option `--fix` makes ruff mend what it can."""
    session.run("ruff", "check", *options, ".")
    session.run("ruff", "format", *([] if "--fix" in options else ["--check"]), ".")
    session.run("codespell")
    session.run("zizmor", "--offline", "--quiet", ".github/workflows")


@nox.session
def types(session: nox.Session) -> None:
    """Static types: the sources by pyright, strict for the centre of the core, and programs of
    users by pyright and mypy."""
    session.install(*wheels(session, *PACKAGES), JAXLIB, "mpmath", "pyright[nodejs]", "mypy")
    session.install("pytest>=8", "pytest-timeout")
    session.run("pyright", *session.posargs)
    session.run("pytest", "-q", "tests/typing", env={"PYTHONPATH": None})


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks as a table and charts, against jax and torch in environments of their own."""
    session.install(*wheels(session, *PACKAGES), JAXLIB, "matplotlib")
    peer = environment(session, "peer", PEER, JAXLIB)
    torch = environment(session, "torch", TORCH, "numpy")
    peers = ("--peer", str(peer), "--torch", str(torch))
    session.run("python", "benchmarks/run.py", *peers, *session.posargs)


@nox.session
def tune(session: nox.Session) -> None:
    """The numbers on which the forms of operations for CPUs depend, measured on this machine; ends
    with the setting that holds what was found."""
    session.install(*wheels(session, *PACKAGES), JAXLIB)
    session.run("python", "benchmarks/tune.py", *session.posargs, env={"PYTHONPATH": None})


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site, with its tutorials run; a broken link, a cell that raises, and a
    query that the search misses are errors.  `-- serve` shows it, and `-- deploy X.Y.Z` adds it to
    the branch gh-pages, beside that of earlier versions."""
    session.install(*wheels(session, *PACKAGES), JAXLIB, *DOCS_TOOLS)
    session.install("--no-deps", "optax==0.2.8")  # which requires jax, that plait-jax answers for
    if session.posargs[:1] == ["deploy"]:
        session.run("mike", "deploy", "--update-aliases", *session.posargs[1:], "latest")
    else:
        session.run("mkdocs", *(session.posargs or ("build", "--strict")))


@nox.session
def build(session: nox.Session) -> None:
    """The wheel and the source distribution of every package, checked, in dist/."""
    session.install("build", "hatchling>=1.27", "twine")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for source in (ROOT, *(ROOT / "packages" / package for package in PACKAGES)):
        session.run("python", "-m", "build", "--no-isolation", "--outdir", "dist", str(source))
    session.run("twine", "check", "--strict", *sorted(str(p) for p in (ROOT / "dist").iterdir()))


@nox.session
def release(session: nox.Session) -> None:
    """`-- PACKAGE`: check that the commit at hand is a release of it, and add it to releases.toml;
    `-- PACKAGE --build`: build it without running its tests, and add nothing.

    What is built is the commit, twice and to the same bytes; its tests run as the source
    distribution has them, against the oldest and newest released cores, and the tree's if that is
    another.
    """
    packages, session.posargs[:] = list(session.posargs), []
    only_built = "--build" in packages
    packages = [p for p in packages if p != "--build"]
    if len(packages) != 1 or packages[0] not in RELEASED:
        session.error(f"name one package: nox -s release -- {'|'.join(RELEASED)}")
    (package,) = packages
    try:
        found = releasing.candidate(package)
    except releasing.NotReady as error:
        session.error(str(error))
    session.install("build", BUILDER, "twine")
    built = distribution(session, found, "one")
    if contents(built) != contents(distribution(session, found, "two")):
        session.error(f"{found.tag} builds to other bytes the second time")
    session.run("twine", "check", "--strict", *map(str, built))
    (sdist,) = (p for p in built if p.name.endswith(".tar.gz"))
    (made,) = (p for p in built if p.suffix == ".whl")
    shutil.unpack_archive(sdist, made.parent, filter="data")
    source = made.parent / sdist.name.removesuffix(".tar.gz")
    others = wheels(session, *(p for p in WRITTEN_WITH if p not in ("core", package)))
    tested = released_cores(session, package) if has_tests(source) and not only_built else []
    for label, core in tested:
        needs = (str(made), *core, *others, JAXLIB, *TEST_TOOLS)
        python = environment(session, "releasing", *needs)
        with session.chdir(source):
            ours = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(source), "tests")
            pytest(session, f"release-{package}-{label}", *ours, python=python)
    target = ROOT / "dist" / package
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in built:
        shutil.copy(path, target)
    if only_built:
        return
    releasing.record(found)
    session.log(f"releases.toml has {found.tag}: commit it, tag {found.commit}, publish {target}")


def distribution(session: nox.Session, of: releasing.Release, name: str) -> list[Path]:
    """The wheel and the source distribution of a commit, built in a folder of its own."""
    folder = cache(session, "release").resolve() / name
    source = releasing.unpacked(of.commit, of.folder, folder)
    target = folder / "dist"
    command = ("python", "-m", "build", "--no-isolation", "--outdir", str(target), str(source))
    session.run(*command, env={"SOURCE_DATE_EPOCH": releasing.epoch(of.commit)})
    return sorted(target.iterdir())


def contents(built: list[Path]) -> dict[str, bytes]:
    """The bytes of files, by their names."""
    return {path.name: path.read_bytes() for path in built}


def released_cores(session: nox.Session, package: str) -> list[tuple[str, list[str]]]:
    """The wheels of core to test a package against, each with a name; its own for core itself."""
    if package == "core":
        return [("itself", [])]
    released = releasing.cores(package)
    found = [(core.tag, [released_wheel(session, core)]) for core in released]
    if all(releasing.changed_since(core.commit, core.folder) for core in released):
        found.append(("tree", wheels(session, "core")))
    return found


if __name__ == "__main__":
    nox.main()
