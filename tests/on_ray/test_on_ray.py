"""Training on a real Ray cluster of this machine, whose workers and machines are killed.

Invariant: losses are compared with those of a loop of numpy, which is never interrupted; no actor
and no reservation is left when `on_ray` has returned.
"""

import functools
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

os.environ["RAY_AUTH_MODE"] = "disabled"  # no token is written to the home of who tests
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

import plait  # noqa: E402
from plait.errors import PlaitError  # noqa: E402
from plait_sharding.distributed import DistributedError  # noqa: E402

spec = importlib.util.spec_from_file_location(
    "elastic_losses", Path(__file__).parents[1] / "elastic_losses.py"
)
elastic_losses = importlib.util.module_from_spec(spec)
spec.loader.exec_module(elastic_losses)
SCRIPT, example, follows, losses = (
    elastic_losses.SCRIPT, elastic_losses.example, elastic_losses.follows, elastic_losses.losses
)  # fmt: skip
STEPS = 22
pytestmark = [pytest.mark.timeout(400), pytest.mark.filterwarnings("default")]
ENV = {"env_vars": {"PLAIT_CPU_DEVICES": "2"}}
on_ray = plait.distributed.on_ray


def started(attempts=4):
    """A cluster of two machines: one with room for two workers, and one for a third.

    Ray gives its own processes 15 seconds to start, which a busy machine exceeds.
    """
    made = Cluster()
    try:
        made.add_node(num_cpus=2, resources={"seat": 2}, include_dashboard=False)
        made.other = made.add_node(num_cpus=1, resources={"seat": 1})
    except Exception:
        made.shutdown()
        if attempts == 1:
            raise
        return started(attempts - 1)
    return made


@pytest.fixture(scope="module")
def cluster():
    made = started()
    ray.init(address=made.address, log_to_driver=False)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def curve():
    """The losses of a run that nothing interrupts."""
    return losses(STEPS)


def nothing_is_left():
    """Return whether all that was reserved is free again."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if ray.available_resources().get("seat") == ray.cluster_resources().get("seat"):
            return True
        time.sleep(0.2)
    return False


def trained(root, victim, seconds=0.0, end=signal.SIGKILL):
    """Train in an actor; process `victim` ends once, when the checkpoint of step 12 is whole."""
    # A process that is frozen is lost after as many seconds, and not after a minute.
    soon = functools.partial(plait.distributed.initialize, heartbeat_timeout_seconds=5)
    plait.distributed.initialize = soon

    def after(step):
        if seconds:
            time.sleep(seconds)
        mark = root / "mark"
        if step == 13 and plait.process_index() == victim and not mark.exists():
            mark.write_text(f"{os.getpid()}")
            while not (root / "00000012").exists():  # it is written meanwhile
                time.sleep(0.02)
            os.kill(os.getpid(), end)

    return example().train(root, STEPS, after)


def test_a_worker_that_is_killed(cluster, curve, tmp_path):
    """Its place is free again, so that all come back: from step 12, whose checkpoint is whole."""
    each = on_ray(trained, tmp_path, 1, workers=3, resources={"CPU": 1, "seat": 1}, runtime_env=ENV)
    assert (tmp_path / "mark").exists()
    assert follows(tmp_path, curve) == ([3], [*range(14), *range(12, STEPS)])
    assert [len(losses) for losses in each] == [STEPS - 12] * 3
    assert nothing_is_left()


def test_a_worker_that_is_frozen(cluster, curve, tmp_path):
    """The others miss its signs of life, and it is ended with them."""
    began = time.monotonic()
    reserved = {"workers": 3, "resources": {"CPU": 1, "seat": 1}, "runtime_env": ENV}
    on_ray(trained, tmp_path, 1, 0.0, signal.SIGSTOP, **reserved)
    assert follows(tmp_path, curve) == ([3], [*range(14), *range(12, STEPS)])
    assert nothing_is_left()
    frozen = int((tmp_path / "mark").read_text())
    assert not Path(f"/proc/{frozen}").exists()
    print(f"after {time.monotonic() - began:.0f} s")


def without_joining():
    return 7


def with_a_bug(root):
    plait.distributed.initialize()
    with open(root / f"{plait.process_index()}", "a", encoding="utf-8") as file:
        file.write("begun\n")
    plait.experimental.multihost_utils.sync_global_devices("begun")
    if plait.process_index() == 1:
        raise ValueError("a bug in one process")
    plait.experimental.multihost_utils.sync_global_devices("never")


def test_a_bug_is_raised_once(cluster, tmp_path):
    with pytest.raises(ValueError, match="a bug in one process"):
        on_ray(with_a_bug, tmp_path, workers=2, resources={"seat": 1})
    assert [(tmp_path / f"{i}").read_text() for i in range(2)] == ["begun\n"] * 2
    assert nothing_is_left()


def test_a_function_that_does_not_join_is_refused(cluster):
    with pytest.raises(DistributedError, match=r"did not join.*(?s:.)*initialize\(\)"):
        on_ray(without_joining, workers=2, resources={"seat": 1})
    assert on_ray(without_joining, workers=1) == [7]


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def waits(root):
    """Wait for a process that is killed, and bear its loss."""
    plait.distributed.initialize()
    again = (root / "end").exists()
    plait.experimental.multihost_utils.sync_global_devices("begun")
    if again:
        return
    if plait.process_index() == 1:
        (root / "end").write_text("now")
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        plait.experimental.multihost_utils.sync_global_devices("never")
    except plait.distributed.PeerLost as e:
        (root / "lost").write_text(str(e.peers))
        sys.exit(0)  # which is not a success: another process is lost


def test_a_loss_that_the_function_catches_is_one(cluster, tmp_path):
    assert on_ray(waits, tmp_path, workers=2, resources={"seat": 1}) == [None, None]
    assert (tmp_path / "lost").read_text() == "(1,)"


def test_there_is_an_end_of_restarts(cluster):
    with pytest.raises(DistributedError, match="lost workers 2 times, and max_failures is 1"):
        on_ray(dies, workers=1, max_failures=1)
    assert nothing_is_left()


def test_more_than_the_cluster_has(cluster):
    with pytest.raises(DistributedError, match=r"room for 4 workers.* 3 seat in all") as e:
        on_ray(without_joining, workers=4, resources={"seat": 1}, start_timeout=2)
    assert isinstance(e.value, PlaitError) and e.value.fix
    assert nothing_is_left()


def test_a_script_by_the_command(cluster, curve, tmp_path):
    command = [sys.executable, "-m", "plait_sharding.ray", "-n", 2, "--resources", "CPU=1,seat=1"]
    environment = os.environ | {"RAY_ADDRESS": cluster.address}
    done = subprocess.run(
        [*map(str, command), SCRIPT.name, tmp_path, str(STEPS)],
        capture_output=True, text=True, timeout=200, env=environment, cwd=SCRIPT.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert follows(tmp_path, curve)[0] == [2]
