#!/usr/bin/env -S python3 -B
"""Trains a ResNet-18 by DistributedDataParallel, and prints images per second with gloo, with MPI where PyTorch has it, and with
Polyring, once as a hook and once as the backend. They take turns, step by step. Images are random; losses must be gloo's, to rounding.

    python3 train_resnet.py                     # 4 processes on this machine
    python3 train_resnet.py --buckets           # the allreduces of the gradients' buckets alone
    mpirun -np 4 python3 train_resnet.py        # also with MPI, where this PyTorch was built with it

Exit codes: 0 trained; 5 no PyTorch, or no Polyring, here; 6 bad options; 7 losses differ from gloo's.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

NOT_AVAILABLE, USAGE, WRONG = 5, 6, 7
try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    import polyring.torch
except ImportError as error:
    print(f"train_resnet: skipped: {sys.executable} lacks something ({error}); see docs/python.md", file=sys.stderr)
    sys.exit(NOT_AVAILABLE)

WARM_UP = 2  # steps; DistributedDataParallel arranges its buckets after the first
# Sums in another order differ in the last bits of float32, and each step amplifies that 30 times or more: the first are compared.
COMPARED = 3  # steps
MOST_DIFFERENCE = 1e-3
# Of fewer, not even the smallest and the largest make a 95 % interval of the median: 1 - 2 * 0.5^5 = 0.94.
FEWEST = 6  # steps


class Block(nn.Module):
    """Two convolutions, and the input added to what they make."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))
        self.shortcut = nn.Identity()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet18():
    """He et al., "Deep residual learning for image recognition", table 1: 11,689,512 parameters."""
    torch.manual_seed(18)
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width in (64, 128, 256, 512):
        layers += [Block(before, width, 1 if width == 64 else 2), Block(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class Method:
    """A way to average gradients: a process group, and perhaps a hook."""

    def __init__(self, name, group, hook=None):
        self.name, self.group, self.hook = name, group, hook
        self.times, self.losses = [], []

    def prepare(self):
        self.model = DistributedDataParallel(resnet18(), process_group=self.group)
        if self.hook is not None:
            self.model.register_comm_hook(self.hook, polyring.torch.allreduce_hook)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def step(self, images, labels):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def allreduce(self, buckets):
        """Sums, or means with a hook."""
        if self.hook is not None:
            return [future.wait() for future in [self.hook.start(i, bucket) for i, bucket in enumerate(buckets)]]
        for work in [dist.all_reduce(bucket, group=self.group, async_op=True) for bucket in buckets]:
            work.wait()
        return buckets


def methods_here(started_by_mpi):
    """And why others are not."""
    gloo, own = dist.group.WORLD, dist.new_group(backend="polyring")
    methods, skipped = [Method("gloo", gloo)], []
    if not dist.is_mpi_available():
        skipped.append("mpi: skipped: this PyTorch was built without it")
    elif not started_by_mpi:
        skipped.append("mpi: skipped: start this by mpirun")
    else:
        methods.append(Method("mpi", dist.new_group(backend="mpi")))
    return [*methods, Method("polyring, hook", gloo, polyring.torch.HookState(gloo)), Method("polyring, backend", own)], skipped


def timed(action):
    """What it takes on the slowest rank."""
    dist.barrier()
    begin = time.perf_counter()
    action()
    took = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return took.item()


def by_turns(methods, rounds, action):
    for number in range(rounds + WARM_UP):
        for method in methods[number % len(methods):] + methods[:number % len(methods)]:
            took = timed(lambda: action(method, number))
            if number >= WARM_UP:
                method.times.append(took)


def train(methods, options):
    for method in methods:
        method.prepare()
    generator = torch.Generator().manual_seed(dist.get_rank())
    batches = [(torch.randn(options.batch, 3, options.image, options.image, generator=generator),
                torch.randint(1000, (options.batch,), generator=generator)) for _ in range(options.steps + WARM_UP)]
    by_turns(methods, options.steps, lambda method, number: method.step(*batches[number]))
    gloo = torch.tensor(methods[0].losses[:COMPARED])
    return max((torch.tensor(method.losses[:COMPARED]) / gloo - 1).abs().max().item() for method in methods)


def bucket_sizes():
    """As DistributedDataParallel makes them from its second step on."""
    sizes = []

    def note(_, bucket):
        sizes.append(bucket.buffer().numel())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    model = DistributedDataParallel(resnet18())
    model.register_comm_hook(None, note)
    for _ in range(2):
        sizes.clear()
        model(torch.randn(2, 3, 32, 32)).sum().backward()
    return sizes


def allreduce_buckets(methods, options):
    ranks, sizes = dist.get_world_size(), bucket_sizes()
    # Whole numbers, whose sums and means of 2, 4, 8 ranks are exact.
    fresh = [(torch.arange(size) % 13 + dist.get_rank()).float() for size in sizes]
    expected = [(torch.arange(size) % 13).float() + (ranks - 1) / 2 for size in sizes]
    worst = 0.0
    for method in methods:
        results = method.allreduce([bucket.clone() for bucket in fresh])
        scale = 1 if method.hook is not None else ranks
        worst = max(worst, *((result / scale - right).abs().max().item() for result, right in zip(results, expected)))
    zeros = [torch.zeros(size) for size in sizes]
    by_turns(methods, options.steps, lambda method, _: method.allreduce(zeros))
    return worst, sizes


def show(methods, skipped, text):
    for line in skipped:
        print(line)
    gloo = methods[0].times
    for method in methods:
        ratios = [own / other for own, other in zip(method.times, gloo)]
        print(f"{method.name:18} {text(statistics.median(method.times))}, {statistics.median(ratios):.2f} of gloo's time (median of {len(ratios)})")
    if len(gloo) < FEWEST:
        print(f"These are too few steps to compare: give --steps {FEWEST} or more.")


def run_rank(options, rank, ranks, method):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=ranks)
    methods, skipped = methods_here(method == "env://")
    if options.buckets:
        worst, sizes = allreduce_buckets(methods, options)
        if rank == 0:
            print(f"Allreduces of ResNet-18's {len(sizes)} buckets, {', '.join(f'{4 * size / 1e6:.1f}' for size in sizes)} MB; {ranks} processes")
            show(methods, skipped, lambda time: f"{time * 1e3:8.1f} ms")
            print(f"The means are off by at most {worst:.1g}.")
    else:
        worst = train(methods, options)
        if rank == 0:
            parameters = sum(parameter.numel() for parameter in resnet18().parameters())
            print(f"ResNet-18, {parameters:,} parameters; {ranks} processes with {options.batch} images of {options.image} x {options.image}")
            show(methods, skipped, lambda time: f"{ranks * options.batch / time:8.1f} images/s")
            print(f"The losses of the first {COMPARED} steps differ from gloo's by at most {worst:.1g} of theirs.")
    dist.barrier()
    sys.stdout.flush()
    for one in methods:
        if one.hook is not None:
            one.hook.close()
    dist.destroy_process_group()
    return 0 if worst <= MOST_DIFFERENCE else WRONG


def start_ranks(ranks):
    """Each is this script again, with its rank; the exit code is that of the first that failed."""
    with tempfile.TemporaryDirectory() as folder:
        variables = [{"POLYRING_RANK": str(rank), "POLYRING_STORE": f"file://{folder}/store"} for rank in range(ranks)]
        processes = [subprocess.Popen([sys.executable, "-B", *sys.argv], env=os.environ | own) for own in variables]
        try:
            while all(code in (None, 0) for code in (process.poll() for process in processes)):
                if all(process.returncode == 0 for process in processes):
                    return 0
                time.sleep(0.05)
            return next(process.returncode for process in processes if process.returncode)
        finally:
            for process in processes:
                process.kill()


def whole(least, most):
    def parse(text):
        if not text.isdecimal() or not least <= int(text[:9]) <= most:
            raise argparse.ArgumentTypeError(f"needs a number, {least} to {most}, not '{text}'")
        return int(text)

    return parse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"train_resnet: {message}; see train_resnet.py --help", file=sys.stderr)
        sys.exit(USAGE)


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", metavar="N", type=whole(1, 64), default=4, help="processes; 4 when not given; mpirun has its own number")
    parser.add_argument("--steps", metavar="N", type=whole(1, 100_000), default=10, help="that count, of each method; 10 when not given")
    parser.add_argument("--batch", metavar="N", type=whole(2, 4096), default=4, help="images of a process, 2 or more; 4 when not given")
    parser.add_argument("--image", metavar="N", type=whole(64, 1024), default=64, help="pixels of an image's side, 64 or more; 64 when not given")
    parser.add_argument("--buckets", action="store_true", help="only the allreduces of the buckets")
    options = parser.parse_args()
    by_mpi = next((names for names in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")) if names[0] in os.environ), None)
    if by_mpi:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500")
        return run_rank(options, *(int(os.environ[name]) for name in by_mpi), "env://")
    if "POLYRING_RANK" in os.environ:
        return run_rank(options, int(os.environ["POLYRING_RANK"]), options.ranks, os.environ["POLYRING_STORE"])
    return start_ranks(options.ranks)


if __name__ == "__main__":
    sys.exit(main())
