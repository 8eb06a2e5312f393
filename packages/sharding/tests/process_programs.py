"""What each of several processes runs in the tests: python process_programs.py NAME ARGUMENTS.

`python process_programs.py NAME` runs the function of that name; what it gives to `tell` is read
by the test, which compares it.  The processes are told who they are by the environment.

Invariant: nothing is compared here with what Plait computes itself.
"""

import atexit
import ctypes
import json
import os
import signal
import socket
import sys
import time

import numpy as np

import plait
import plait.numpy as pn
import plait_sharding.distributed.world
from plait import distributed, lax
from plait.experimental import multihost_utils

TOLD = "told "


def tell(**values):
    """Give values to the test; arrays as nested lists."""
    print(TOLD + json.dumps(values, default=lambda x: np.asarray(x).tolist()), flush=True)


def error_of(f):
    """What `f` raises: the name of its class, and its text."""
    try:
        f()
    except Exception as e:
        return [type(e).__name__, str(e), str(getattr(e, "where", ""))]
    return None


def line_of_devices():
    """The mesh of all devices, and the sharding of rows over it."""
    mesh = plait.make_mesh((plait.device_count(),), ("x",))
    return mesh, plait.NamedSharding(mesh, plait.P("x"))


# ---- what processes are to each other ----------------------------------------------------------


def devices():
    tell(
        index=plait.process_index(),
        count=plait.process_count(),
        indices=plait.process_indices(),
        all=[[d.id, d.process_index] for d in plait.devices()],
        local=[d.id for d in plait.local_devices()],
        of_last=[d.id for d in plait.local_devices(plait.process_count() - 1)],
        nobody=error_of(lambda: plait.local_devices(99)),
        default=plait.numpy.ones(2).sharding.device_set.pop().id,
        computed=(plait.numpy.ones(2) + 1).devices().pop().id,
        initialized=distributed.is_initialized(),
        again=error_of(distributed.initialize),
    )


def arrays():
    """Arrays over all processes: made, asked, read, moved."""
    mesh, rows = line_of_devices()
    n, i = plait.process_count(), plait.process_index()
    whole = np.arange(4 * n * 3, dtype=np.float32).reshape(4 * n, 3)
    x = plait.make_array_from_process_local_data(rows, whole[4 * i : 4 * i + 4])
    given = plait.make_array_from_process_local_data(rows, whole, global_shape=whole.shape)
    called = plait.make_array_from_callback(whole.shape, rows, lambda index: whole[index])
    put = plait.device_put(whole, rows)
    copies = plait.device_put(whole, plait.NamedSharding(mesh, plait.P()))
    shards = (
        lambda a: [  # noqa: E731
            [s.device.id, *s.index[0].indices(a.shape[0])[:2], s.replica_id, s.data]
            for s in a.addressable_shards
        ]
    )
    pieces = [s.data for s in x.addressable_shards]
    again = plait.make_array_from_single_device_arrays(whole.shape, rows, pieces)
    middle = plait.NamedSharding(mesh, plait.P(None, None))
    moved = plait.device_put(x, middle)
    tell(
        shape=x.shape,
        shards=[shards(a) for a in (x, given, called, put, again)],
        copies=[s.replica_id for s in copies.global_shards],
        elsewhere=[s.data is None for s in x.global_shards],
        addressable=[
            x.is_fully_addressable,
            copies.is_fully_addressable,
            pn.ones(2).is_fully_addressable,
        ],
        replicated=[x.is_fully_replicated, copies.is_fully_replicated],
        multi=mesh.is_multi_process,
        mine=[d.id for d in mesh.local_devices],
        block=mesh.local_mesh.ids,
        here=sorted(d.id for d in rows.addressable_devices),
        read=error_of(lambda: np.asarray(x)),
        copy=np.asarray(copies),
        moved=np.asarray(moved),
        shown=repr(x),
        printed=str(x)[:5],
        other=error_of(lambda: plait.device_put(whole, plait.devices()[-1 if i == 0 else 0])),
        uneven=error_of(lambda: plait.make_array_from_process_local_data(rows, whole[:3])),
        wrong=error_of(
            lambda: plait.make_array_from_process_local_data(rows, whole[:3], (4 * n, 3))
        ),
    )
    tell(gathered=multihost_utils.process_allgather(x, tiled=True))


