"""What one rank of python_gpu_test.py does: python_gpu_ranks.py WHAT RANK RANKS FILE, as python_ranks.py. Rank r has GPU r."""

import ctypes
import gc
import os
import sys
import time
from datetime import timedelta

import numpy
import polyring
from python_ranks import TIME_LIMIT_S, TYPES, FileStore, refused, values

CUDART = ctypes.CDLL(os.environ["POLYRING_CUDART"])
COUNT = 10_007
OPS = {"sum": sum, "max": lambda arrays: numpy.maximum.reduce(list(arrays))}
COPY = {"to": 1, "from": 2, "inside": 3}  # cudaMemcpyKind


def cuda(name, *arguments):
    code = getattr(CUDART, name)(*arguments)
    assert code == 0, f"{name}: {code}"


def new_stream():
    stream = ctypes.c_void_p()
    cuda("cudaStreamCreate", ctypes.byref(stream))
    return stream.value


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def sleep(_):
    time.sleep(0.05)


def make_late(array, elements, stream):
    """On the stream, after a while."""
    array.source = upload(Allocated(elements.shape, elements.dtype), elements)
    cuda("cudaLaunchHostFunc", ctypes.c_void_p(stream), sleep, None)
    cuda("cudaMemcpyAsync", ctypes.c_void_p(address_of(array)), ctypes.c_void_p(address_of(array.source)), ctypes.c_size_t(elements.nbytes),
         COPY["inside"], ctypes.c_void_p(stream))


def synchronize(stream):
    cuda("cudaStreamSynchronize", ctypes.c_void_p(stream))


class Allocated:
    """What another library would make: an array in memory of its own."""

    def __init__(self, shape, dtype, stream=None, version=3, **changes):
        self.bytes = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
        memory = ctypes.c_void_p()
        cuda("cudaMalloc", ctypes.byref(memory), ctypes.c_size_t(self.bytes + 64))
        self.address = memory.value
        self.__cuda_array_interface__ = {"shape": shape, "typestr": numpy.dtype(dtype).str, "data": (self.address + 64, False),
                                         "version": version, "stream": stream, **changes}

    def __del__(self):
        cuda("cudaFree", ctypes.c_void_p(self.address))


class NeedsGradient:
    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("use var.detach()")


def address_of(array):
    return array.__cuda_array_interface__["data"][0]


def upload(array, elements):
    elements = numpy.ascontiguousarray(elements)
    cuda("cudaMemcpy", ctypes.c_void_p(address_of(array)), ctypes.c_void_p(elements.ctypes.data), ctypes.c_size_t(elements.nbytes), COPY["to"])
    cuda("cudaDeviceSynchronize")  # from pageable memory, a copy may return before it is over
    return array


def download(array):
    interface = array.__cuda_array_interface__
    elements = numpy.empty(interface["shape"], interface["typestr"])
    cuda("cudaMemcpy", ctypes.c_void_p(elements.ctypes.data), ctypes.c_void_p(address_of(array)), ctypes.c_size_t(elements.nbytes), COPY["from"])
    return elements


def communicator(rank, ranks, file, **options):
    return polyring.Communicator.from_store(FileStore(file), rank, ranks, timeout=TIME_LIMIT_S, **options)


def check(comm, dtype, count, allocate):
    """Results are new arrays, the input, or others."""
    everyones = [values(rank, count, dtype) for rank in range(comm.size)]
    own = upload(allocate((count,), dtype), everyones[comm.rank])
    for op, combine in OPS.items():
        numpy.testing.assert_array_equal(download(comm.allreduce(own, op=op)), combine(everyones), op)
    numpy.testing.assert_array_equal(download(own), everyones[comm.rank], "the input changed")
    gathered = comm.allgather(own)
    assert isinstance(gathered, polyring.DeviceArray) and gathered.shape == (comm.size, count) and gathered.dtype == dtype
    numpy.testing.assert_array_equal(download(gathered), everyones)
    part = allocate((count,), dtype)
    assert comm.reduce_scatter(gathered, part) is part
    numpy.testing.assert_array_equal(download(part), everyones[comm.rank] * dtype(comm.size))
    assert comm.allreduce(own, own) is own
    numpy.testing.assert_array_equal(download(own), sum(everyones))
    numpy.testing.assert_array_equal(download(comm.broadcast(upload(own, everyones[comm.rank]), comm.size - 1)), everyones[-1])


def check_bfloat16(comm):
    """Libraries call it as they like."""
    for typestr in ("<V2", "<f2"):
        array = Allocated((COUNT,), "uint16", typestr=typestr)
        array.dtype = "torch.bfloat16"
        upload(array, numpy.full(COUNT, 0x3F80, "uint16"))  # 1
        comm.allreduce(array, array)
        assert (download(array).view("uint16") == {2: 0x4000, 3: 0x4040}[comm.size]).all()
        refused(lambda: comm.allreduce(array), "a new array of bfloat16 needs the package ml_dtypes")


