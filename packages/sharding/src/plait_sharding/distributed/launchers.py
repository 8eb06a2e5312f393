"""The place of this process among several, read from the launcher's environment variables.

Variables that state a place come first, and fill each other's gaps: our own, JAX's, those of
Kubeflow's JAXJob.  Gaps that remain are filled by one launcher, the innermost that is recognised:
`torchrun` or `mpirun` started by SLURM gives other numbers than SLURM, and theirs count.

Invariant: `detect` reads the environment only.  A launcher whose variables hold no address leaves
it None, and gives `meet`, which exchanges it through the launcher.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from . import process_managers
from .failures import DistributedError

__all__ = [
    "ADDRESS", "COUNT", "INDEX", "LAUNCHED", "LOCAL_IDS", "Told", "accelerators", "detect",
    "first_host",
]  # fmt: skip

ADDRESS, COUNT, INDEX = "PLAIT_COORDINATOR_ADDRESS", "PLAIT_NUM_PROCESSES", "PLAIT_PROCESS_ID"
LOCAL_IDS = "PLAIT_LOCAL_DEVICE_IDS"
LAUNCHED = "PLAIT_COORDINATOR_RUNS"
"""Set if the launcher of the processes has also started the coordinator."""
_LOWEST, _PORTS = 10240, 16384
"""The lowest port, and the number of ports, to choose from if the launcher gives none.  They lie
below the ports that outgoing connections take."""

Environment = Mapping[str, str]


class Told(NamedTuple):
    """The values that a launcher gives this process; None for those it does not give.

    Attributes:
      address: "host:port" of the coordinator.
      processes, number: how many processes there are, and the number of this one.
      local, locals: the same, among the processes of this machine.
      ids: numbers of the accelerators that this process drives.
      source: the name of the launcher.
      meet: exchanges the address of process 0 within some seconds, where `address` is None; every
        process has to call it.
    """

    address: str | None = None
    processes: int | None = None
    number: int | None = None
    local: int | None = None
    locals: int | None = None
    ids: tuple[int, ...] | None = None
    source: str = "nothing"
    meet: Callable[[float], str | None] | None = None

    @property
    def whole(self) -> bool:
        """True if a process with these values can join."""
        return None not in (self.address, self.processes, self.number)

    def filled(self, other: "Told") -> "Told":
        """Return these values, with those of `other` in the gaps."""
        if self.number is not None and other.number != self.number:
            other = other._replace(local=None, locals=None)  # it numbers processes in another way
        missing = {k: v for k, v in other._asdict().items() if getattr(self, k) is None}
        source = other.source if self.number is None else self.source
        return self._replace(**missing, source=source)


def detect(environment: Environment = os.environ) -> Told:
    """Return the values that the environment gives this process.

    Raises DistributedError for a variable that should be a number and is not.
    """
    found = Told()
    for ask in _STATED:
        found = found.filled(ask(environment))
    for ask in () if found.whole else _LAUNCHERS:
        told = ask(environment)
        if told is not None:
            return found.filled(told)
    return found


def accelerators(told: Told, environment: Environment = os.environ) -> list[int] | None:
    """Return the numbers of the accelerators that this process drives; None for all it can see.

    Of several processes on a machine each drives the one of its number there, unless the launcher
    shows each its own.
    """
    if told.ids is not None:
        return list(told.ids)
    if told.local is None or told.locals == 1:
        return None
    if any(name in environment for name in _PER_TASK):
        return None
    seen = next((environment[name] for name in _VISIBLE if name in environment), None)
    if seen is not None and len(seen.split(",")) < (told.locals or told.local + 1):
        return None  # too few for all processes of this machine: the launcher has divided them
    return [told.local]


_PER_TASK = ("SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def _number(environment: Environment, *names: str) -> int | None:
    """Return the first of these variables that is set, as a number."""
    for name in names:
        text = environment.get(name)
        if text is None:
            continue
        if not text.strip().isdecimal():
            raise DistributedError(
                f"expected a number in the environment variable {name}, got {text!r}",
                fix="mend it, or give plait.distributed.initialize its arguments",
            )
        return int(text)
    return None


def _port(seed: str) -> int:
    """Return a port that is the same in all processes of a job, and rarely that of another job."""
    return _LOWEST + sum(b * 31**k for k, b in enumerate(seed.encode())) % _PORTS


def _with_port(host: str | None, port: int | str) -> str | None:
    if host is None or re.search(r"(\]|^[^:]*):\d+$", host):
        return host
    return f"[{host.strip('[]')}]:{port}" if ":" in host else f"{host}:{port}"


# ---- variables that state a place --------------------------------------------------------------


def _stated(env: Environment, prefix: str) -> Told:
    """Read the variables of this prefix."""
    address, names = env.get(f"{prefix}COORDINATOR_ADDRESS"), ("NUM_PROCESSES", "PROCESS_ID")
    count, index = (_number(env, prefix + name) for name in names)
    text = env.get(f"{prefix}LOCAL_DEVICE_IDS")
    if text is not None and not re.fullmatch(r"\d+(,\d+)*", text):
        raise DistributedError(
            f"expected numbers with commas between in the environment variable "
            f"{prefix}LOCAL_DEVICE_IDS, got {text!r}",
            fix="write for instance 0,1",
        )
    ids = None if text is None else tuple(map(int, text.split(",")))
    if (address, count, index, ids) == (None, None, None, None):
        return Told()
    port = env.get(f"{prefix}COORDINATOR_PORT", _LOWEST)
    return Told(_with_port(address, port), count, index, ids=ids, source=f"{prefix}PROCESS_ID")


def _own(env: Environment) -> Told:
    return _stated(env, "PLAIT_")


def _jax(env: Environment) -> Told:
    return _stated(env, "JAX_")


def _jax_job(env: Environment) -> Told:
    """Read Kubeflow's JAXJob, whose variables have no prefix: all of them, or none."""
    needed = ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")
    return _stated(env, "") if all(name in env for name in needed) else Told()