def collectives():
    """The collectives of shard_map, over all devices and over an axis of a mesh of two."""
    d = plait.device_count()
    mesh, rows = line_of_devices()
    x = plait.device_put(np.arange(d * d, dtype=np.float32).reshape(d, d) ** 2, rows)
    P = plait.P

    def mapped(f, out=P("x")):
        y = plait.jit(plait.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out))(x)
        return multihost_utils.process_allgather(y, tiled=True)

    ring = [(k, (k + 1) % d) for k in range(d)]
    tell(
        psum=mapped(lambda v: lax.psum(v, "x"), P()),
        pmax=mapped(lambda v: lax.pmax(v, "x"), P()),
        pmean=mapped(lambda v: lax.pmean(v, "x"), P()),
        all_gather=mapped(lambda v: lax.all_gather(v[0], "x")[None] * (1 + lax.axis_index("x"))),
        psum_scatter=mapped(lambda v: lax.psum_scatter(v[0], "x", tiled=True)),
        all_to_all=mapped(lambda v: lax.all_to_all(v, "x", 1, 0, tiled=True)),
        ppermute=mapped(lambda v: lax.ppermute(v, "x", ring)),
        axis_index=mapped(lambda v: v[:, :1] * 0 + lax.axis_index("x")),
    )
    grid = plait.make_mesh((plait.process_count(), d // plait.process_count()), ("p", "l"))
    z = plait.device_put(
        np.arange(16.0, dtype=np.float32), plait.NamedSharding(grid, P(("p", "l")))
    )
    over = lambda a: plait.jit(  # noqa: E731
        plait.shard_map(lambda v: lax.psum(v, a), mesh=grid, in_specs=P(("p", "l")),
                        out_specs=P("l" if a == "p" else "p"))
    )  # fmt: skip
    local = plait.shard_map(
        lambda v: lax.psum(v, "l"), mesh=grid.local_mesh, in_specs=P("l"), out_specs=P()
    )
    tell(
        between=multihost_utils.process_allgather(over("p")(z), tiled=True),
        within=multihost_utils.process_allgather(over("l")(z), tiled=True),
        alone=plait.jit(local)(np.arange(4.0, dtype=np.float32) + plait.process_index()),
        pmap=plait.pmap(lambda v: lax.psum(v, "i"), axis_name="i")(
            np.arange(len(plait.local_devices()), dtype=np.float32)
        ),
    )


def programs():
    """jit of arrays that the compiler divides; donation; constants; both tiers; ahead of time."""
    mesh, rows = line_of_devices()
    d, P = plait.device_count(), plait.P
    a = np.random.default_rng(0).normal(size=(2 * d, 4)).astype(np.float32)
    b = np.random.default_rng(1).normal(size=(4, 2 * d)).astype(np.float32)
    x = plait.device_put(a, rows)
    y = plait.device_put(b, plait.NamedSharding(mesh, P(None, "x")))
    everywhere = plait.NamedSharding(mesh, P())
    product = plait.jit(lambda x, y: x @ y, out_shardings=everywhere)(x, y)
    closed = pn.asarray(b)
    tell(
        product=product,
        chosen=multihost_utils.process_allgather(plait.jit(lambda x, y: x @ y)(x, y), tiled=True),
        total=float((x * 2).sum()),
        eager=float(pn.sum(pn.sin(x))),
        constant=plait.jit(lambda x: x @ closed, out_shardings=everywhere)(x),
        scalar=plait.jit(lambda x, s: (x * s).sum())(x, 3.0),
        host=plait.jit(lambda v, x: (x * v).sum())(a, x),
        fast=plait.jit(lambda x: (x * 5).sum(), tier="fast")(x),
        both=plait.jit(lambda x: (x * 7).sum(), tier="both")(x),
        ahead=plait.jit(lambda x: (x * 11).sum()).lower(x).compile()(x),
        loop=plait.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c + (x * i).sum(), 0.0))(x),
    )
    two = plait.shard_map(
        lambda v: (lax.psum(v, "x"), lax.psum((v * 2).sum(), "x")),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P(),
    )
    text = plait.jit(two).lower(x).compile().as_text()
    tell(sums=text.count(" all-reduce("))
    step = plait.jit(lambda w, g: w - 0.5 * g, donate_argnums=0)
    w = plait.device_put(a, rows)
    new = step(w, x)
    tell(
        donated=[w.is_deleted(), x.is_deleted()],
        gone=error_of(lambda: w.addressable_shards),
        new=multihost_utils.process_allgather(new, tiled=True),
        twice=error_of(lambda: step(x, x)),
    )
    for _ in range(20):
        new = step(new, x)
    tell(later=multihost_utils.process_allgather(new, tiled=True))


