"""Launchers: what their variables say, and the launchers themselves over several hosts.

The variables were read off runs of Open MPI 4.1, MPICH 4.0, SLURM 22.05 and torchrun 2.13; those of
Open MPI 5, Kubernetes, GKE, Kubeflow and JAX are those of their manuals.  Where a launcher is
installed, and hosts can be made, it is run.

Invariant: an address is right if all processes find each other with it, and each adds its number.
"""

import importlib.util
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from plait_sharding.distributed import DistributedError
from plait_sharding.distributed.launchers import Told, accelerators, detect, first_host


def beside(name):
    """A module of this folder, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hosts_module = beside("hosts")
Hosts, missing, until, PROGRAMS = (
    hosts_module.Hosts, hosts_module.missing, hosts_module.until, hosts_module.PROGRAMS
)  # fmt: skip

SLURM = {
    "SLURM_PROCID": "3", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "n[003-005,9]", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NODEID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x4)",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "prterun-h1-77@1",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
    "PMIX_SERVER_URI21": "prte.0;tcp4://127.0.0.1:4321",
}  # fmt: skip
HYDRA = {
    "PMI_RANK": "1", "PMI_SIZE": "3", "PMI_FD": "12", "MPI_LOCALNRANKS": "1",
    "MPI_LOCALRANKID": "0", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME": "h2",
}  # fmt: skip
TORCHRUN = {
    "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "m", "MASTER_PORT": "29500",
}  # fmt: skip
JOB = {"JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-2", "PLAIT_SERVICE": "train-svc"}
GKE = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "t-0.svc,t-1.svc,t-2.svc,t-3.svc"}
AGENT = {"TORCHELASTIC_RUN_ID": "none"}


@pytest.mark.parametrize(
    "environment, address, count, index, local, source",
    [
        (
            {"PLAIT_COORDINATOR_ADDRESS": "h:1", "PLAIT_NUM_PROCESSES": "4",
             "PLAIT_PROCESS_ID": "2", "SLURM_PROCID": "9", "SLURM_JOB_ID": "1"},
            "h:1", 4, 2, None, "PLAIT_PROCESS_ID",
        ),
        (SLURM, r"n003:\d+", 8, 3, 1, "SLURM"),
        (
            SLURM | {"PLAIT_COORDINATOR_ADDRESS": "h:1"},
            "h:1", 8, 3, 1, "SLURM",
        ),
        (OPEN_MPI, None, 2, 1, 0, "Open MPI"),
        (OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, r"127\.0\.0\.1:\d+", 2, 1, 0, "Open MPI"),
        (SLURM | OPEN_MPI, None, 2, 1, 0, "Open MPI"),
        (HYDRA, None, 3, 1, 0, "MPI"),
        (SLURM | HYDRA, None, 3, 1, 0, "MPI"),
        (
            SLURM | {"PMI_FD": "11", "PMI_JOBID": "77.0", "PMI_RANK": "3", "PMI_SIZE": "8"},
            r"n003:\d+", 8, 3, 1, "SLURM",
        ),
        (JOB | {"PLAIT_NUM_PROCESSES": "3"}, r"train-0\.train-svc:\d+", 3, 2, None, "Kubernetes"),
        (TORCHRUN | AGENT, r"m:\d+", 8, 5, 1, "torchrun"),
        (SLURM | TORCHRUN | AGENT, r"m:\d+", 8, 5, 1, "torchrun"),
        (JOB | TORCHRUN, r"m:\d+", 8, 5, 1, "RANK"),
        (SLURM | {"MASTER_ADDR": "m", "RANK": "3"}, r"n003:\d+", 8, 3, 1, "SLURM"),
        (
            {"JAX_COORDINATOR_ADDRESS": "h:1", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "2"},
            "h:1", 4, 2, None, "JAX_PROCESS_ID",
        ),
        (
            {"COORDINATOR_ADDRESS": "job-worker-0", "COORDINATOR_PORT": "6666",
             "NUM_PROCESSES": "4", "PROCESS_ID": "2"},
            "job-worker-0:6666", 4, 2, None, "PROCESS_ID",
        ),
        ({"NUM_PROCESSES": "4", "PROCESS_ID": "2"}, None, None, None, None, "nothing"),
        (
            JOB | {"PET_NNODES": "4", "PET_NODE_RANK": "2", "PET_MASTER_ADDR": "t-0.t",
                   "PET_MASTER_PORT": "29400"},
            r"t-0\.t:\d+", 4, 2, None, "Kubeflow",
        ),
        (GKE, r"t-0\.svc:\d+", 4, 1, None, "GKE"),
        (JOB | GKE, r"t-0\.svc:\d+", 4, 1, None, "GKE"),
        (
            GKE | {"MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1",
                   "MEGASCALE_COORDINATOR_ADDRESS": "s0-t-0.svc:8080"},
            r"s0-t-0\.svc:\d+", 8, 5, None, "GKE",
        ),
        ({"SLURM_PROCID": "0", "SLURM_JOB_ID": "77"}, None, None, None, None, "nothing"),
        ({}, None, None, None, None, "nothing"),
    ],
    ids=[
        "own", "slurm", "slurm_address", "openmpi", "openmpi_here", "openmpi_in_slurm", "hydra",
        "hydra_in_slurm", "slurm_pmi2", "kubernetes", "torchrun", "torchrun_in_slurm",
        "pytorchjob", "slurm_for_torch", "jax", "jaxjob", "not_jaxjob", "trainer", "gke",
        "gke_jobset", "gke_slices", "batch", "none",
    ],
)  # fmt: skip
def test_variables(environment, address, count, index, local, source):
    told = detect(environment)
    assert told.processes == count and told.number == index
    assert told.local == local and told.source == source
    if address is None:
        assert told.address is None
        assert (told.meet is not None) == (source in ("Open MPI", "MPI"))
    else:
        assert re.fullmatch(address, told.address)
        port = int(told.address.rpartition(":")[2])
        assert port == 1 or 1024 < port < 32768  # where connections do not take their ports
        assert detect(environment).address == told.address  # the same in every process


def test_processes_of_mpi_on_one_machine_have_an_address_without_an_exchange():
    alone = detect(HYDRA | {"PMI_SIZE": "1", "PMI_FD": "none"})
    assert re.fullmatch(r"127\.0\.0\.1:\d+", alone.meet(5.0))
    assert detect(HYDRA | {"PMI_FD": "none"}).meet(5.0) is None


@pytest.mark.parametrize(
    "environment, ids",
    [
        (SLURM, [1]),
        (SLURM | {"SLURM_STEP_TASKS_PER_NODE": "1(x8)", "SLURM_LOCALID": "0"}, None),
        (SLURM | {"CUDA_VISIBLE_DEVICES": "0,1"}, [1]),
        (SLURM | {"CUDA_VISIBLE_DEVICES": "0"}, None),
        (SLURM | {"CUDA_VISIBLE_DEVICES": "2,3", "SLURM_GPUS_PER_TASK": "2"}, None),
        (SLURM | {"JAX_LOCAL_DEVICE_IDS": "2,3"}, [2, 3]),
        (OPEN_MPI, None),
        (OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, [0]),
        (HYDRA, None),
        (TORCHRUN, [1]),
        (TORCHRUN | {"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}, None),
        (TORCHRUN | {"PLAIT_PROCESS_ID": "0"}, None),
        (GKE, None),
    ],
)
def test_one_process_of_a_machine_takes_all_its_accelerators(environment, ids):
    assert accelerators(detect(environment), environment) == ids


@pytest.mark.parametrize(
    "environment, text",
    [
        (TORCHRUN | {"WORLD_SIZE": "two"}, "WORLD_SIZE.*'two'"),
        ({"JAX_PROCESS_ID": "-1"}, "JAX_PROCESS_ID.*'-1'"),
        ({"PLAIT_LOCAL_DEVICE_IDS": "all"}, "PLAIT_LOCAL_DEVICE_IDS.*'all'"),
    ],
)
def test_a_launcher_that_says_nonsense(environment, text):
    with pytest.raises(DistributedError, match=text):
        detect(environment)


def test_what_is_given_first_stays():
    told = Told("h:1", None, None).filled(detect(TORCHRUN | AGENT))
    assert told[:4] == ("h:1", 8, 5, 1)
    assert Told(None, None, 4).filled(detect(TORCHRUN | AGENT)).local is None


@pytest.mark.parametrize(
    "nodes, first",
    [
        ("a", "a"),
        ("a1,a2", "a1"),
        ("n[3-5]", "n3"),
        ("n[003,7],m1", "n003"),
        ("r[1-2]c[07-9]-x,q", "r1c07-x"),
    ],
)
def test_lists_of_nodes(nodes, first):
    assert first_host(nodes) == first


# ---- launchers that are run over hosts ---------------------------------------------------------


def needs(*programs):
    """Skip where hosts cannot be made or a launcher is not installed."""
    lacking = missing(*programs)
    if lacking:
        pytest.skip(lacking)


def have_found_each_other(told, where):
    """Assert that the processes ran on these hosts, in the order of their numbers, together."""
    assert [t["index"] for t in told] == list(range(len(where)))
    assert [t["host"] for t in told] == where
    assert {t["count"] for t in told} == {len(where)}
    assert {t["sum"] for t in told} == {sum(range(1, len(where) + 1))}
    assert not any(t["own"].startswith("127.") for t in told)


FOUND = (sys.executable, PROGRAMS, "found")
ENV = {"PLAIT_CPU_DEVICES": "1", "SECONDS": "60"}


@pytest.mark.timeout(200)
def test_hosts_that_know_process_0_by_its_name():
    """Each host gives its own name a loopback address, where no other can reach it."""
    needs()
    with Hosts(3) as hosts:
        where = ["a2", "a3", "a1"]
        told = {"PLAIT_COORDINATOR_ADDRESS": "a2:15001", "PLAIT_NUM_PROCESSES": "3"}
        running = [
            hosts.start(host, *FOUND, PLAIT_PROCESS_ID=str(i), **told, **ENV)
            for i, host in enumerate(where)
        ]
        ended = [hosts.end(child) for child in running]
    assert [code for code, _, _ in ended] == [0, 0, 0], ended
    have_found_each_other([t for _, told, _ in ended for t in told], where)


@pytest.mark.wide
@pytest.mark.timeout(300)
@pytest.mark.parametrize("each", [1, 2])
def test_the_command_with_hosts(each):
    needs()
    with Hosts(3) as hosts:
        launch = (sys.executable, "-m", "plait_sharding.launch", "--ssh", hosts.agent, "--tag")
        there = ("--hosts", "a2,a3", "-n", 2 * each)
        code, told, text = hosts.run("a1", *launch, *there, *FOUND[1:], **ENV)
        assert code == 0, text
        have_found_each_other(told, ["a2"] * each + ["a3"] * each)


@pytest.mark.wide
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["raise", "killed"])
def test_nothing_stays_on_hosts(how):
    """A failure of one process gives its code; the end of the command ends all processes."""
    needs()
    with Hosts(2) as hosts:
        launch = (sys.executable, "-m", "plait_sharding.launch", "--ssh", hosts.agent)
        program = (PROGRAMS, "training", "raise" if how == "raise" else "none", 1)
        child = hosts.start("a1", *launch, "--hosts", "a1,a2", *program, **ENV)
        if how == "raise":
            code, _, text = hosts.end(child)
            assert code == 1 and "a bug in one process" in text
        else:
            assert until(lambda: hosts.runs("a2", "pulse.py"), 60.0)
            os.killpg(child.pid, signal.SIGKILL)
        assert until(lambda: not hosts.processes("a2"), 30.0)


OPEN = ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe")
MPICH = ("mpirun.mpich", "-launcher", "ssh")


@pytest.mark.wide
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mpi", ["", "before", "after"])
def test_open_mpi(mpi):
    """`mpirun` runs on another host than process 0; a program may use MPI itself, too."""
    needs("mpirun.openmpi")
    with Hosts(3) as hosts:
        there = ("--mca", "plm_rsh_agent", hosts.agent, "-H", "a2:2,a3:1", "-n", 3)
        code, told, text = hosts.run(
            "a1", *OPEN, *there, *FOUND, *filter(None, [mpi]), MPI_LIBRARY="libmpi.so.40", **ENV
        )
    assert code == 0, text
    have_found_each_other(told, ["a2", "a2", "a3"])
    assert {t["mpi"] for t in told} == {0 if mpi else None}


@pytest.mark.wide
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mpi", ["", "before", "after"])
def test_mpich(mpi):
    needs("mpirun.mpich")
    with Hosts(3) as hosts:
        there = ("-launcher-exec", hosts.agent, "-hosts", "a2,a3", "-n", 3)
        code, told, text = hosts.run(
            "a1", *MPICH, *there, *FOUND, *filter(None, [mpi]), MPI_LIBRARY="libmpich.so.12", **ENV
        )
    assert code == 0, text
    have_found_each_other(told, ["a2", "a3", "a2"])
    assert {t["mpi"] for t in told} == {0 if mpi else None}


CLUSTER = """ClusterName=plait
SlurmctldHost={head}({address})
AuthType=auth/munge
AuthInfo=socket={folder}/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def slurm(hosts):
    """Start SLURM on hosts; return the variables that its commands need."""
    folder = hosts.folder
    (folder / "state").mkdir()
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    nodes = "\n".join(
        f"NodeName={n} NodeAddr={a} CPUs=8 RealMemory=500" for n, a in hosts.addresses.items()
    )
    head = hosts.names[0]
    text = CLUSTER.format(folder=folder, head=head, address=hosts.addresses[head], nodes=nodes)
    conf = folder / "slurm.conf"
    conf.write_text(text)
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    env = {"SLURM_CONF": str(conf)}
    hosts.start(
        head, "munged", "--foreground", "--force", f"--key-file={folder}/key",
        f"--socket={folder}/munge", f"--pid-file={folder}/munge.pid",
        f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed",
    )  # fmt: skip
    assert until((folder / "munge").exists)
    hosts.start(head, "slurmctld", "-D", "-c", "-f", conf, **env)
    for name in hosts.names:
        hosts.start(name, "slurmd", "-D", "-N", name, "-f", conf, **env)
    idle = ("sinfo", "-h", "-o", "%T %D")
    if not until(lambda: hosts.run(head, *idle, **env)[2].strip() == f"idle {len(hosts.names)}"):
        pytest.skip(f"SLURM does not start here: {hosts.run(head, *idle, **env)[2]}")
    return env


