"""Profiles: what is written, which lines operations carry, and costs by line.

Invariant: no test compares a time with a number; costs are compared with counts by hand.
"""

import gzip
import json
import re
import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import events, lax, profiler
from plait.errors import ArgumentError, PlaitError

X = np.ones((32, 48), np.float32)
W = np.ones((48, 16), np.float32)


def model(x, w):
    y = pnp.tanh(x @ w)
    return (y * 3).sum()


PRODUCT = model.__code__.co_firstlineno + 1
SUM = PRODUCT + 1


def recorded(folder):
    """Return the events of the Perfetto file in a folder."""
    (file,) = folder.glob("plugins/profile/*/perfetto_trace.json.gz")
    return json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    f = plait.jit(model)
    f(X, W)
    with profiler.trace(folder):
        f(X, W)
        with profiler.annotate("second call", number=2):
            f(X, W).block_until_ready()
    return folder


def test_files(written):
    names = {p.name.partition(".")[2] for p in written.glob("plugins/profile/*/*")}
    assert {"xplane.pb", "trace.json.gz"} <= names


def test_a_profile_has_the_lines_of_the_users_file(written):
    sources = {e["args"]["source"] for e in recorded(written) if "source" in e.get("args", {})}
    lines = {line for s in sources for line in s.split(", ")}
    assert {f"{__file__}:{PRODUCT}", f"{__file__}:{SUM}"} <= lines
    named = [e["name"] for e in recorded(written) if "source" in e.get("args", {})]
    assert all(re.search(r"\(test_profiler\.py:\d+\)$", n) for n in named)


def test_programs_have_the_names_of_functions(written):
    modules = {e["args"]["hlo_module"] for e in recorded(written) if "hlo_op" in e.get("args", {})}
    assert "model" in modules


def test_annotations(written):
    (event,) = [e for e in recorded(written) if e.get("name") == "second call"]
    assert event["args"] == {"number": "2"}


def test_executables_have_no_lines_otherwise():
    f = plait.jit(lambda x: x * 5)
    with events.counting() as n:
        f(X)
        with plait.config(source_lines=True):
            f(X)
        f(X)
        with plait.config(source_lines=True):
            f(X)
    assert (n["compile"] + n["load"], n["trace"]) == (2, 2)
    text = f.lower(X).compile().as_text()
    with plait.config(source_lines=True):
        with_lines = f.lower(X).compile().as_text()
    assert __file__ not in text
    assert __file__ in with_lines


def test_operations_outside_of_jit_have_no_lines():
    """One executable serves the operations of many lines."""
    x = pnp.ones(7)
    with plait.config(source_lines=True), events.counting() as n:
        a = x * 2
        b = x * 2
        assert (a == b).all()
    assert n["compile"] + n["load"] <= 3


def test_one_recording_at_a_time(tmp_path):
    with pytest.raises(ArgumentError, match="no recording"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path, lines=False)
    try:
        with pytest.raises(ArgumentError, match="under way"):
            profiler.start_trace(tmp_path)
    finally:
        profiler.stop_trace()
    assert not plait.config.source_lines
    assert recorded(tmp_path)
    with pytest.raises(ArgumentError, match="ui.perfetto.dev"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_a_recording_ends_with_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), profiler.trace(tmp_path, create_perfetto_trace=False):
        raise ZeroDivisionError
    assert not plait.config.source_lines
    assert [*tmp_path.rglob("*.xplane.pb")]
    assert not [*tmp_path.rglob("perfetto_trace.json.gz")]


def test_decorators():
    @profiler.annotate
    def f(x):
        """Double."""
        return 2 * x

    @profiler.annotate("g", number=1)
    def g(x):
        return g(x - 1) + 1 if x else 0

    @profiler.annotate_function
    def h(x, *, y=1):
        return x + y

    assert (f(2), f.__name__, f.__doc__) == (4, "f", "Double.")
    assert g(4) == 4
    assert h(2, y=3) == 5
    with profiler.StepTraceAnnotation("step", step_num=3) as s, profiler.annotate("inner"):
        assert isinstance(s, profiler.TraceAnnotation)
    with pytest.raises(ArgumentError, match="must be a str"):
        profiler.annotate(3)


def test_an_annotation_opens_twice():
    a = profiler.annotate("again")
    with a, a:
        pass
    threads = [threading.Thread(target=a.__enter__) for _ in range(2)]
    for t in threads:
        t.start()
        t.join()


def test_memory(tmp_path):
    x = pnp.ones(1000)
    packed = profiler.device_memory_profile()
    assert len(gzip.decompress(packed)) > 100
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert gzip.decompress((tmp_path / "memory.prof").read_bytes())
    del x


def test_the_server_is_one():
    with pytest.raises(PlaitError, match="no server runs"):
        profiler.stop_server()


# ---- costs by line -----------------------------------------------------------------------------


def test_operations_and_bytes_of_lines():
    table = profiler.by_line(model, repeat=1)(X, W)
    product, total = table.of(PRODUCT), table.of(SUM)
    m, k, n = 32, 48, 16
    assert product.flops == 2 * m * k * n + m * n
    assert product.bytes == 4 * (m * k + k * n + m * n + 2 * m * n)
    assert total.flops == m * n + m * n - 1
    assert product.text == "y = pnp.tanh(x @ w)"
    assert table.flops == product.flops + total.flops


def test_lines_are_measured():
    table = profiler.by_line(plait.jit(model), repeat=2)(X, W)
    assert table.seconds > 0
    assert table.of(PRODUCT).seconds > 0
    assert {r.where for r in table} >= {f"{__file__}:{PRODUCT}", f"{__file__}:{SUM}"}


def test_loops_count_their_turns():
    def f(x):
        def turn(c, a):
            return c + a * a, None

        return lax.scan(turn, x[0], x)[0]

    line = f.__code__.co_firstlineno + 2
    assert profiler.by_line(f, repeat=1)(X).of(line).flops == 2 * 48 * 32


def test_inner_functions_and_callbacks():
    inner = plait.jit(lambda x: x * 2)

    def f(x):
        y = inner(x) + inner(x)
        return plait.pure_callback(lambda v: v, y, y)

    table = profiler.by_line(f, repeat=1)(X)
    assert table.flops == 3 * X.size


def test_the_table_prints():
    text = str(profiler.by_line(model, repeat=1)(X, W))
    assert text.splitlines()[0].split() == ["us", "flops", "bytes", "line"]
    assert f"test_profiler.py:{PRODUCT}" in text
    assert "y = pnp.tanh(x @ w)" in text
    assert "<table>" in profiler.by_line(model, repeat=1)(X, W)._repr_html_()


def test_unknown_names():
    assert profiler.ProfileOptions().host_tracer_level >= 0
    with pytest.raises(AttributeError):
        _ = profiler.nothing


@pytest.mark.parametrize("name", ["ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane"])
def test_classes_of_the_runtime_are_found(name):
    assert isinstance(getattr(plait.profiler, name), type)
    with pytest.raises(AttributeError, match="plait.profiler has no 'ProfileDates'"):
        plait.profiler.ProfileDates  # noqa: B018
