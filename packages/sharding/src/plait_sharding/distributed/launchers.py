"""The number of this process among several, read from the launcher's environment variables.

They are read in this order: our own variables, SLURM, Open MPI, other MPIs, an indexed Job of
Kubernetes, torchrun.

Invariant: only the environment is read; no launcher is contacted.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .failures import DistributedError

__all__ = ["ADDRESS", "COUNT", "INDEX", "LAUNCHED", "Told", "detect", "first_host"]

ADDRESS, COUNT, INDEX = "PLAIT_COORDINATOR_ADDRESS", "PLAIT_NUM_PROCESSES", "PLAIT_PROCESS_ID"
LAUNCHED = "PLAIT_COORDINATOR_RUNS"
"""Set if the launcher of the processes has also started the coordinator."""
_LOWEST, _PORTS = 10240, 16384
"""The lowest port, and the number of ports, to choose from if the launcher gives none.  They lie
below the ports that outgoing connections take."""

Environment = Mapping[str, str]


class Told(NamedTuple):
    """The values that a launcher gives this process; None for those it does not give."""

    address: str | None = None
    processes: int | None = None
    number: int | None = None
    local: int | None = None
    source: str = "nothing"


def detect(environment: Environment = os.environ) -> Told:
    """Return the values of the first launcher that is recognised.

    Raises DistributedError for a variable that should be a number and is not.
    """
    for ask in _LAUNCHERS:
        told = ask(environment)
        if told is not None:
            return told
    return Told()


def _number(environment: Environment, *names: str) -> int | None:
    """Return the first of these variables that is set, as a number."""
    for name in names:
        text = environment.get(name)
        if text is None:
            continue
        if not text.strip().isdecimal():
            raise DistributedError(
                f"the variable {name} of the environment is {text!r}, and no number",
                fix="mend it, or give plait.distributed.initialize its arguments",
            )
        return int(text)
    return None


def _port(seed: str) -> int:
    """Return a port that is the same in all processes of a job, and rarely that of another job."""
    return _LOWEST + sum(b * 31**k for k, b in enumerate(seed.encode())) % _PORTS


def _own(env: Environment) -> Told | None:
    if ADDRESS not in env and INDEX not in env:
        return None
    return Told(env.get(ADDRESS), _number(env, COUNT), _number(env, INDEX), None, ADDRESS)


def _slurm(env: Environment) -> Told | None:
    """Read SLURM: https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES"""
    if "SLURM_PROCID" not in env or "SLURM_JOB_ID" not in env:
        return None
    count = _number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    if nodes is None or "SLURM_STEP_ID" not in env or count is None:
        return None  # a batch script outside of srun, whose process is the only one
    seed = env["SLURM_JOB_ID"] + "." + env["SLURM_STEP_ID"]
    address = f"{first_host(nodes)}:{_port(seed)}"
    return Told(
        address, count, _number(env, "SLURM_PROCID"), _number(env, "SLURM_LOCALID"), "SLURM"
    )


def _open_mpi(env: Environment) -> Told | None:
    """Read Open MPI: https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html"""
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    uri = env.get("PMIX_SERVER_URI21") or env.get("OMPI_MCA_orte_hnp_uri") or ""
    found = re.search(r"tcp4?://([^:;,\s]+)[:,]", uri)
    count = _number(env, "OMPI_COMM_WORLD_SIZE")
    seed = env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid") or "0"
    here = count is not None and _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE") == count
    host = "127.0.0.1" if here else found.group(1) if found else None
    return Told(
        f"{host}:{_port(seed)}" if host else None,
        count,
        _number(env, "OMPI_COMM_WORLD_RANK"),
        _number(env, "OMPI_COMM_WORLD_LOCAL_RANK"),
        "Open MPI",
    )


def _mpi(env: Environment) -> Told | None:
    """Read the ranks of MPICH, Intel MPI and other relatives of Hydra.

    They give no address, so one is known only if all processes are on one machine.
    """
    if "PMI_RANK" not in env or "PMI_SIZE" not in env:
        return None
    count = _number(env, "PMI_SIZE")
    here = _number(env, "MPI_LOCALNRANKS") == count
    seed = env.get("HYDI_CONTROL_FD", "") + env.get("PMI_PORT", "") + env.get("PMI_ID", "")
    local = _number(env, "MPI_LOCALRANKID")
    address = f"127.0.0.1:{_port(seed if 'PMI_PORT' in env else 'mpi')}" if here else None
    return Told(address, count, _number(env, "PMI_RANK"), local, "MPI")


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
        _number(env, COUNT, "JOB_COMPLETIONS"),
        _number(env, "JOB_COMPLETION_INDEX"),
        None,
        "Kubernetes",
    )


def _torchrun(env: Environment) -> Told | None:
    """Read torchrun: https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables

    Its own store listens at MASTER_PORT, so another port is chosen.
    """
    if "RANK" not in env or "MASTER_ADDR" not in env:
        return None
    taken = _number(env, "MASTER_PORT")
    return Told(
        f"{env['MASTER_ADDR']}:{_port(str(taken))}",
        _number(env, "WORLD_SIZE"),
        _number(env, "RANK"),
        _number(env, "LOCAL_RANK"),
        "torchrun",
    )


_LAUNCHERS: tuple[Callable[[Environment], Told | None], ...] = (
    _own,
    _slurm,
    _open_mpi,
    _mpi,
    _kubernetes,
    _torchrun,
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