def check_streams(comm):
    stream = new_stream()

    class Cupy:
        ptr = stream

    class Torch:
        cuda_stream = stream

    class Core:
        def __cuda_stream__(self):
            return 0, stream

    array, gathered = comm.empty((comm.size, COUNT)), comm.empty((comm.size, COUNT))
    ones = numpy.ones((comm.size, COUNT), "f4")
    make_late(array, ones, stream)
    for times, given in enumerate((stream, Cupy(), Torch(), Core()), 1):
        assert comm.allreduce(array, array, stream=given) is array
        part = comm.reduce_scatter(array, op="max", stream=given)
        comm.allgather(part, gathered, stream=given)
        synchronize(stream)
        numpy.testing.assert_array_equal(download(gathered), ones * comm.size**times)
    comm.allreduce(array, array, op="avg", stream=0)
    comm.enqueued_wait()
    numpy.testing.assert_array_equal(download(array), ones * comm.size**4)
    del part  # waits for nothing
    # What another stream makes is waited for, whether the operation is run or enqueued.
    other = new_stream()
    for given in (None, stream):
        made = Allocated((COUNT,), "float32", stream=other)
        if given is not None:
            view = comm.empty(COUNT)
            made.__cuda_array_interface__["data"] = address_of(view), False
        make_late(made, ones[0], other)
        comm.allreduce(made, made, stream=given)
        comm.enqueued_wait()
        numpy.testing.assert_array_equal(download(made), ones[0] * comm.size)
    refused(lambda: comm.allreduce(array, array, stream="fast"), "the stream is 'fast'; give the number of a cudaStream_t")
    refused(lambda: comm.allreduce(array, array, stream=True), "the stream is True")
    refused(lambda: comm.allreduce(Allocated((3,), "float32"), array, stream=stream), "the output has")


def check_started(comm):
    made = [Allocated((COUNT,), "int32"), *(comm.empty(COUNT, "int32") for _ in range(3))]
    arrays = [upload(array, numpy.full(COUNT, comm.rank + i, "int32")) for i, array in enumerate(made)]
    requests = [comm.start_allreduce(array, array) for array in arrays]
    for i, request in reversed(list(enumerate(requests))):
        assert (download(request.wait()) == sum(range(comm.size)) + comm.size * i).all()
    sent = [upload(array, numpy.full(length, comm.rank, "f2")) for length in (4, 7) for array in (Allocated((length,), "f2"), comm.empty(length, "f2"))]
    requests = [comm.start_broadcast(array, root=1) for array in sent]
    assert comm.start_barrier().wait() is None
    for array, request in zip(sent, requests):
        assert (download(request.wait()) == 1).all()


def check_refusals(comm):
    """Each on all ranks, so that the communicator goes on."""
    array = comm.empty((3, 4))
    refused(lambda: comm.allreduce(numpy.ones(3)), f"the input is a NumPy array, in host memory, and this communicator's arrays are on GPU {comm.gpu}")
    refused(lambda: comm.allreduce([1, 2]), "the input is a list, and this communicator's arrays are on GPU")
    refused(lambda: comm.empty(3, "uint8"), "no operation takes elements of uint8")
    refused(lambda: comm.allreduce(Allocated((3,), "uint8")), "the input has elements of uint8; they may be float32")
    refused(lambda: comm.allreduce(Allocated((3,), ">f8")), "of the other byte order")
    refused(lambda: comm.allreduce(array, comm.empty((3, 4), "f8")), "the input has elements of float32, and the output of float64")
    refused(lambda: comm.allreduce(array, comm.empty(4)), "the output has 4 elements; it needs 12")
    refused(lambda: comm.allreduce(Allocated((3, 4), "f4", strides=(4, 12))), "the input is not contiguous (shape (3, 4), strides (4, 12)); give a contiguous")
    refused(lambda: comm.allreduce(Allocated((3,), "f4", mask=array)), "the input has a mask")
    refused(lambda: comm.allreduce(NeedsGradient()), "the input is a NeedsGradient that gives no __cuda_array_interface__ (RuntimeError('use var.detach()'))")
    readable = Allocated((3, 4), "f4")
    readable.__cuda_array_interface__["data"] = address_of(readable), True
    refused(lambda: comm.allreduce(array, readable), "the output may only be read; give an array that can be written")
    refused(lambda: comm.broadcast(readable), "the array may only be read")
    comm.allreduce(readable, array)
    host = numpy.ones(4, "f4")
    wrong = Allocated((4,), "f4", data=(host.ctypes.data, False))
    refused(lambda: comm.allreduce(wrong), f"the input is in host memory, and this communicator's buffers are on GPU {comm.gpu}; copy it there")
    cuda("cudaSetDevice", 5)
    elsewhere = Allocated((4,), "f4")
    cuda("cudaSetDevice", comm.gpu)
    refused(lambda: comm.allreduce(elsewhere, elsewhere), f"the input is on GPU 5, and this communicator's buffers are on GPU {comm.gpu}; copy it there")
    refused(lambda: comm.allreduce(array, elsewhere), "the output has 4 elements")
    refused(lambda: comm.alloc(3), f"this communicator's arrays are on GPU {comm.gpu}; make them by empty()")
    refused(lambda: comm.empty((-1, -2)), "there is no shape (-1, -2)")
    refused(lambda: comm.empty((1 << 33, 1 << 31)), "too large for any memory")
    comm.allreduce(Allocated((2, 1, 3), "f4", strides=(12, 99, 4), version=2))  # contiguous all the same


