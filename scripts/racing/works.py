"""What is raced: a work for each line of the goals, and the launches of each library that race in it."""

import dataclasses

FRACTION_OF_MEMORY = 0.7  # of the memory-bandwidth bound, on one host
OWN_CHOICE = "mpi"  # the algorithm that the MPI chooses itself


@dataclasses.dataclass(frozen=True)
class Goal:
    """For the best contender's time over Polyring's: at least `ratio`; None: above 1 beyond doubt."""

    ratio: float | None = None
    of_bound: float | None = None  # Polyring's time is at most so many times the bound

    def text(self):
        return "> 1, sure" if self.ratio is None else f">= {self.ratio:g}"

    def met_by(self, ratio):
        return ratio.low > 1 if self.ratio is None else ratio.median >= self.ratio


@dataclasses.dataclass(frozen=True)
class Launch:
    """One library in one configuration, which runs beside Polyring built with this MPI."""

    name: str
    mpi: str  # as scripts/emulate --mpi
    options: tuple = ()  # of its mpirun
    contenders: tuple = (OWN_CHOICE, f"{OWN_CHOICE}:all")  # as polyring --algorithm
    between_hosts: bool = False  # only in works on emulated hosts

    @property
    def has_gloo(self):
        return any(name.startswith("gloo:") for name in self.contenders)


CMA = ("--mca", "btl_vader_single_copy_mechanism", "cma")
NO_CMA = ("--mca", "btl_vader_single_copy_mechanism", "none")
LAUNCHES = (
    Launch("openmpi", "openmpi", CMA),
    Launch("openmpi-no-cma", "openmpi", NO_CMA),
    Launch("mpich", "mpich"),
    Launch("mpich-no-rendezvous", "mpich", ("-genv", "UCX_RNDV_THRESH", "inf"), between_hosts=True),
    Launch("gloo", "openmpi", CMA, ("gloo:all",)),  # alone: small payloads of all others take longer beside its threads
)


@dataclasses.dataclass(frozen=True)
class Hosts:
    """Where ranks are: on this host, or on the emulated ones that `options` of scripts/emulate make."""

    ranks: int
    options: tuple = ()

    @property
    def emulated(self):
        return bool(self.options)


def host(ranks):
    return Hosts(ranks)


def cluster(nodes, per_node, *options, rate="200mbit"):
    shape = ("--nodes", str(nodes), "--ranks-per-node", str(per_node), "--rate", rate)
    return Hosts(nodes * per_node, shape + options)


@dataclasses.dataclass(frozen=True)
class Work:
    name: str
    what: str
    hosts: Hosts
    goal: Goal
    command: tuple  # of polyring, without the contenders and the number of iterations
    iterations: int
    warmup: int | None = 1  # None: the command has none
    quick: tuple = ()  # in place of `command` with --quick
    heat: tuple = ()  # a cheaper command that finds the contenders that have a chance, all options given; empty: all race

    @property
    def launches(self):
        return [launch for launch in LAUNCHES if self.hosts.emulated or not launch.between_hosts]

    @property
    def placements(self):
        return ("step",) if self.command[0] == "train" else ("out-of-place", "in-place")

    def shares_heat(self, one, other):
        """Whether these launches have one heat. What CMA changes inside a host decides there, but not between hosts."""
        return one == other or (self.hosts.emulated and (one.mpi, one.contenders) == (other.mpi, other.contenders))


def sizes(size, *options):
    return ("allreduce", "-b", size, "-e", size, *options)


def steps(bucket):
    return ("train", "--model", "resnet50", "--bucket", bucket, "--no-overlap", "--compute-ms", "1", "-o", "sum")


def host_work(name, what, ranks, size, goal, iterations, *options):
    """The heat of large payloads is at their own size, since each algorithm has sizes that it is good at."""
    large = size.endswith("M")
    return Work(name, what, host(ranks), goal, sizes(size, *options), iterations, 3, sizes("1M" if large else size, *options),
                sizes(size, *options, "-n", "2", "-w", "1") if large else ())


