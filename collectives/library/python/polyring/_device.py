"""Arrays in GPU memory: those of Communicator.empty(), and others' that have `__cuda_array_interface__`; CUDA streams.

https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html defines the interface (version 3);
https://nvidia.github.io/cuda-python/cuda-core/latest/ the streams' `__cuda_stream__`.
"""

import math
from typing import Any, Dict, Optional, Tuple

import numpy

from ._buffers import BYTES, Buffer, type_named
from ._library import UsageError

INTERFACE = "__cuda_array_interface__"


class DeviceArray:
    """An array in the memory of a communicator's GPU, which Communicator.empty() makes. It has no arithmetic: give it to CuPy, Numba or
    PyTorch (`cupy.asarray(a)`, `numba.cuda.as_cuda_array(a)`, `torch.as_tensor(a, device="cuda")`), which share its memory and keep it."""

    def __init__(self, address: int, shape: Tuple[int, ...], dtype: "numpy.dtype[Any]") -> None:
        """For Communicator.empty()."""
        self._address = address
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        """Of version 3, without a stream: an operation that was enqueued may still be under way."""
        address = self._address if self.size else 0
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (address, False), "version": 3, "strides": None, "stream": None}

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype})"


def interface_of(array: Any, what: str) -> Optional[Dict[str, Any]]:
    """None where the array is not on a GPU. Throws a UsageError, which names `what`, where it does not give it, such as a tensor of
    PyTorch's that needs a gradient."""
    try:
        interface: Optional[Dict[str, Any]] = getattr(array, INTERFACE, None)
    except Exception as error:
        raise UsageError(f"{what} is a {type(array).__name__} that gives no {INTERFACE} ({error!r}); give another view of it") from error
    return interface


def buffer_on(gpu: int, array: Any, what: str, written: bool = False) -> Buffer:
    """Of an array on this GPU. Throws a UsageError, which names `what`, for what is none, or whose elements are no single block of
    memory. Whose memory it is, the library finds out."""
    interface = interface_of(array, what)
    if interface is None:
        found = "a NumPy array, in host memory" if isinstance(array, numpy.ndarray) else f"a {type(array).__name__}"
        raise UsageError(f"{what} is {found}, and this communicator's arrays are on GPU {gpu}; give one that has {INTERFACE}, such as empty() makes")
    shape = tuple(interface["shape"])
    address, read_only = interface["data"]
    dtype = numpy.dtype(interface["typestr"])
    kind = type_named(_name(array, dtype), dtype.isnative, what)
    elements = math.prod(shape)
    strides = interface.get("strides")
    if interface.get("mask") is not None:
        raise UsageError(f"{what} has a mask; give an array without one")
    if elements and strides is not None and not _is_contiguous(shape, tuple(strides), BYTES[kind]):
        raise UsageError(f"{what} is not contiguous (shape {shape}, strides {tuple(strides)}); give a contiguous copy of it")
    if written and read_only:
        raise UsageError(f"{what} may only be read; give an array that can be written")
    return Buffer(address or 0, elements, kind, shape, interface.get("stream"))


def _name(array: Any, dtype: "numpy.dtype[Any]") -> str:
    """The interface has no bfloat16: some libraries call it "<V2", some "<f2"."""
    own = str(getattr(array, "dtype", "")).rpartition(".")[2]
    return own if own == "bfloat16" else dtype.name


def _is_contiguous(shape: Tuple[int, ...], strides: Tuple[int, ...], step: int) -> bool:
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def stream_of(stream: Any) -> int:
    """The cudaStream_t of a number, or of a stream of CuPy, PyTorch or cuda.core. Throws a UsageError for anything else."""
    handle = stream
    if callable(getattr(stream, "__cuda_stream__", None)):
        handle = stream.__cuda_stream__()[1]
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    elif hasattr(stream, "ptr"):
        handle = stream.ptr
    if not isinstance(handle, int) or isinstance(handle, bool) or handle < 0:
        raise UsageError(f"the stream is {stream!r}; give the number of a cudaStream_t, or an object with __cuda_stream__, cuda_stream or ptr")
    return handle