def check_memory(comm):
    """Arrays of empty() outlive their communicator, and are freed when they are gone."""
    kept = upload(comm.empty((3, 4), "float64"), numpy.full((3, 4), comm.rank, "f8"))
    interface = kept.__cuda_array_interface__
    assert interface["version"] == 3 and interface["shape"] == (3, 4) and interface["typestr"] == "<f8" and interface["strides"] is None, interface
    assert (kept.size, kept.nbytes, kept.ndim) == (12, 96, 2) and comm.empty(()).size == 1
    assert comm.empty((0, 3)).__cuda_array_interface__["data"] == (0, False)
    assert comm.allreduce(comm.empty(0)).size == 0
    stream = new_stream()
    for _ in range(5):
        comm.allreduce(comm.empty(1000), stream=stream)  # each waits until it is over
    gc.collect()
    assert len(comm._memory) == 1, comm._memory
    comm.allreduce(kept, kept, "max")
    comm.close()
    numpy.testing.assert_array_equal(download(kept), numpy.full((3, 4), comm.size - 1, "f8"))
    refused(lambda: comm.allreduce(kept, kept), "no such communicator")
    refused(lambda: comm.allreduce(kept, kept, stream=stream), "no such communicator")
    comm.close()


def arrays(rank, ranks, file):
    comm = communicator(rank, ranks, file, gpu=rank, check=True)
    assert comm.gpu == rank and "software GPU" in comm.transport, comm.transport
    assert comm.planning.startswith("by rules, since"), comm.planning
    for dtype in TYPES:
        check(comm, numpy.dtype(dtype).type, COUNT, Allocated if dtype == "float32" else comm.empty)
    check(comm, numpy.float16, 3, comm.empty)
    check_bfloat16(comm)
    check_streams(comm)
    check_started(comm)
    check_refusals(comm)
    check_memory(comm)


def host(rank, ranks, file):
    """A communicator for host memory, where there are GPUs."""
    with communicator(rank, ranks, file) as comm:
        assert comm.gpu is None
        refused(lambda: comm.allreduce(Allocated((3,), "f4")), "the input is on a GPU, and this communicator's arrays are in host memory; create it with gpu=")
        refused(lambda: comm.empty(3), "this communicator's arrays are in host memory; make them by alloc(), or create it with gpu=")
        refused(lambda: comm.allreduce(numpy.ones(3), stream=0), "this communicator's buffers are in host memory, and no stream's")
        comm.enqueued_wait()  # nothing was
        assert comm.allreduce(numpy.ones(3))[0] == ranks
    refused(lambda: communicator(0, 1, file, prefix="a", gpu=99), "there is no GPU 99: this process sees 6 GPUs", polyring.Result.NOT_AVAILABLE)
    refused(lambda: communicator(0, 1, file, prefix="b", gpu=-1), "there is no GPU -1; give one from 0 on, or None")


def ended(rank, ranks, file):
    """The last rank enqueues nothing and ends; the others' streams wait for it, and no longer than the time limit."""
    store = FileStore(file)
    store.set(f"here/{rank}", b"")
    store.wait([f"here/{other}" for other in range(ranks)], timedelta(seconds=TIME_LIMIT_S))  # else one may be up too late for the other
    comm = polyring.Communicator.from_store(store, rank, ranks, timeout=2, gpu=rank)
    array = upload(comm.empty(COUNT), numpy.ones(COUNT, "f4"))
    comm.allreduce(array, array, stream=0)
    comm.enqueued_wait()
    if rank == ranks - 1:
        os._exit(0)
    comm.allreduce(array, array, stream=0)
    refused(comm.enqueued_wait, "rank", polyring.Result.TIMEOUT)
    refused(comm.barrier, "rank", polyring.Result.TIMEOUT)
    comm.close()


if __name__ == "__main__":
    own = int(sys.argv[2])
    globals()[sys.argv[1]](own, int(sys.argv[3]), sys.argv[4])
    print(f"rank {own}: all is well", flush=True)