_STATED: tuple[Callable[[Environment], Told], ...] = (_own, _jax, _jax_job)


# ---- launchers ---------------------------------------------------------------------------------


def _torchrun(env: Environment) -> Told | None:
    """Read torchrun: https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables"""
    return _torch(env, "torchrun") if "TORCHELASTIC_RUN_ID" in env else None


def _torch(env: Environment, source: str = "RANK") -> Told | None:
    """Read the variables of PyTorch, which torchrun and Kubeflow's PyTorchJob set.

    PyTorch's own store listens at MASTER_PORT, so another port is chosen.
    """
    if "RANK" not in env or "MASTER_ADDR" not in env:
        return None
    return Told(
        f"{env['MASTER_ADDR']}:{_port(str(_number(env, 'MASTER_PORT')))}",
        _number(env, "WORLD_SIZE"),
        _number(env, "RANK"),
        _number(env, "LOCAL_RANK"),
        _number(env, "LOCAL_WORLD_SIZE"),
        source=source,
    )


def _torch_nodes(env: Environment) -> Told | None:
    """Read what Kubeflow gives torchrun, where a container runs one process without it."""
    if "PET_NODE_RANK" not in env or "PET_MASTER_ADDR" not in env:
        return None
    seed = str(_number(env, "PET_MASTER_PORT"))
    return Told(
        f"{env['PET_MASTER_ADDR']}:{_port(seed)}",
        _number(env, "PET_NNODES"),
        _number(env, "PET_NODE_RANK"),
        source="Kubeflow",
    )


