"""The connection to a dask cluster: to a scheduler that runs, or to workers started here."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from fl.errors import LearningError
from fl.worker_processes import ENVIRONMENT, terminal_signals_blocked, worker_environment

LOOPBACK = "127.0.0.1"  # a scheduler runs the code of whoever can reach it
BEFORE_START = "distributed.nanny.pre-spawn-environ"  # dask's key of the environment of workers


def dask_client(address: str | None, processes: int) -> Any:
    """A client, which is not dask's default; its ``cluster`` is None with an address.

    Args:
        address: of a scheduler; None: a cluster of processes of this machine, of one thread each.
        processes: how many are started then.

    Raises:
        LearningError: the scheduler cannot be reached.
    """
    import dask
    from distributed import Client, LocalCluster
    from distributed.comm import parse_address
    from distributed.comm.registry import get_backend

    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] == "distributed":  # callers print what matters
            logging.getLogger(name).setLevel(logging.CRITICAL)
    cluster = None
    try:
        if address is None:
            again = {f"{BEFORE_START}.{name}": text for name, text in ENVIRONMENT.items()}
            with (
                warnings.catch_warnings(),
                dask.config.set(again),  # of a worker that takes the place of another
                worker_environment(),
                terminal_signals_blocked(),
            ):
                # another cluster runs here, and the scheduler takes another port by itself
                warnings.filterwarnings("ignore", "Port .* is already in use")
                cluster = LocalCluster(
                    n_workers=processes,
                    host=LOOPBACK,
                    threads_per_worker=1,
                    memory_limit=0,  # none, as without a cluster
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
        else:  # a client would take ten seconds to say that there is no such protocol
            get_backend(parse_address(address)[0])
        return Client(cluster or address, timeout="20s", set_as_default=False)
    except Exception as error:  # tls without certificates is a TypeError, and so on
        shown = "of this machine" if address is None else repr(address)
        raise LearningError(f"the dask scheduler {shown} cannot be reached ({error})") from error
