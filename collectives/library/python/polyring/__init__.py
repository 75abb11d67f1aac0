"""Polyring's collectives for arrays of NumPy and in GPU memory: the multi-ring, which follows a cluster's topology.

    from mpi4py import MPI
    import numpy, polyring

    with polyring.Communicator.from_mpi4py(MPI.COMM_WORLD) as comm:
        total = comm.allreduce(numpy.ones(1_000_000, numpy.float32))

`polyring.torch` is for PyTorch: a hook for DistributedDataParallel, and a backend of torch.distributed. `polyring.read_results()`
reads the result files of `polyring allreduce -J FILE` and its other commands.
"""

from ._device import DeviceArray
from ._library import Error, Result, UsageError, version
from .communicator import Communicator, Request, unique_id
from .registration import Registration
from .results import read_results

__version__ = "0.1.0"
__all__ = ["Communicator", "DeviceArray", "Error", "Registration", "Request", "Result", "UsageError", "read_results", "unique_id", "version"]
