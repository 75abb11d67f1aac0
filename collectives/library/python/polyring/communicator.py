"""Communicator: a group of processes that does collectives together, on NumPy arrays or on arrays in the memory of GPUs."""

import ctypes
import gc
import os
import threading
import weakref
from datetime import timedelta
from types import TracebackType
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Type as TypeOf, Union

import numpy

from . import _library
from ._buffers import Buffer, Type, buffer_of, extents_of, need_elements, op_named, same_type
from ._device import DeviceArray, buffer_on, interface_of, stream_of
from ._library import Error, Result, UsageError, call
from ._stores import stores
from .registration import Registration

Array = Any  # a numpy.ndarray, or of a communicator with a GPU what has __cuda_array_interface__; it is checked when it is used
Stream = Any  # the number of a cudaStream_t, or an object with __cuda_stream__, cuda_stream or ptr
Create = Callable[[Any, int, int, Any], None]

TRANSPORTS = ("automatic", "shared", "network")  # by polyring_transport


def unique_id() -> bytes:
    """By which the ranks of one communicator find each other over TCP. Called by the process that is rank 0 then, which listens
    from now on; the other ranks need these bytes, in whatever way they come there."""
    made = _library.UniqueId()
    call("get_unique_id", ctypes.byref(made))
    return bytes(made)


HOST = -1  # polyring_options.gpu


def _options(timeout: float, transport: str, interface: Optional[str], algorithm: Optional[str], check: bool, gpu: Optional[int]) -> _library.Options:
    if gpu is not None and gpu < 0:
        raise UsageError(f"there is no GPU {gpu}; give one from 0 on, or None for host memory")
    if transport not in TRANSPORTS:
        raise UsageError(f"there is no transport {transport!r}; it is one of {', '.join(TRANSPORTS)}")
    return _library.Options(size=ctypes.sizeof(_library.Options), timeout=timeout, transport=TRANSPORTS.index(transport),
                            interface_name=interface.encode() if interface is not None else None,
                            algorithm=algorithm.encode() if algorithm is not None else None, check=int(check), gpu=HOST if gpu is None else gpu)


class Request:
    """An operation that was started. Its arrays belong to it until it is over."""

    def __init__(self, communicator: "Communicator", handle: ctypes.c_void_p, result: Array, arrays: Tuple[Array, ...]) -> None:
        self._communicator = communicator
        self._handle = handle
        self._result = result
        self._arrays = arrays
        communicator._unfinished.add(self)  # so that its arrays stay, whoever forgets it

    def test(self) -> bool:
        """Goes on with all operations of the communicator, without blocking. Whether this one is over; throws why it failed."""
        done = ctypes.c_int(0)
        try:
            self._communicator._checked("test", ctypes.byref(self._handle), ctypes.byref(done))
        finally:
            if done.value or not self._handle:
                self._end()
        return bool(done.value)

    def wait(self) -> Array:
        """Returns the output when it is over, None of a barrier; throws why it failed."""
        try:
            self._communicator._checked("wait", ctypes.byref(self._handle))
        finally:
            self._end()
        return self._result

    def _end(self) -> None:
        self._communicator._unfinished.discard(self)
        self._arrays = ()