CLUSTER_HEAT = sizes("4M", "-n", "1", "-w", "0")


def cluster_work(name, what, hosts, size, goal, iterations):
    """With large payloads the slowest contenders need a minute for each iteration: those race at a quarter of it only."""
    large = size.endswith("M")
    return Work(name, what, hosts, goal, sizes(size), iterations, 1, sizes("1M" if large else size),
                CLUSTER_HEAT if large else ())


AHEAD = Goal()
NEAR_BOUND = Goal(of_bound=1.25)

WORKS = (
    host_work("host-64M-library", "2 ranks on this host, 64 MiB, the library's own buffers", 2, "64M",
              Goal(3.5, 1 / FRACTION_OF_MEMORY), 20, "--buffers", "library"),
    host_work("host-64M-malloc", "2 ranks on this host, 64 MiB, buffers from malloc", 2, "64M", Goal(2.0), 20,
              "--buffers", "malloc"),
    host_work("host-1M", "2 ranks on this host, 1 MiB", 2, "1M", Goal(1.5), 200),
    host_work("host-8B", "2 ranks on this host, 8 B", 2, "8", Goal(1.0), 1000),
    host_work("host-1K", "2 ranks on this host, 1 KiB", 2, "1K", Goal(1.0), 1000),
    host_work("host-16M-4ranks", "4 ranks on this host, 16 MiB", 4, "16M", Goal(1.5), 20),
    host_work("host-16M-8ranks", "8 ranks on this host, 16 MiB", 8, "16M", Goal(1.5), 20),
    cluster_work("cluster-4x4-16M", "4 hosts x 4 ranks, 16 MiB", cluster(4, 4), "16M", Goal(1.7, 1.15), 6),
    # Of six pairs the interval is all of them, and a lead of a few percent is in doubt by a single packet that is lost.
    cluster_work("cluster-2x2", "2 hosts x 2 ranks, 16 MiB", cluster(2, 2), "16M", NEAR_BOUND, 12),
    cluster_work("cluster-4x2", "4 hosts x 2 ranks, 16 MiB", cluster(4, 2), "16M", NEAR_BOUND, 6),
    cluster_work("cluster-8x2", "8 hosts x 2 ranks, 16 MiB", cluster(8, 2), "16M", NEAR_BOUND, 6),
    # Eight links at 200 Mbit/s carry more than two cores can send: this shows the algorithms, that one the cores.
    cluster_work("cluster-8x2-50mbit", "8 hosts x 2 ranks at 50 Mbit/s, 16 MiB", cluster(8, 2, rate="50mbit"), "16M",
                 NEAR_BOUND, 4),
    cluster_work("cluster-3x3", "3 hosts x 3 ranks, 16 MiB", cluster(3, 3), "16M", NEAR_BOUND, 6),
    cluster_work("cluster-racks", "2 racks of 2 hosts x 2 ranks behind half-rate uplinks, 16 MiB",
                 cluster(4, 2, "--racks", "2", "--uplink-rate", "200mbit"), "16M", NEAR_BOUND, 6),
    cluster_work("cluster-4x4-8K", "4 hosts x 4 ranks, 8 KiB", cluster(4, 4), "8K", AHEAD, 100),
    cluster_work("cluster-4x4-64K", "4 hosts x 4 ranks, 64 KiB", cluster(4, 4), "64K", AHEAD, 50),
    Work("cluster-4x4-resnet50-fused", "4 hosts x 4 ranks, ResNet-50's gradients in buckets of 64 MiB", cluster(4, 4),
         AHEAD, steps("fused:64MiB"), 6, None, sizes("1M"), CLUSTER_HEAT),
    Work("cluster-4x4-resnet50-per-tensor", "4 hosts x 4 ranks, ResNet-50's 161 gradients one by one", cluster(4, 4),
         AHEAD, steps("per-tensor"), 6, None, sizes("16K"),
         ("allreduce", "-b", "16K", "-e", "1M", "-f", "64", "-n", "1", "-w", "0")),
)