@pytest.mark.wide
@pytest.mark.timeout(400)
def test_slurm():
    """srun in its ways, with a job of two parts, and both kinds of `mpirun` in an allocation."""
    needs("slurmctld", "slurmd", "srun", "munged")
    with Hosts(3) as hosts:
        env = slurm(hosts) | ENV
        code, told, text = hosts.run("a1", "srun", "-N3", "-n4", *FOUND, **env)
        assert code == 0, text
        have_found_each_other(told, ["a1", "a1", "a2", "a3"])

        order = hosts.folder / "order"
        order.write_text("a3\na1\na2\na3\n")
        code, told, text = hosts.run(
            "a1", "srun", "-m", "arbitrary", "-n4", *FOUND, **env, SLURM_HOSTFILE=str(order)
        )
        assert code == 0, text
        assert told[0]["host"] == "a3" and {t["sum"] for t in told} == {10.0}

        parts = ("salloc", "-N1", "-n1", ":", "-N2", "-n2", "srun", "--het-group=0,1")
        code, told, text = hosts.run("a1", *parts, *FOUND, **env)
        assert code == 0, text
        have_found_each_other(told, ["a1", "a2", "a3"])

        inside = ("salloc", "-N3", "-n3")
        for program, options in ((OPEN, ("-H", "a2:1,a3:1")), (MPICH[:1], ("-hosts", "a2,a3"))):
            if shutil.which(program[0]):
                command = (*inside, *program, *options, "-n", 2, *FOUND)
                code, told, text = hosts.run("a1", *command, **env)
                assert code == 0, text
                have_found_each_other(told, ["a2", "a3"])


