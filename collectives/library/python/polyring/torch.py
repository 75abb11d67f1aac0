"""Polyring for PyTorch, on CPU tensors: a communication hook for DistributedDataParallel, and a backend of torch.distributed.

    import polyring.torch

    torch.distributed.init_process_group("polyring")              # the backend: all collectives

    torch.distributed.init_process_group("gloo")                  # or the hook: the gradients alone
    model = DistributedDataParallel(net)
    model.register_comm_hook(polyring.torch.HookState(), polyring.torch.allreduce_hook)

A communicator's operations run one after another, in the order of the calls, in a thread of its own, so that they go on while the
program computes.
"""

import atexit
import inspect
import os
import queue
import sys
import threading
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket, ProcessGroup, Work
from torch.futures import Future

from ._buffers import Op, Type
from ._library import UsageError
from .communicator import Communicator

NAME = "polyring"
TYPES = {torch.float32: Type.float32, torch.float64: Type.float64, torch.float16: Type.float16, torch.bfloat16: Type.bfloat16,
         torch.int32: Type.int32, torch.int64: Type.int64}
OPS = ((dist.ReduceOp.SUM, Op.sum), (dist.ReduceOp.AVG, Op.avg), (dist.ReduceOp.PRODUCT, Op.prod), (dist.ReduceOp.MIN, Op.min),
       (dist.ReduceOp.MAX, Op.max))
OTHERS = ("BAND", "BOR", "BXOR", "PREMUL_SUM")
WORD = 4  # bytes, by which data of any type are moved
KEPT = 64  # works that nobody has waited for

_ending: List[bool] = []  # not empty: the interpreter ends
atexit.register(_ending.append, True)


class _Queue:
    """Does a communicator's operations in their order, in a thread that ends with it."""

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self._tasks: "queue.SimpleQueue[Optional[Tuple[Callable[[], None], _Work]]]" = queue.SimpleQueue()
        self._thread = threading.Thread(target=_do_all, args=(self._tasks,), name="polyring", daemon=True)
        self._thread.start()

    def submit(self, task: Callable[[], None], work: "_Work") -> "_Work":
        self._tasks.put((task, work))
        return work

    def close(self) -> None:
        """Collective. Waits for what was submitted."""
        self._tasks.put(None)
        if threading.current_thread() is not self._thread:  # which may have had the last reference to the group
            self._thread.join()
        self.communicator.close()


def _do_all(tasks: "queue.SimpleQueue[Optional[Tuple[Callable[[], None], _Work]]]") -> None:
    while (entry := tasks.get()) is not None:
        task, work = entry
        try:
            task()
        except BaseException as error:
            work.finish(error)
        else:
            work.finish(None)
        del entry, task, work  # and their tensors, while it waits for the next