def printing():
    """Callbacks in a program over several processes are refused or run, and end."""
    mesh, rows = line_of_devices()
    x = plait.device_put(np.ones(plait.device_count(), np.float32), rows)
    seen = []

    def noted(v):
        seen.append(float(v.sum()))

    def local(v):
        plait.debug.callback(noted, v)
        return lax.psum(v, "x")

    f = plait.shard_map(local, mesh=mesh, in_specs=plait.P("x"), out_specs=plait.P())
    total = plait.jit(f)(x)
    tell(callbacks=total, seen=seen)


def values():
    """Everything of multihost_utils, the store and the barriers."""
    i, n = plait.process_index(), plait.process_count()
    _, rows = line_of_devices()
    u = multihost_utils
    tree = {"a": np.array([i, 10 * i]), "b": [np.float32(i), i % 2 == 0], "c": np.array([1j * i])}
    gathered = u.process_allgather(tree)
    joined = u.process_allgather(np.full((1, 2), i, np.int8), tiled=True)
    sent = u.broadcast_one_to_all({"s": np.float32(i + 5)}, is_source=i == n - 1)
    first = u.broadcast_one_to_all(np.int64(i + 2**40))
    u.sync_global_devices("one")
    u.assert_equal({"a": np.arange(3), "b": 2.0})
    mesh = plait.make_mesh((plait.device_count(),), ("x",))
    mine = np.arange(4, dtype=np.float32) + 10 * i
    spread = u.host_local_array_to_global_array(mine, mesh, plait.P("x"))
    back = u.global_array_to_host_local_array(spread, mesh, plait.P("x"))
    distributed.key_value_set(f"name {i}", {"of": [i, "é"]})
    every = [distributed.key_value_get(f"name {k}", 30) for k in range(n)]
    distributed.wait_at_barrier("two")
    for name in ("d", "d/e", "d%2Fe", "é"):
        distributed.key_value_set(f"{i} {name}", name)
    distributed.key_value_set(f"{i} d/e", [1], again=True)
    distributed.key_value_delete(f"{i} d")
    tell(kept=[distributed.key_value_get(f"{i} {k}", 1) for k in ("d/e", "d%2Fe", "é")])
    tell(
        a=gathered["a"], b=gathered["b"][0], even=gathered["b"][1].tolist(),
        c=gathered["c"].imag, joined=joined, sent=sent["s"], first=int(first),
        spread=u.process_allgather(spread, tiled=True), back=back, size=back.shape,
        where=sorted(d.id for d in back.devices()), every=every,
        differs=error_of(lambda: u.assert_equal({"w": np.ones(2), "b": [0, i]}, "params")),
        kinds=error_of(lambda: u.assert_equal(np.zeros(2, np.float32 if i else np.float64))),
        stacked=error_of(lambda: u.process_allgather(spread)),
        sources=error_of(lambda: u.broadcast_one_to_all(1, is_source=True)),
        taken=error_of(lambda: distributed.key_value_set(f"name {i}", 1)),
        nothing=error_of(lambda: distributed.key_value_get("nobody", 0.2)),
        unsendable=error_of(lambda: distributed.key_value_set("x", object())),
        deleted=[distributed.key_value_delete(f"name {i}"), distributed.key_value_delete("no")],
    )  # fmt: skip
    if n > 2 and i < 2:
        distributed.wait_at_barrier("some", processes=[0, 1])
    stranger = error_of(lambda: distributed.wait_at_barrier("b", processes=[(i + 1) % n]))
    tell(stranger=stranger)


def explicit():
    """Axes of which types tell, over devices of all processes."""
    sizes = (plait.process_count(), plait.local_device_count())
    mesh = plait.make_mesh(sizes, ("x", "y"), plait.sharding.AxisType.Explicit)
    lies = lambda *entries: plait.NamedSharding(mesh, plait.P(*entries))  # noqa: E731
    whole = lambda v: np.asarray(  # noqa: E731
        plait.jit(lambda u: plait.sharding.reshard(u, lies()))(v).addressable_shards[0].data
    )
    x = plait.device_put(np.arange(64, dtype=np.float32).reshape(16, 4), lies("x", "y"))
    rows = plait.sharding.reshard(x, lies("x", None))
    made = {
        "doubled": plait.jit(lambda v: v * 2)(x),
        "summed": plait.jit(lambda v: v.sum(0))(x),
        "negative": -x,
        "rows": rows,
        "product": plait.jit(lambda a, b: a @ b)(rows, plait.device_put(np.eye(4)[:, :3], lies())),
        "joined": plait.shard_map(
            lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=plait.P("x", "y"),
            out_specs=plait.P(None, "y"),
        )(x),
    }  # fmt: skip
    tell(
        explicit={k: whole(v) for k, v in made.items()},
        types={k: str(plait.typeof(v)) for k, v in made.items()},
        conflict=error_of(lambda: x + plait.sharding.reshard(x, lies("y", "x"))),
    )