@pytest.mark.wide
@pytest.mark.timeout(300)
def test_torchrun():
    needs("torchrun")
    with Hosts(2) as hosts:
        command = (
            "torchrun", "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d",
            "--rdzv-endpoint=a2:29400", *FOUND[1:],
        )  # fmt: skip
        running = [hosts.start(host, *command, **ENV) for host in ("a1", "a2")]
        ended = [hosts.end(child) for child in running]
    told = sorted((t for _, each, _ in ended for t in each), key=lambda t: t["index"])
    assert {t["sum"] for t in told} == {10.0} and len({t["host"] for t in told}) == 2, ended


# ---- what a lost process, and a lost host, look like to the others -----------------------------


def by_hand(hosts, *program, **env):
    told = {"PLAIT_COORDINATOR_ADDRESS": "a1:15001", "PLAIT_NUM_PROCESSES": "3"}
    each = enumerate(hosts.names)
    return [hosts.start(n, *program, PLAIT_PROCESS_ID=str(i), **told, **env) for i, n in each]


def by_launch(hosts, _, *program, **env):
    launch = (sys.executable, "-m", "plait_sharding.launch", "--ssh", hosts.agent)
    return [hosts.start("a1", *launch, "--hosts", "a1,a2,a3", *program, **env)]


def by_open_mpi(hosts, *program, **env):
    there = ("--mca", "plm_rsh_agent", hosts.agent, "-H", "a2,a3", "-n", 2)
    return [hosts.start("a1", *OPEN, *there, *program, **env)]