class _Work(Work):
    """An operation that was submitted."""

    def __init__(self, outputs: List[torch.Tensor], result: Any, forget: "Callable[[_Work], None]") -> None:
        super().__init__()
        self._outputs = outputs
        self._result = result  # of the future
        self._forget = forget
        self._over = threading.Event()
        self._error: Optional[BaseException] = None
        self._lock = threading.Lock()
        self._signal: "Optional[Future[None]]" = None
        self._future: "Optional[Future[Any]]" = None

    def finish(self, error: Optional[BaseException]) -> None:
        with self._lock:
            self._error = error
            self._over.set()
            signal = self._signal
        if signal is not None:
            signal.set_result(None)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Of 0 seconds, as PyTorch says it: without a time limit."""
        limit = timeout.total_seconds()
        if not self._over.wait(limit if limit > 0 else None):
            raise RuntimeError(f"the operation was not over within {limit:g} s; it goes on")
        self._forget(self)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._over.is_set()

    def is_success(self) -> bool:
        return self._over.is_set() and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error

    def result(self) -> List[torch.Tensor]:
        return self._outputs

    def get_future(self) -> "Future[Any]":
        """A function of a future fails it, which nothing else in Python does for C++."""
        with self._lock:
            if self._future is None:
                self._signal = Future()
                self._future = self._signal.then(self._value)
                signal = self._signal if self._over.is_set() else None
            else:
                signal = None
            future = self._future
        if signal is not None:
            signal.set_result(None)
        self._forget(self)
        return future

    def _value(self, _: Any) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


def _describe(tensor: torch.Tensor) -> str:
    return f"a tensor of {tensor.dtype} and shape {tuple(tensor.shape)}"


def _check(tensor: torch.Tensor) -> None:
    if tensor.device.type != "cpu":
        raise UsageError(f"polyring.torch is for CPU tensors, and this one is on {tensor.device}; move it by .cpu(), or use the backend nccl")
    if tensor.layout != torch.strided:
        raise UsageError(f"{_describe(tensor)} is not dense; give .to_dense() of it")
    if not tensor.is_contiguous():
        raise UsageError(f"{_describe(tensor)} is not contiguous; give .contiguous() of it")


def _type(tensor: torch.Tensor) -> Type:
    _check(tensor)
    if tensor.dtype not in TYPES:
        raise UsageError(f"polyring does not combine elements of {tensor.dtype}; convert it by .to(): {', '.join(map(str, TYPES))} can be")
    return TYPES[tensor.dtype]


def _op(asked: Any) -> Op:
    for theirs, ours in OPS:
        if asked == theirs:
            return ours
    name = next((name for name in OTHERS if asked == getattr(dist.ReduceOp, name, None)), str(asked))
    raise UsageError(f"polyring has no operation {name}; it has sum, avg, product, min and max; use a group of the backend gloo for others")


def _need_one(tensors: List[Any], what: str) -> Any:
    if len(tensors) != 1:
        raise UsageError(f"{what} of {len(tensors)} tensors at once is not what polyring does; give one")
    return tensors[0]


def _words(tensor: torch.Tensor) -> Tuple[torch.Tensor, bool]:
    """The tensor's bytes, padded to whole words in a copy where they need it; and whether it is a copy."""
    size = tensor.numel() * tensor.element_size()
    if size % WORD == 0 and tensor.data_ptr() % WORD == 0:
        return tensor, False
    padded = torch.zeros((size + WORD - 1) // WORD * WORD, dtype=torch.uint8)
    padded[:size] = _bytes(tensor)
    return padded, True


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


class PolyringProcessGroup(ProcessGroup):
    """What torch.distributed.init_process_group("polyring") and new_group(backend="polyring") make."""

    def __init__(self, communicator: Communicator) -> None:
        super().__init__(communicator.rank, communicator.size)
        self._communicator = communicator
        self._queue: Optional[_Queue] = _Queue(communicator)
        self._kept: "Dict[_Work, None]" = {}  # C++ keeps no Python object: of a work that it alone has, only what is here is left

    def getBackendName(self) -> str:
        return NAME

    def allreduce(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        tensor = _need_one(tensors, "an allreduce")
        kind, op = _type(tensor), _op(dist.ReduceOp.SUM if opts is None else opts.reduceOp)
        return self._submit(lambda: self._combine(tensor, kind, op), [tensor])

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        op = _op(dist.ReduceOp.SUM if opts is None else opts.reduceOp)
        kinds = [_type(tensor) for tensor in tensors]

        def combine_all() -> None:
            for tensor, kind in zip(tensors, kinds):
                self._combine(tensor, kind, op)

        return self._submit(combine_all, list(tensors))

    def reduce(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        tensor = _need_one(tensors, "a reduce")
        kind, op = _type(tensor), _op(opts.reduceOp)

        def combine() -> None:
            sums = tensor if self._communicator.rank == opts.rootRank else tensor.clone()
            self._combine(sums, kind, op)

        return self._submit(combine, [tensor])

    def broadcast(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        tensor = _need_one(tensors, "a broadcast")
        _check(tensor)
        root = 0 if opts is None else opts.rootRank

        def send() -> None:
            words, copied = _words(tensor)
            count = words.numel() * words.element_size() // WORD
            self._communicator._call("broadcast", words.data_ptr(), count, Type.int32, root)
            if copied:
                _bytes(tensor).copy_(words[:tensor.numel() * tensor.element_size()])

        return self._submit(send, [tensor])

    def allgather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        everyones, own = _need_one(outputs, "an allgather"), _need_one(inputs, "an allgather")
        _check(own)
        if len(everyones) != self._communicator.size:
            raise UsageError(f"an allgather of {self._communicator.size} ranks needs as many outputs, not {len(everyones)}")
        for output in everyones:
            _check_like(output, own, own.numel())

        def gather() -> None:
            for output, part in zip(everyones, self._gather(own)):
                _bytes(output).copy_(part)

        return self._submit(gather, list(everyones), outputs)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        _check(input)
        _check_like(output, input, input.numel() * self._communicator.size)

        def gather() -> None:
            if _words(input)[1]:
                _bytes(output).copy_(torch.cat([part for part in self._gather(input)]))
            else:
                count = input.numel() * input.element_size() // WORD
                self._communicator._call("allgather", input.data_ptr(), output.data_ptr(), count, Type.int32)

        return self._submit(gather, [output])

    def reduce_scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any = None) -> Work:
        output, parts = _need_one(outputs, "a reduce-scatter"), _need_one(inputs, "a reduce-scatter")
        if len(parts) != self._communicator.size:
            raise UsageError(f"a reduce-scatter of {self._communicator.size} ranks needs as many inputs, not {len(parts)}")
        for part in parts:
            _check(part)
            _check_like(part, output, output.numel())
        return self._reduce_scatter_base(output, torch.cat([part.reshape(-1) for part in parts]), opts)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        kind, op = _type(input), _op(dist.ReduceOp.SUM if opts is None else opts.reduceOp)
        _check_like(output, input, input.numel() // self._communicator.size)
        if input.numel() % self._communicator.size:
            raise UsageError(f"{_describe(input)} cannot be shared equally by {self._communicator.size} ranks; add elements")

        def scatter() -> None:
            self._communicator._call("reduce_scatter", input.data_ptr(), output.data_ptr(), output.numel(), kind, op)

        return self._submit(scatter, [output])

    def barrier(self, opts: Any = None) -> Work:
        return self._submit(self._communicator.barrier, [])

    # What newer versions of PyTorch call these.
    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base

    def shutdown(self) -> None:
        """Collective: ends the communicator. torch.distributed.destroy_process_group() calls it, or in older versions the end of the
        last reference."""
        queue_of_group, self._queue = self._queue, None
        if queue_of_group is not None:
            queue_of_group.close()

    def __del__(self) -> None:
        made_here = getattr(self, "_communicator", None) is not None and self._communicator._process == os.getpid()
        if made_here and not _ending and not sys.is_finalizing():
            self.shutdown()

    def _combine(self, tensor: torch.Tensor, kind: Type, op: Op) -> None:
        self._communicator._call("allreduce", tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), kind, op)

    def _gather(self, own: torch.Tensor) -> List[torch.Tensor]:
        """Every rank's bytes."""
        words, _ = _words(own)
        size = words.numel() * words.element_size()
        everyones = torch.empty(self._communicator.size, size, dtype=torch.uint8)
        self._communicator._call("allgather", words.data_ptr(), everyones.data_ptr(), size // WORD, Type.int32)
        return list(everyones[:, :own.numel() * own.element_size()])

    def _submit(self, task: Callable[[], None], outputs: List[torch.Tensor], result: Any = None) -> Work:
        running = self._started()
        kept = self._kept  # alone: a work must not keep the group
        work = _Work(outputs, outputs if result is None else result, lambda work: kept.pop(work, None))
        kept[work] = None
        while len(kept) > KEPT:
            kept.pop(next(iter(kept)), None)
        return running.submit(task, work)

    def _started(self) -> _Queue:
        if self._queue is None:
            raise UsageError("the process group has ended; call torch.distributed.init_process_group() again")
        return self._queue


def _check_like(tensor: torch.Tensor, other: torch.Tensor, count: int) -> None:
    _check(tensor)
    if tensor.dtype != other.dtype or tensor.numel() != count:
        raise UsageError(f"{_describe(tensor)} does not go with {_describe(other)}: it needs {count} elements of {other.dtype}")


def _unsupported(name: str) -> Callable[..., Work]:
    def refuse(self: PolyringProcessGroup, *_: Any, **__: Any) -> Work:
        raise UsageError(f"polyring has no {name}; use a group that torch.distributed.new_group(backend=\"gloo\") makes for it")

    return refuse


for _name in ("send", "recv", "recv_anysource", "gather", "scatter", "alltoall", "alltoall_base", "all_to_all_single", "monitored_barrier"):
    setattr(PolyringProcessGroup, _name, _unsupported(_name))


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> PolyringProcessGroup:
    return PolyringProcessGroup(Communicator.from_store(store, rank, size, timeout=timeout.total_seconds()))


def _register() -> None:
    devices: Any = {"devices": ["cpu"]} if "devices" in inspect.signature(dist.Backend.register_backend).parameters else {}
    defaults = dict(getattr(dist.Backend, "default_device_backend_map", {}))
    dist.Backend.register_backend(NAME, _create, **devices)
    if defaults:  # who asks for no backend still gets what they got before
        dist.Backend.default_device_backend_map.update(defaults)


_register()


class HookState:
    """What allreduce_hook() needs, one for each model: a communicator of the ranks of `group`, which all of them make together. The
    options are those of Communicator. A group of the backend polyring lends its own."""

    def __init__(self, group: Optional[ProcessGroup] = None, **options: Any) -> None:
        group = dist.group.WORLD if group is None else group
        if isinstance(group, PolyringProcessGroup):
            if options:
                raise UsageError(f"the group has a communicator, so that {', '.join(options)} cannot be chosen; give a group of the backend gloo")
            self._queue, self._own = group._started(), False
        else:
            self._queue, self._own = _Queue(_of_group(group, options)), True
        self._buckets: Dict[int, torch.Tensor] = {}
        self.calls = 0  # of the hook, so far

    def start(self, index: int, gradients: torch.Tensor) -> "Future[torch.Tensor]":
        """The mean of all ranks' gradients, in memory that the ranks of a host reach directly, and that is used again."""
        self.calls += 1
        kind = _type(gradients)
        output = self._output(index, gradients)
        communicator = self._queue.communicator

        def combine() -> None:
            communicator._call("allreduce", gradients.data_ptr(), output.data_ptr(), output.numel(), kind, Op.avg)

        work = _Work([output], output, lambda _: None)
        self._queue.submit(combine, work)
        return work.get_future()

    def close(self) -> None:
        """Collective. The hook can no longer be used."""
        self._buckets.clear()
        if self._own:
            self._queue.close()

    def _output(self, index: int, gradients: torch.Tensor) -> torch.Tensor:
        output = self._buckets.get(index)
        if output is None or output.numel() != gradients.numel() or output.dtype != gradients.dtype:
            self._buckets.pop(index, None)
            size = gradients.numel() * gradients.element_size()
            memory = numpy.frombuffer(self._queue.communicator._block(size), numpy.uint8, size)
            output = torch.from_numpy(memory).view(gradients.dtype)
            self._buckets[index] = output
        return output


def _of_group(group: Any, options: Dict[str, Any]) -> Communicator:
    """Its ranks exchange bytes by the group's own allgather."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)

    def allgather(own: bytes) -> List[bytes]:
        everyones = [torch.empty(len(own), dtype=torch.uint8) for _ in range(size)]
        dist.all_gather(everyones, torch.frombuffer(bytearray(own), dtype=torch.uint8), group=group)
        return [part.numpy().tobytes() for part in everyones]

    return Communicator.from_allgather(allgather, rank, size, **options)


def allreduce_hook(state: HookState, bucket: GradBucket) -> Future[torch.Tensor]:
    """For DistributedDataParallel.register_comm_hook(): the ranks' gradients are averaged, as without a hook."""
    return state.start(bucket.index(), bucket.buffer())