def default_devices():
    last, elsewhere = plait.local_devices()[-1], plait.local_devices(1 - plait.process_index() % 2)
    with plait.default_device(last):
        tell(on_last=[d.id for v in (pn.ones(2), pn.ones(2) + 1) for d in v.devices()])
    tell(remote=error_of(lambda: plait.default_device(elsewhere[0])))


def everything():
    """All of these, in processes that are started once."""
    distributed.initialize()
    parts = devices, arrays, collectives, programs, explicit, default_devices, printing, values
    for part in parts:
        part()
    distributed.shutdown()
    tell(afterwards=distributed.is_initialized())


def found(mpi=""):
    """The place that the launcher gave, and a sum over all processes; a program of MPI runs
    "before" or "after" it."""
    initialised = start_mpi() if mpi == "before" else None
    distributed.initialize(initialization_timeout=SECONDS, heartbeat_timeout_seconds=SILENCE)
    each = multihost_utils.process_allgather(np.float32(plait.process_index() + 1))
    line = plait_sharding.distributed.world.current_world().line
    if mpi == "after":
        initialised = start_mpi()
    tell(
        index=plait.process_index(),
        count=plait.process_count(),
        host=socket.gethostname(),
        coordinator=line.sock.getpeername()[0],
        own=line.own_host(),
        sum=float(each.sum()),
        mpi=initialised,
    )


def start_mpi():
    """Initialise MPI, whose library the environment names; return its code, which should be 0."""
    library = ctypes.CDLL(os.environ["MPI_LIBRARY"], mode=ctypes.RTLD_GLOBAL)
    code = library.MPI_Init(None, None)
    atexit.register(library.MPI_Finalize)
    return code


SILENCE = float(os.environ.get("SILENCE", "60"))


# ---- what does not fit -------------------------------------------------------------------------


def joining(*settings):
    """initialize() alone, with settings of this process first."""
    for setting in settings:
        name, value = setting.split("=")
        setattr(plait.config, name, value)
    tell(error=error_of(lambda: distributed.initialize(initialization_timeout=SECONDS)))


SECONDS = float(os.environ.get("SECONDS", "60"))


def too_late():
    plait.numpy.ones(2)
    tell(error=error_of(lambda: distributed.initialize("127.0.0.1:1", 2, 0)))


def diverging():
    """Processes that do different things, one after the other: each time all are told."""
    distributed.initialize()
    _, rows = line_of_devices()
    i, d = plait.process_index(), plait.device_count()
    x = plait.device_put(np.ones(d, np.float32), rows)
    z = plait.device_put(np.ones((d, 2), np.float32), rows)

    def scaled(by):
        def train_step(x):
            return x * by

        return plait.jit(train_step)

    def evaluate(x):
        return x.sum()

    sync = multihost_utils.sync_global_devices
    both = [scaled(3.0), plait.jit(evaluate)]
    tell(
        constant=error_of(lambda: scaled(2.0 + i)(x)),
        function=error_of(lambda: both[i](x)),
        shape=error_of(lambda: scaled(5.0)(z if i else x)),
        sync=error_of(lambda: sync("here" if i else "there")),
        kind=error_of(lambda: scaled(7.0)(x) if i else sync("saved")),
        values=error_of(lambda: plait.device_put(np.full(d, i, np.float32), rows)),
        gather=error_of(lambda: multihost_utils.process_allgather(np.ones(1 + i))),
        good=float(plait.jit(evaluate)(x + 1)),
    )


def crossed():
    """Functions that are compiled already, called in another order."""
    distributed.initialize()
    _, rows = line_of_devices()
    x = plait.device_put(np.ones(plait.device_count(), np.float32), rows)

    def train_step(x):
        return x * 2

    def evaluate(x):
        return x * 3

    order = [plait.jit(train_step), plait.jit(evaluate)]
    for f in order * 3:
        f(x).block_until_ready()
    multihost_utils.sync_global_devices("compiled")

    def go():
        for f in order[:: 1 - 2 * plait.process_index()] * 300:
            f(x).block_until_ready()
            time.sleep(0.05)

    tell(error=error_of(go))