class Communicator:
    """Made by one of the `from_` functions, which all ranks call. All ranks call the same operations in the same order. Any thread
    may use it, but no process that was forked. It ends by close(), which all ranks call, or with its `with` block.

    Options of all of them: `timeout`, the seconds within which something must come from a rank that is waited for; `transport`,
    "automatic", "shared" (memory inside hosts must be shared) or "network" (TCP for everything); `interface`, the network for TCP,
    such as "ib0"; `algorithm`, as --algorithm of `polyring allreduce --help` lists them, "multi-ring" when not given (multi-ring, ring,
    halving-doubling, direct and pairwise also do reduce_scatter and allgather); `check`, whether ranks compare what they call before
    each operation, which takes a message more; `gpu`, the GPU whose memory has the arrays, as CUDA counts them in this process.
    """

    def __init__(self, create: Create, rank: int, ranks: int, *, timeout: float = 60.0, transport: str = "automatic",
                 interface: Optional[str] = None, algorithm: Optional[str] = None, check: bool = False,
                 gpu: Optional[int] = None) -> None:
        """For the functions below."""
        self._handle = ctypes.c_void_p()
        self._closed = ctypes.c_void_p()  # what it was; arrays of alloc() and empty() may still be there
        self._unfinished: "set[Request]" = set()
        self._memory: "set[int]" = set()  # of alloc() and empty(), whose arrays still exist
        self._registered: "set[Registration]" = set()  # so that their arrays stay, whoever forgets them
        self._broken = False
        self._process = os.getpid()
        self._lock = threading.RLock()  # the collection of garbage frees arrays at any time
        options = _options(timeout, transport, interface, algorithm, check, gpu)
        create(ctypes.byref(self._handle), rank, ranks, ctypes.byref(options))
        self.rank = rank
        self.size = ranks
        self.gpu = gpu

    @classmethod
    def from_id(cls, id: bytes, rank: int, ranks: int, **options: Any) -> "Communicator":
        """Of processes that have rank 0's unique_id()."""
        if len(id) != _library.MAX_ID_BYTES:
            raise UsageError(f"an id has {_library.MAX_ID_BYTES} bytes, not {len(id)}; give unique_id() of rank 0")
        copy = _library.UniqueId.from_buffer_copy(id)
        return cls(lambda new, own, size, said: call("comm_create", new, ctypes.byref(copy), own, size, said), rank, ranks, **options)

    @classmethod
    def from_address(cls, address: str, rank: int, ranks: int, *, secret: Optional[str] = None, **options: Any) -> "Communicator":
        """Of processes that know where rank 0 listens, such as "node1:4711". Only ranks with the same `secret` are let in,
        up to 32 letters and digits."""
        made = _library.UniqueId()
        call("unique_id_at", ctypes.byref(made), address.encode(), secret.encode() if secret is not None else None)
        return cls.from_id(bytes(made), rank, ranks, **options)

    @classmethod
    def from_allgather(cls, allgather: Callable[[bytes], Sequence[bytes]], rank: int, ranks: int, **options: Any) -> "Communicator":
        """Of processes that can exchange bytes: `allgather(own)` returns every rank's bytes, by rank; all have equally many. It is
        called by this function alone."""
        failed: List[BaseException] = []

        def gather(_: Any, own: int, everyones: int, count: int) -> int:
            try:
                parts = list(allgather(ctypes.string_at(own, count)))
                if len(parts) != ranks or any(len(part) != count for part in parts):
                    raise UsageError(f"the allgather must return {ranks} times {count} bytes, not {[len(part) for part in parts]}")
                ctypes.memmove(everyones, b"".join(parts), ranks * count)
            except BaseException as error:
                failed.append(error)
                return 1
            return 0

        group = _library.Group(None, _library.ALLGATHER(gather))
        return cls(_with_cause("comm_create_from_group", ctypes.byref(group), failed), rank, ranks, **options)

    @classmethod
    def from_mpi4py(cls, comm: Any, **options: Any) -> "Communicator":
        """Of the ranks of an intracommunicator of mpi4py, which is used by this function alone."""
        return cls.from_allgather(comm.allgather, comm.Get_rank(), comm.Get_size(), **options)

    @classmethod
    def from_store(cls, store: Any, rank: int, ranks: int, *, prefix: str = "polyring", **options: Any) -> "Communicator":
        """Of processes with a key-value store that all reach, such as torch.distributed's: set(key, value), get(key) and, where it
        has one, wait([key], timedelta). Keys begin with `prefix`. Several communicators of the same ranks may have one: all ranks
        make them in the same order, each with one store object. Those of other ranks need another prefix."""
        failed: List[BaseException] = []
        prefix = stores.numbered(store, prefix, rank)

        def put(_: Any, key: bytes, value: int, count: int) -> int:
            try:
                store.set(key.decode(), ctypes.string_at(value, count))
            except BaseException as error:
                failed.append(error)
                return 1
            return 0

        def get(_: Any, key: bytes, room: int, capacity: int, count: Any, timeout: float) -> int:
            try:
                if hasattr(store, "wait"):
                    store.wait([key.decode()], timedelta(seconds=timeout))
                value = bytes(store.get(key.decode()))
                count[0] = len(value)
                ctypes.memmove(room, value, min(len(value), capacity))
            except BaseException as error:
                failed.append(error)
                return 1
            return 0

        described = _library.Store(None, prefix.encode(), _library.SET(put), _library.GET(get))
        return cls(_with_cause("comm_create_from_store", ctypes.byref(described), failed), rank, ranks, **options)

    @property
    def hosts(self) -> int:
        """On how many hosts the ranks are."""
        count = ctypes.c_int()
        self._call("comm_hosts", ctypes.byref(count))
        return count.value

    @property
    def transport(self) -> str:
        """How the ranks are joined, such as "shared memory and TCP", or "… by eth0" where `interface` has named it."""
        text = ctypes.c_char_p()
        self._call("comm_transport", ctypes.byref(text))
        return (text.value or b"").decode()

    @property
    def planning(self) -> str:
        """How plans are chosen, such as "by the links that 'cluster.json' describes"."""
        text = ctypes.c_char_p()
        self._call("comm_planning", ctypes.byref(text))
        return (text.value or b"").decode()

    def alloc(self, shape: Union[int, Tuple[int, ...]], dtype: Any = numpy.float32) -> Array:
        """A NumPy array, not initialized, in memory that the ranks of a host reach directly: operations on it copy nothing. Its memory is
        freed when no array uses it any more."""
        if self.gpu is not None:
            raise UsageError(f"this communicator's arrays are on GPU {self.gpu}; make them by empty()")
        extents, kind, size = extents_of(shape, dtype)
        return numpy.frombuffer(self._block(size), kind, size // kind.itemsize).reshape(extents)

    def _block(self, size: int) -> Any:
        """Bytes of such memory, as a buffer."""
        address = self._allocate(size)
        block = (ctypes.c_byte * max(1, size)).from_address(address)
        weakref.finalize(block, self._free, address).atexit = False
        return block

    def empty(self, shape: Union[int, Tuple[int, ...]], dtype: Any = numpy.float32) -> DeviceArray:
        """An array, not initialized, in the memory of the communicator's GPU: operations on it copy nothing, and those on a stream take
        no other. Its memory is freed when no array uses it any more, and what was enqueued is over."""
        if self.gpu is None:
            raise UsageError("this communicator's arrays are in host memory; make them by alloc(), or create it with gpu=")
        extents, kind, size = extents_of(shape, dtype)
        address = self._allocate(size)
        array = DeviceArray(address, extents, kind)
        weakref.finalize(array, self._free, address).atexit = False
        return array

    def _allocate(self, size: int) -> int:
        memory = ctypes.c_void_p()
        self._call("mem_alloc", max(1, size), ctypes.byref(memory))
        address = memory.value or 0
        with self._lock:
            self._memory.add(address)
        return address

    def _free(self, address: int) -> None:
        """Of an array that is gone. The last one takes the communicator with it where that was closed before."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._memory.discard(address)
            handle, closed = (self._handle, False) if self._handle else (self._closed, not self._memory)
        _library.library.polyring_mem_free(handle, address)
        if closed:
            _library.library.polyring_comm_free(handle)

    def register(self, array: Array) -> Registration:
        """The ranks of a host reach the array directly, as those of alloc(), until the registration's deregister() or the end of its
        `with` block. Not collective. The array keeps its address and its contents. It begins on a page of memory, as large ones of
        NumPy do not, and fills whole pages: else alloc() makes one. No operation uses it, and no other thread, until this returns.

            with comm.register(array):
                comm.allreduce(array, array)
        """
        if self.gpu is not None:
            raise UsageError("an array in a GPU's memory cannot be registered; make one by empty()")
        buffer = self._buffer(array, "the array", written=True)
        try:
            self._call("mem_register", buffer.address, array.nbytes)
        except UsageError as error:
            raise UsageError(f"the array cannot be registered: {error}; or take one of alloc()") from None
        made = Registration(self, array)
        self._registered.add(made)
        return made

    def _deregister(self, registration: Registration) -> None:
        if registration not in self._registered:
            return
        try:
            self._call("mem_deregister", registration._address)
        except UsageError:  # the program has freed it, or mapped something else there
            self._registered.discard(registration)
            raise
        self._registered.discard(registration)

    def _deregister_all(self) -> Optional[Error]:
        """The communicator may live on for arrays of alloc(). Returns what has failed first."""
        failure = None
        for registration in list(self._registered):
            try:
                self._deregister(registration)
            except Error as error:
                failure = failure or error
        return failure

    def allreduce(self, input: Array, output: Optional[Array] = None, op: str = "sum", stream: Stream = None) -> Array:
        """Every rank's elements combined by "sum", "prod", "min", "max" or "avg", on every rank. Returns `output`, which may be the
        input, or a new array. With a CUDA stream: enqueued on it, and not over on return; then the arrays are empty()'s."""
        return self._run("allreduce", self._allreduce(input, output, op), stream)

    def start_allreduce(self, input: Array, output: Optional[Array] = None, op: str = "sum") -> Request:
        """The same, started."""
        return self._start("start_allreduce", self._allreduce(input, output, op))

    def reduce_scatter(self, input: Array, output: Optional[Array] = None, op: str = "sum", stream: Stream = None) -> Array:
        """Combines as allreduce() does; rank r gets the r-th of `size` equal parts. `output` may be that part of the input."""
        return self._run("reduce_scatter", self._reduce_scatter(input, output, op), stream)

    def start_reduce_scatter(self, input: Array, output: Optional[Array] = None, op: str = "sum") -> Request:
        """The same, started."""
        return self._start("start_reduce_scatter", self._reduce_scatter(input, output, op))

    def allgather(self, input: Array, output: Optional[Array] = None, stream: Stream = None) -> Array:
        """Every rank's elements, by rank; a new array has the shape (size, *input.shape). The input may be this rank's part of
        `output`."""
        return self._run("allgather", self._allgather(input, output), stream)

    def start_allgather(self, input: Array, output: Optional[Array] = None) -> Request:
        """The same, started."""
        return self._start("start_allgather", self._allgather(input, output))

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """The root's elements in every rank's array."""
        return self._run("broadcast", self._broadcast(array, root))

    def start_broadcast(self, array: Array, root: int = 0) -> Request:
        """The same, started."""
        return self._start("start_broadcast", self._broadcast(array, root))

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._call("barrier")

    def start_barrier(self) -> Request:
        """The same, started: it is over when all ranks have started it."""
        return self._start("start_barrier", _Prepared((), None, (), ()))

    def enqueued_wait(self) -> None:
        """Returns when all that was enqueued on a stream is over. A stream alone waits for ever for a rank that has ended; this ends
        at the time limit, and says for whom it waited."""
        self._call("enqueued_wait")

    def close(self) -> None:
        """Collective where nothing is under way: waits until no rank needs this one any more. Else gives up what is under way. Arrays of
        alloc() and empty() keep their memory."""
        if not self._handle:
            return
        if self._unfinished or self._broken:
            self.abort()
            return
        if self._memory:
            gc.collect()
        if not self._memory:
            try:
                call("comm_free", self._take())
            finally:
                self._registered.clear()  # until then their pages are the communicator's
            return
        try:
            self.barrier()  # who is through the second knows that all are through the first, with this memory open
            self.barrier()
        finally:
            self.abort()

    def abort(self) -> None:
        """Not collective: gives up what is under way, and ends the communicator. The other ranks' calls fail, at the latest after their
        time limit. Arrays of alloc() and empty() keep their memory."""
        if not self._handle:
            return
        self._call("comm_abort")
        self._unfinished.clear()
        failure = self._deregister_all()
        with self._lock:
            kept = bool(self._memory)
            handle = self._take()
        if not kept:
            call("comm_free", handle)
        if failure:
            raise failure

    def _call(self, name: str, *arguments: Any) -> None:
        if os.getpid() != self._process:
            raise UsageError("this process is a fork of the one that has made the communicator; make another here")
        self._checked(name, self._handle, *arguments)

    def _checked(self, name: str, *arguments: Any) -> None:
        try:
            call(name, *arguments)
        except Error as error:
            changes_nothing = name.startswith("mem_") or name.startswith("enqueue_") and error.code == Result.NOT_AVAILABLE
            if not changes_nothing:
                self._broken = self._broken or error.code not in (Result.ARGUMENT, Result.MISMATCH)
            raise

    def _take(self) -> ctypes.c_void_p:
        with self._lock:
            self._closed, self._handle = self._handle, ctypes.c_void_p()
        return self._closed

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Optional[TypeOf[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        """The other ranks do not come to close a communicator where this one has failed."""
        if error is None:
            self.close()
        else:
            self.abort()

    def _buffer(self, array: Array, what: str, written: bool = False) -> Buffer:
        if self.gpu is not None:
            return buffer_on(self.gpu, array, what, written)
        if not isinstance(array, numpy.ndarray) and interface_of(array, what) is not None:
            raise UsageError(f"{what} is on a GPU, and this communicator's arrays are in host memory; create it with gpu=, or copy the array")
        return buffer_of(array, what, written)

    def _new(self, shape: Tuple[int, ...], like: Buffer, array: Array) -> Array:
        """Of the same elements."""
        if self.gpu is None:
            return numpy.empty(shape, array.dtype)
        try:
            return self.empty(shape, like.type.name)
        except TypeError:  # NumPy has no bfloat16 of its own
            raise UsageError(f"a new array of {like.type.name} needs the package ml_dtypes, imported; or give the output") from None

    def _allreduce(self, input: Array, output: Optional[Array], op: str) -> "_Prepared":
        source = self._buffer(input, "the input")
        output = self._new(source.shape, source, input) if output is None else output
        target = self._buffer(output, "the output", written=True)
        same_type(source, target)
        need_elements(target, source.elements, "the output", "as many as the input")
        return _Prepared((input, output), output, (source, target), (source.elements, source.type, op_named(op)))

    def _reduce_scatter(self, input: Array, output: Optional[Array], op: str) -> "_Prepared":
        source = self._buffer(input, "the input")
        if source.elements % self.size:
            raise UsageError(f"the input has {source.elements} elements, which {self.size} ranks cannot share equally; add some")
        part = source.elements // self.size
        output = self._new((part,), source, input) if output is None else output
        target = self._buffer(output, "the output", written=True)
        same_type(source, target)
        need_elements(target, part, "the output", f"a part of the input's {source.elements} for each of {self.size} ranks")
        return _Prepared((input, output), output, (source, target), (part, source.type, op_named(op)))

    def _allgather(self, input: Array, output: Optional[Array]) -> "_Prepared":
        source = self._buffer(input, "the input")
        output = self._new((self.size, *source.shape), source, input) if output is None else output
        target = self._buffer(output, "the output", written=True)
        same_type(source, target)
        need_elements(target, source.elements * self.size, "the output", f"the input's {source.elements} for each of {self.size} ranks")
        return _Prepared((input, output), output, (source, target), (source.elements, source.type))

    def _broadcast(self, array: Array, root: int) -> "_Prepared":
        buffer = self._buffer(array, "the array", written=True)
        return _Prepared((array,), array, (buffer,), (buffer.elements, buffer.type, root))

    def _run(self, name: str, what: "_Prepared", stream: Stream = None) -> Array:
        if stream is None:
            self._wait_for(what.buffers)
            self._call(name, *what.addresses(), *what.words)
        else:
            handle = stream_of(stream)
            self._wait_for(what.buffers, handle)
            self._call(f"enqueue_{name}", *what.addresses(), *what.words, handle)
        return what.output

    def _start(self, name: str, what: "_Prepared") -> Request:
        self._wait_for(what.buffers)
        handle = ctypes.c_void_p()
        self._call(name, *what.addresses(), *what.words, ctypes.byref(handle))
        return Request(self, handle, what.output, what.arrays)

    def _wait_for(self, buffers: Tuple[Buffer, ...], stream: Optional[int] = None) -> None:
        """For the streams that make their elements, except for the one on which it is used."""
        for made_on in {buffer.stream for buffer in buffers} - {None, stream}:
            self._call("stream_wait", made_on)


class _Prepared(NamedTuple):
    """An operation whose arrays are right."""

    arrays: Tuple[Array, ...]
    output: Array
    buffers: Tuple[Buffer, ...]
    words: Tuple[int, ...]  # what the library takes behind the addresses

    def addresses(self) -> Tuple[int, ...]:
        return tuple(buffer.address for buffer in self.buffers)


def _with_cause(name: str, how: Any, failed: List[BaseException]) -> Create:
    """Creates by functions that the library calls back, whose exceptions come along; what ends programs passes."""

    def create(new: Any, rank: int, ranks: int, options: Any) -> None:
        try:
            call(name, new, how, rank, ranks, options)
        except Error as error:
            if failed and not isinstance(failed[0], Exception):
                raise failed[0] from error
            if failed:
                raise type(error)(f"{error} ({failed[0]})", error.code) from failed[0]
            raise

    return create