def by_mpich(hosts, *program, **env):
    there = ("-launcher-exec", hosts.agent, "-hosts", "a2,a3", "-n", 2)
    return [hosts.start("a1", *MPICH, *there, *program, **env)]


def by_slurm(hosts, *program, **env):
    return [hosts.start("a1", "srun", "-N3", "-n3", *program, **slurm(hosts), **env)]


def by_torchrun(hosts, _, *program, **env):
    command = (
        "torchrun", "--nnodes=3", "--nproc-per-node=1", "--rdzv-backend=c10d",
        "--rdzv-endpoint=a1:29400", "--max-restarts=0", *program,
    )  # fmt: skip
    return [hosts.start(name, *command, **env) for name in hosts.names]


WAYS = {
    "own variables": (by_hand,),
    "launch": (by_launch,),
    "Open MPI": (by_open_mpi, "mpirun.openmpi"),
    "MPICH": (by_mpich, "mpirun.mpich"),
    "SLURM": (by_slurm, "slurmctld", "slurmd", "srun", "munged"),
    "torchrun": (by_torchrun, "torchrun"),
}


LOSSES = {
    "process": ("kill", "its connection closed"),
    "frozen": ("stop", "it has said nothing for"),
    "host": ("goes on", "it has said nothing for"),
}
"""For each kind of loss, the act of process 1 and the text of the others' errors."""
SILENCE = 10.0


