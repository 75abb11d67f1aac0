"""What one rank of python_test.py does: python_ranks.py WHAT RANK RANKS FILE, with a file by which the ranks find each other; under
MPI: python_ranks.py mpi4py."""

import gc
import os
import pathlib
import signal
import sys
import threading
import time

import numpy
import polyring

TIME_LIMIT_S = 20
TYPES = ["float32", "float64", "float16", "int32", "int64"]


class FileStore:
    """Of keys in a folder; what polyring needs of a store."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)

    def set(self, key, value):
        path = self.folder / key.replace("/", ":")
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(value)
        new.rename(path)

    def get(self, key):
        return (self.folder / key.replace("/", ":")).read_bytes()

    def wait(self, keys, limit):
        end = time.monotonic() + limit.total_seconds()
        while not all((self.folder / key.replace("/", ":")).exists() for key in keys):
            if time.monotonic() > end:
                raise TimeoutError(f"nobody has set {keys}")
            time.sleep(0.01)


class MemoryStore:
    """Of threads, in memory; Python makes no weak reference to it."""

    __slots__ = ("changed", "values")

    def __init__(self):
        self.values = {}
        self.changed = threading.Condition()

    def set(self, key, value):
        with self.changed:
            assert key not in self.values, f"{key} is set twice"
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key):
        return self.values[key]

    def wait(self, keys, limit):
        with self.changed:
            if not self.changed.wait_for(lambda: all(key in self.values for key in keys), limit.total_seconds()):
                raise TimeoutError(f"nobody has set {keys}")


def refused(call, says, code=polyring.Result.ARGUMENT):
    try:
        call()
    except polyring.Error as error:
        assert says in str(error) and error.code == code, f"{error} ({error.code!r}), not: {says}"
        assert isinstance(error, ValueError) == (code == polyring.Result.ARGUMENT)
    else:
        raise AssertionError(f"not refused; expected: {says}")


def values(rank, count, dtype):
    """Small whole numbers: exact in every type, and their sums too."""
    return (numpy.arange(count) * (rank + 2) % 7 - 2).astype(dtype)


def check(comm, dtype, count, allocate):
    everyones = numpy.stack([values(rank, count, dtype) for rank in range(comm.size)])
    own = allocate(count, dtype)
    own[:] = everyones[comm.rank]
    combined = {"sum": everyones.sum(0, dtype=dtype), "prod": everyones.prod(0, dtype=dtype), "min": everyones.min(0), "max": everyones.max(0)}
    for op, expected in combined.items():
        numpy.testing.assert_array_equal(comm.allreduce(own, op=op), expected)
        numpy.testing.assert_array_equal(own, everyones[comm.rank], "the input changed")
    result = comm.allreduce(own, own)
    assert result is own
    numpy.testing.assert_array_equal(own, combined["sum"])
    parts = allocate(count * comm.size, dtype).reshape(comm.size, count)
    parts[:] = [values(comm.rank + part, count, dtype) for part in range(comm.size)]
    mine = sum(values(comm.rank + rank, count, dtype) for rank in range(comm.size))
    numpy.testing.assert_array_equal(comm.reduce_scatter(parts), mine)
    numpy.testing.assert_array_equal(comm.allgather(everyones[comm.rank]), everyones)
    sent = everyones[comm.rank].copy()
    numpy.testing.assert_array_equal(comm.broadcast(sent, comm.size - 1), everyones[-1])
    comm.barrier()


def check_started(comm):
    """Several at once, waited for from the last; of one the program forgets the arrays."""
    inputs = [numpy.full(3000, float(comm.rank + i)) for i in range(10)]
    requests = [comm.start_allreduce(array) for array in inputs]
    comm.start_allgather(numpy.ones(50_000))
    scattered = comm.start_reduce_scatter(numpy.ones((comm.size, 5)))
    sent = [numpy.full(length, comm.rank, dtype) for length, dtype in ((3000, "i4"), (7, "f2"))]  # the second in no whole words
    broadcasts = [comm.start_broadcast(array, root) for root, array in enumerate(sent)]
    gc.collect()
    for i, request in reversed(list(enumerate(requests))):
        numpy.testing.assert_array_equal(request.wait(), numpy.full(3000, float(sum(range(comm.size)) + comm.size * i)))
    while not scattered.test():
        pass
    numpy.testing.assert_array_equal(scattered.wait(), numpy.full(5, float(comm.size)))
    for root, (array, request) in enumerate(zip(sent, broadcasts)):
        assert request.wait() is array
        numpy.testing.assert_array_equal(array, numpy.full(len(array), root))
    comm.barrier()


def check_started_barrier(comm, store):
    """The last rank starts it when the others have seen that it is not over."""
    others = [f"not over/{rank}" for rank in range(comm.size - 1)]
    if comm.rank == comm.size - 1:
        store.wait(others, polyring_limit())
    barrier = comm.start_barrier()
    if comm.rank < comm.size - 1:
        for _ in range(100):
            assert not barrier.test(), "over before all ranks have started it"
        store.set(others[comm.rank], b"")
    assert barrier.wait() is None and barrier.test()


def check_refusals(comm):
    """Each on all ranks, so that the communicator goes on."""
    refused(lambda: comm.allreduce([1, 2]), "the input is a list; give a NumPy array")
    refused(lambda: comm.allreduce(numpy.ones(3, "uint8")), "the input has elements of uint8; they may be float32, float64")
    refused(lambda: comm.allreduce(numpy.ones(3, ">f8")), "of the other byte order")
    refused(lambda: comm.allreduce(numpy.ones((3, 4)).T), "the input is not contiguous (shape (4, 3)")
    refused(lambda: comm.allreduce(numpy.ones(3), numpy.ones(4)), "the output has 4 elements; it needs 3")
    refused(lambda: comm.allreduce(numpy.ones(3), numpy.ones(3, "f4")), "the input has elements of float64, and the output of float32")
    refused(lambda: comm.allreduce(numpy.ones(3), op="mean"), "there is no operation 'mean'; it is one of sum")
    refused(lambda: comm.reduce_scatter(numpy.ones(comm.size + 1)), "cannot share equally")
    refused(lambda: comm.broadcast(numpy.ones(3), root=comm.size), "there is no root")
    refused(lambda: comm.start_broadcast(numpy.ones(3), root=-1), "there is no root")
    readable = numpy.ones(3)
    readable.flags.writeable = False
    refused(lambda: comm.broadcast(readable), "may only be read")
    refused(lambda: comm.alloc((1 << 33, 1 << 31)), "too large for any memory")
    refused(lambda: comm.alloc(3, dtype="uint8"), "no operation takes elements of uint8; give one of float32, float64")
    refused(lambda: comm.alloc(3, dtype=">f4"), "no operation takes elements of >f4")
    overlapping = numpy.ones(10)
    refused(lambda: comm.allreduce(overlapping[:8], overlapping[2:]), "overlap")


def check_memory(comm):
    """Arrays of alloc() outlive their communicator."""
    kept = comm.alloc((3, 4), "float64")
    assert kept.shape == (3, 4) and kept.ctypes.data % 4096 == 0
    kept[:] = comm.rank
    comm.allreduce(kept, kept, "max")
    part = kept[1:, 2]
    del kept
    for _ in range(1000):
        comm.alloc(1 << 20)  # freed each time: else this is 4 GB
    assert len(comm._memory) == 1, comm._memory
    comm.close()
    numpy.testing.assert_array_equal(part, [comm.size - 1] * 2)
    refused(comm.barrier, "no such communicator")
    comm.close()


def aligned(count, dtype):
    """An array at the beginning of a page."""
    raw = numpy.empty(count * numpy.dtype(dtype).itemsize + 4096, "uint8")
    begin = -raw.ctypes.data % 4096
    return raw[begin:begin + count * numpy.dtype(dtype).itemsize].view(dtype)


def check_registered(comm):
    array = aligned(4096, "float64")
    expected = numpy.full(4096, float(sum(range(comm.size))))
    for _ in range(2):
        array[:] = comm.rank
        with comm.register(array) as same:
            assert same is array and (array == comm.rank).all()
            refused(lambda: comm.register(array[:512]), "that are registered")
            comm.allreduce(array, array)
        numpy.testing.assert_array_equal(array, expected)
    kept = comm.register(array)
    kept.deregister()
    kept.deregister()
    numpy.testing.assert_array_equal(array, expected)
    for other, says in ((array[1:513], "are not whole pages of 4096 bytes"), (array[:1], "are not whole pages"), (array[:0], "0 bytes"),
                        (comm.alloc(1024), "polyring_mem_alloc()'s"), ([1.0], "the array is a list; give a NumPy array"),
                        (array[::2], "the array is not contiguous"), (numpy.frombuffer(bytes(8)), "the array may only be read")):
        refused(lambda: comm.register(other), says)
    refused(lambda: comm.register(array[1:513]), "the array cannot be registered: the 4096 bytes")
    refused(lambda: comm.register(array[1:513]), "or take one of alloc()")


def check_registered_at_the_end(comm, end):
    """Also where arrays of alloc() keep the communicator."""
    array = aligned(1024, "float64")
    array[:] = comm.rank
    registration = comm.register(array)
    assert registration.array is array
    comm.barrier()
    kept = comm.alloc(5)
    end(comm)
    with open("/proc/self/maps", encoding="ascii") as maps:
        lines = [line.split() for line in maps]
    found = [line for line in lines for begin, after in [line[0].split("-")] if int(begin, 16) <= array.ctypes.data < int(after, 16)]
    assert [line[1] for line in found] == ["rw-p"], found
    assert (array == comm.rank).all()
    registration.deregister()
    del kept


def arrays(rank, ranks, file):
    store = FileStore(file)
    with polyring.Communicator.from_store(store, rank, ranks, timeout=TIME_LIMIT_S) as comm:
        assert (comm.rank, comm.size, comm.hosts) == (rank, ranks, 1) and "shared memory" in comm.transport, comm.transport
        assert comm.planning.startswith("by rules, since"), comm.planning
        for dtype in TYPES:
            for count in (0, 3, 1001):
                check(comm, dtype, count, numpy.empty)
        check(comm, "float32", 70_000, comm.alloc)
        check_started(comm)
        check_started_barrier(comm, store)
        check_refusals(comm)
        check_registered(comm)
        numpy.testing.assert_array_equal(comm.allreduce(numpy.full(3, rank, "f4"), op="avg"), numpy.full(3, (ranks - 1) / 2, "f4"))
        halves(comm)
        check_fork(comm)
    comm = polyring.Communicator.from_store(store, rank, ranks, timeout=TIME_LIMIT_S, check=True,
                                            transport="network")
    assert "shared" not in comm.transport
    for end in (polyring.Communicator.close, polyring.Communicator.abort):
        check_registered_at_the_end(polyring.Communicator.from_store(FileStore(file), rank, ranks, prefix=end.__name__, timeout=TIME_LIMIT_S), end)
    refused(lambda: comm.allreduce(numpy.ones(3 + rank)), "all ranks must call the same", polyring.Result.MISMATCH)
    check_memory(comm)


def check_fork(comm):
    """A child may not use the communicator, nor free its memory, which the parent has."""
    array = comm.alloc(1000)
    array[:] = 1
    child = os.fork()
    if child == 0:
        refused(comm.barrier, "a fork of the one that has made the communicator")
        del array
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the child has failed"
    numpy.testing.assert_array_equal(comm.allreduce(array, array), numpy.full(1000, float(comm.size)))


def halves(comm):
    try:
        import ml_dtypes
    except ImportError:
        return
    check(comm, ml_dtypes.bfloat16, 1001, numpy.empty)
    check(comm, ml_dtypes.bfloat16, 1001, comm.alloc)


def meetings(rank, ranks, file):
    """By an id, at an address, by an allgather, by a store of threads."""
    store = FileStore(file)

    def check_sum(comm):
        with comm:
            assert comm.allreduce(numpy.ones(1))[0] == ranks

    if rank == 0:
        store.set("id", polyring.unique_id())
    store.wait(["id"], polyring_limit())
    id = store.get("id")
    check_sum(polyring.Communicator.from_id(id, rank, ranks))
    refused(lambda: polyring.Communicator.from_id(id[1:], rank, ranks), "an id has 128 bytes, not 127")
    if rank == 0:
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            store.set("port", str(free.getsockname()[1]).encode())
    store.wait(["port"], polyring_limit())
    check_sum(polyring.Communicator.from_address(f"127.0.0.1:{store.get('port').decode()}", rank, ranks, secret="Of1Test"))
    rounds = iter(range(100))

    def allgather(own):
        number = next(rounds)
        store.set(f"allgather/{number}/{rank}", own)
        keys = [f"allgather/{number}/{other}" for other in range(ranks)]
        store.wait(keys, polyring_limit())
        return [store.get(key) for key in keys]

    check_sum(polyring.Communicator.from_allgather(allgather, rank, ranks))
    communicators_of_one_store()
    refused(lambda: polyring.Communicator.from_allgather(lambda own: [own], rank, ranks), f"must return {ranks} times 8 bytes", polyring.Result.CONNECTION)
    refused(lambda: polyring.Communicator.from_store(FileStore(f"{file}{rank}"), rank, ranks, timeout=0.2), "nobody has set", polyring.Result.TIMEOUT)
    refused(lambda: polyring.Communicator.from_store(store, ranks, ranks), "there is no rank")
    refused(lambda: polyring.Communicator.from_store(store, rank, ranks, transport="pigeon"), "it is one of automatic, shared, network")
    refused(lambda: polyring.Communicator.from_store(store, rank, ranks, timeout=-1), "a time limit of -1 seconds is impossible")


def communicators_of_one_store(ranks=2):
    """Ranks are threads; several communicators at once, of two prefixes."""
    store = MemoryStore()
    sums = []

    def rank_of(rank):
        made = [polyring.Communicator.from_store(store, rank, ranks, prefix=prefix, timeout=TIME_LIMIT_S) for prefix in ("a", "b", "a", "a")]
        sums.append([int(comm.allreduce(numpy.full(1, i))[0]) for i, comm in enumerate(made)])
        for comm in made:
            comm.close()

    threads = [threading.Thread(target=rank_of, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [[i * ranks for i in range(4)]] * ranks, sums


def polyring_limit():
    from datetime import timedelta

    return timedelta(seconds=TIME_LIMIT_S)


def killed(rank, ranks, file):
    """The last rank is killed; the others are told within the time limit, while another thread of theirs goes on."""
    comm = polyring.Communicator.from_store(FileStore(file), rank, ranks, timeout=2)
    data = comm.alloc(1 << 20)
    data[:] = 1
    counted = [0]

    def count():
        while counted[0] >= 0:
            counted[0] += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    comm.allreduce(data, data)
    if rank == ranks - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin, before = time.monotonic(), counted[0]
    try:
        while True:
            comm.allreduce(data, data, "max")
    except polyring.Error as error:
        assert error.code not in (polyring.Result.ARGUMENT, polyring.Result.INTERNAL), repr(error)
        code = error.code
    assert time.monotonic() - begin < TIME_LIMIT_S, "too late"
    assert counted[0] > before, "a call held the interpreter's lock"
    counted[0] = -1_000_000
    refused(comm.barrier, "", code)
    comm.close()


def mpi4py():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    with polyring.Communicator.from_mpi4py(world, timeout=TIME_LIMIT_S) as comm:
        check(comm, "float32", 1000, comm.alloc)
    half = world.Split(world.rank % 2)
    with polyring.Communicator.from_mpi4py(half, timeout=TIME_LIMIT_S) as comm:
        assert (comm.rank, comm.size) == (half.rank, half.size)
        check(comm, "float64", 10, numpy.empty)
    return world.rank


if __name__ == "__main__":
    if sys.argv[1] == "mpi4py":
        own = mpi4py()
    else:
        own = int(sys.argv[2])
        globals()[sys.argv[1]](own, int(sys.argv[3]), sys.argv[4])
    print(f"rank {own}: all is well", flush=True)
