"""What the library is told of an array: address, elements, type."""

import enum
import math
import operator
import sys
from typing import Any, NamedTuple, Optional, Tuple, Union

import numpy

from ._library import UsageError


class Type(enum.IntEnum):
    """polyring_type of polyring.h."""

    float32 = 0
    float64 = 1
    float16 = 2
    bfloat16 = 3  # of ml_dtypes or PyTorch: NumPy has none
    int32 = 4
    int64 = 5


BYTES = {Type.float32: 4, Type.float64: 8, Type.float16: 2, Type.bfloat16: 2, Type.int32: 4, Type.int64: 8}


class Op(enum.IntEnum):
    """polyring_op of polyring.h."""

    sum = 0
    prod = 1
    min = 2
    max = 3
    avg = 4


class Buffer(NamedTuple):
    address: int
    elements: int
    type: Type
    shape: Tuple[int, ...]
    stream: Optional[int] = None  # a cudaStream_t, on which the elements are made


def op_named(name: str) -> Op:
    """Throws a UsageError for a name that is none."""
    try:
        return Op[name]
    except KeyError:
        raise UsageError(f"there is no operation {name!r}; it is one of {', '.join(Op.__members__)}") from None


def type_named(name: str, native: bool, what: str) -> Type:
    """Throws a UsageError, which names `what`, for one that is not combined. `native`: in this machine's byte order."""
    if name not in Type.__members__ or not native:
        order = "" if native else " of the other byte order"
        raise UsageError(f"{what} has elements of {name}{order}; they may be {', '.join(Type.__members__)}: convert it by astype()")
    return Type[name]


def buffer_of(array: Any, what: str, written: bool = False) -> Buffer:
    """Of a NumPy array. Throws a UsageError, which names `what`, for what is none, or whose elements are no single block of memory."""
    if not isinstance(array, numpy.ndarray):
        raise UsageError(f"{what} is a {type(array).__name__}; give a NumPy array")
    kind = type_named(array.dtype.name, array.dtype.isnative, what)
    if not array.flags.c_contiguous:
        raise UsageError(f"{what} is not contiguous (shape {array.shape}, strides {array.strides}); give numpy.ascontiguousarray() of it")
    if written and not array.flags.writeable:
        raise UsageError(f"{what} may only be read; give an array that can be written")
    return Buffer(array.ctypes.data, array.size, kind, array.shape)


def same_type(one: Buffer, other: Buffer) -> None:
    if one.type != other.type:
        raise UsageError(f"the input has elements of {one.type.name}, and the output of {other.type.name}; both need the same")


def need_elements(buffer: Buffer, count: int, what: str, why: str) -> None:
    if buffer.elements != count:
        raise UsageError(f"{what} has {buffer.elements} elements; it needs {count}: {why}")


def extents_of(shape: Union[int, Tuple[int, ...]], dtype: Any) -> "Tuple[Tuple[int, ...], numpy.dtype[Any], int]":
    """The shape, the type of its elements, and their bytes."""
    kind = numpy.dtype(dtype)
    if kind.name not in Type.__members__ or not kind.isnative:
        raise UsageError(f"no operation takes elements of {kind}; give one of {', '.join(Type.__members__)} as dtype")
    extents = tuple(map(operator.index, (shape,) if isinstance(shape, (int, numpy.integer)) else shape))
    if any(extent < 0 for extent in extents):
        raise UsageError(f"there is no shape {shape}; its numbers must be 0 or more")
    size = math.prod(extents) * kind.itemsize
    if size > sys.maxsize:
        raise UsageError(f"an array of shape {shape} is too large for any memory; give a smaller shape")
    return extents, kind, size