def _open_mpi(env: Environment) -> Told | None:
    """Read Open MPI: https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html

    Of the addresses in its variables one is that of `mpirun`, which need not run where process 0
    does, and another that of a daemon on this machine.  So the processes exchange the address.
    """
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    count = _number(env, "OMPI_COMM_WORLD_SIZE")
    number = _number(env, "OMPI_COMM_WORLD_RANK")
    here = _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE")
    port = _port(env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid") or "0")
    head = process_managers.head_of_open_mpi(env)
    return Told(
        f"127.0.0.1:{port}" if here is not None and here == count else None,
        count,
        number,
        _number(env, "OMPI_COMM_WORLD_LOCAL_RANK"),
        here,
        source="Open MPI",
        meet=lambda seconds: (
            process_managers.through_pmix(number, head, port, seconds) or _with_port(head, port)
        ),
    )


def _hydra(env: Environment) -> Told | None:
    """Read Hydra, which starts the processes of MPICH, Intel MPI and others.

    SLURM's own PMI sets the same numbers without those of this machine, and gives an address.
    """
    return _mpi(env) if "MPI_LOCALNRANKS" in env else None


def _mpi(env: Environment) -> Told | None:
    """Read PMI, whose variables hold no address: the processes exchange it."""
    if "PMI_RANK" not in env or "PMI_SIZE" not in env:
        return None
    count, here = _number(env, "PMI_SIZE"), _number(env, "MPI_LOCALNRANKS")
    alone = here is not None and here == count
    name = "127.0.0.1" if alone else env.get("MPIR_CVAR_CH3_INTERFACE_HOSTNAME")
    fallback = f"127.0.0.1:{_port(env.get('PMI_PORT', '') + env.get('PMI_ID', 'mpi'))}"
    return Told(
        None,
        count,
        _number(env, "PMI_RANK"),
        _number(env, "MPI_LOCALRANKID"),
        here,
        source="MPI",
        meet=lambda seconds: (
            process_managers.through_pmi(env, name, seconds) or (fallback if alone else None)
        ),
    )


def _slurm(env: Environment) -> Told | None:
    """Read SLURM: https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES"""
    if "SLURM_PROCID" not in env or "SLURM_JOB_ID" not in env:
        return None
    count = _number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    if nodes is None or "SLURM_STEP_ID" not in env or count is None:
        return None  # a batch script outside of srun, whose process is the only one
    seed = env["SLURM_JOB_ID"] + "." + env["SLURM_STEP_ID"]
    host = first_host(nodes)
    if env.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        host = _first_line(env.get("SLURM_HOSTFILE", ""))  # the list of nodes is sorted
    each = _tasks(env.get("SLURM_STEP_TASKS_PER_NODE", ""))
    node = _number(env, "SLURM_NODEID")
    return Told(
        _with_port(host, _port(seed)),
        count,
        _number(env, "SLURM_PROCID"),
        _number(env, "SLURM_LOCALID"),
        each[node] if node is not None and node < len(each) else None,
        source="SLURM",
    )


def _tasks(text: str) -> list[int]:
    """Return the number of tasks of each node.

    >>> _tasks("2(x3),1")
    [2, 2, 2, 1]
    """
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(tasks) for tasks, times in found for _ in range(int(times or 1))]


def _first_line(path: str) -> str | None:
    """Return the first word of a file, or None if the file is missing here."""
    try:
        return (Path(path).read_text(encoding="utf-8").split() or [None])[0] if path else None
    except OSError:
        return None


def _tpu(env: Environment) -> Told | None:
    """Read the workers of a TPU slice, and the slices of a multislice, which GKE lists:
    https://cloud.google.com/kubernetes-engine/docs/concepts/tpus"""
    if "TPU_WORKER_HOSTNAMES" not in env or "TPU_WORKER_ID" not in env:
        return None
    workers = env["TPU_WORKER_HOSTNAMES"].split(",")
    slices = _number(env, "MEGASCALE_NUM_SLICES") or 1
    mine = (_number(env, "MEGASCALE_SLICE_ID") or 0) * len(workers)
    head = env.get("MEGASCALE_COORDINATOR_ADDRESS") if slices > 1 else None
    host = re.sub(r":\d+$", "", head) if head else workers[0]  # the port there is taken
    number = _number(env, "TPU_WORKER_ID")
    return Told(
        _with_port(host.strip(), _LOWEST),
        len(workers) * slices,
        None if number is None else mine + number,
        source="GKE",
    )


def _kubernetes(env: Environment) -> Told | None:
    """Read an indexed Job: https://kubernetes.io/docs/tasks/job/indexed-parallel-processing-static

    The environment has the number of a pod; its host name is that of the Job, a hyphen and the
    number.
    """
    if "JOB_COMPLETION_INDEX" not in env:
        return None
    job, _, number = env.get("HOSTNAME", "").rpartition("-")
    service = env.get("PLAIT_SERVICE") or env.get("JOB_SERVICE")
    plain = job if number == env["JOB_COMPLETION_INDEX"] else ""
    host = f"{plain}-0.{service}" if plain and service else f"{plain}-0" if plain else None
    return Told(
        f"{host}:{_LOWEST}" if host else None,
        _number(env, "JOB_COMPLETIONS"),
        _number(env, "JOB_COMPLETION_INDEX"),
        source="Kubernetes",
    )


_LAUNCHERS: tuple[Callable[[Environment], Told | None], ...] = (
    _torchrun,
    _open_mpi,
    _hydra,
    _slurm,
    _mpi,
    _tpu,
    _torch,
    _torch_nodes,
    _kubernetes,
)


def first_host(nodes: str) -> str:
    """Return the first machine of SLURM's list of nodes.

    >>> first_host("rack[003-005,9]-a,login1"), first_host("a1,a2")
    ('rack003-a', 'a1')
    """
    out, rest = "", nodes
    while True:
        found = re.match(r"([^\[,]*)\[([^\]]*)\]", rest)
        if found is None:
            return out + rest.split(",")[0]
        out += found.group(1) + re.split(r"[,-]", found.group(2))[0]
        rest = rest[found.end() :]