@pytest.mark.wide
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", LOSSES)
@pytest.mark.parametrize("way", WAYS)
def test_others_hear_of_what_is_lost(way, what):
    """Kill or stop process 1, or cut host a3 off: the others have PeerLost in time."""
    start, *programs = WAYS[way]
    needs(*programs)
    how, why = LOSSES[what]
    env = ENV | {"SILENCE": str(SILENCE), "PYTHONUNBUFFERED": "1"}
    with Hosts(3) as hosts:
        running = start(hosts, sys.executable, PROGRAMS, "training", how, 1, **env)
        count = 2 if "MPI" in way else 3
        if what != "process":
            everything = lambda: "".join(map(hosts.said, running))  # noqa: E731
            if what == "host":
                assert until(lambda: everything().count('"going"') == count, 90.0), everything()
                hosts.unplug("a3")
            # what starts processes may wait for the lost one for ever; what others said is here
            assert until(lambda: everything().count('"again"') >= count - 1, 90.0), everything()
        ended = [hosts.end(child, 90.0 if what == "process" else 1.0) for child in running]
    gone = count - 1 if what == "host" else 1
    lost = [t for _, told, _ in ended for t in told if "peers" in t and t["index"] != gone]
    texts = [text for _, _, text in ended]
    if "MPI" in way and what == "process" and not lost:
        # mpirun ends the others when one ends; it may be before they say what they heard
        assert all(code != 0 for code, _, _ in ended), texts
        return
    assert lost and all(t["peers"] == [gone] for t in lost), texts
    assert all(why in t["text"] for t in lost), texts
    assert "MPI" in way or len(lost) == count - 1, texts  # which ends the others itself
    print(way, what, [round(t["waited"], 1) for t in lost], [code for code, _, _ in ended])