def late():
    """One process comes to a program long after the other, and to another never."""
    distributed.initialize(meeting_timeout_seconds=SECONDS)
    if plait.process_index() == 0:
        tell(late=error_of(lambda: multihost_utils.sync_global_devices("checkpoint")))
    else:
        time.sleep(3 * SECONDS)


def absent():
    """Process 1 ends, and process 0 wants to meet it, and to run a program with it."""
    distributed.initialize()
    _, rows = line_of_devices()
    x = plait.device_put(np.ones(plait.device_count(), np.float32), rows)
    if plait.process_index() == 0:
        tell(
            met=error_of(lambda: multihost_utils.sync_global_devices("alone")),
            run=error_of(lambda: (x + 1).sum()),
        )


# ---- death -------------------------------------------------------------------------------------


def training(how, victim, on_loss="raise"):
    """Steps of training with two sums over all devices each, in which one process ends."""
    distributed.initialize(heartbeat_timeout_seconds=float(os.environ.get("SILENCE", "60")),
                           on_loss=on_loss)  # fmt: skip
    mesh, rows = line_of_devices()
    i, P = plait.process_index(), plait.P

    def local(w, x):
        y = pn.tanh(x @ w)
        return w - 0.1 * lax.pmean(x.T @ y, "x"), lax.pmean((y**2).sum(), "x")

    step = plait.jit(
        plait.shard_map(local, mesh=mesh, in_specs=(P(), P("x")), out_specs=(P(), P()))
    )
    rng = np.random.default_rng(0)
    x = plait.device_put(rng.normal(size=(8 * mesh.size, 16)).astype(np.float32), rows)
    w = plait.device_put(
        rng.normal(size=(16, 4)).astype(np.float32), plait.NamedSharding(mesh, P())
    )
    kept = None
    try:
        for k in range(10**6):
            begun = time.monotonic()
            w, loss = step(w, x)
            if k % 5 == 0:
                kept = np.asarray(w)
            if k == 12 and how == "goes on":
                tell(going=i)
            elif k == 12 and i == int(victim):
                ended(how)
                break
    except distributed.PeerLost as e:
        tell(
            index=i,
            peers=e.peers,
            names=e.names,
            text=str(e),
            where=e.where,
            waited=time.monotonic() - begun,
            kept=bool(np.isfinite(kept).all()),
        )
        again = error_of(lambda: step(w, x))
        tell(again=again[0])
        if how == "uncaught":
            raise
        sys.exit(0)  # which is no success: another process is lost


def ended(how):
    """The end of a process, or what looks like one."""
    if how in ("kill", "uncaught"):
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "quiet":
        os._exit(0)
    if how == "raise":
        raise ValueError("a bug in one process")
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)


def holding():
    """One process holds Python's lock in native code for longer than others bear silence."""
    import re

    distributed.initialize(heartbeat_timeout_seconds=1.0)
    multihost_utils.sync_global_devices("begun")
    began = time.monotonic()
    n = 20
    while plait.process_index() == 1 and time.monotonic() - began < 3:
        n += 1
        re.match("(a+)+$", "a" * n + "b")  # exponential, and it never lets go of the lock
    multihost_utils.sync_global_devices("ended")
    tell(held=time.monotonic() - began)


def forking():
    """A process dies whose forked child lives on."""
    distributed.initialize()
    multihost_utils.sync_global_devices("begun")  # or it might end the other's start
    if plait.process_index() == 1:
        if os.fork() == 0:
            os.close(1)  # whoever reads what we print must not wait for this process
            os.close(2)
            time.sleep(15)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    error = error_of(lambda: multihost_utils.sync_global_devices("never"))
    tell(error=error)


def unset():
    """A process dies, for whose value another one waits."""
    distributed.initialize()
    multihost_utils.sync_global_devices("begun")  # or it might end the other's start
    if plait.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    tell(error=error_of(lambda: distributed.key_value_get("never", 60)))


def first_ends():
    """Process 0 is through long before the others, which go on."""
    distributed.initialize()
    if plait.process_index() != 0:
        time.sleep(2)
        tell(total=float(pn.arange(5).sum()))


def without_coordinator():
    """The coordinator, a child of process 0, is killed."""
    distributed.initialize()
    multihost_utils.sync_global_devices("begun")
    if plait.process_index() == 0:
        from plait_sharding.distributed.world import current_world

        time.sleep(1)  # until the others have heard that all have met
        current_world().coordinator.kill()
    tell(error=error_of(lambda: [multihost_utils.sync_global_devices("never") for _ in range(9)]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
