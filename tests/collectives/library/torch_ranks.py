"""What one rank of torch_test.py does: torch_ranks.py WHAT RANK RANKS STORE, with a file that all ranks share as the store."""

import os
import sys
import threading
from datetime import timedelta

import polyring
import polyring.torch
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WHAT, RANK, RANKS, STORE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
TIME_LIMIT_S = 30
STEPS = 4
# A step's loss in float32, by sums in another order: a few units in the last place, amplified by the steps before.
ROUNDING = 1e-5


def begin(backend, timeout=TIME_LIMIT_S):
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{STORE}", rank=RANK, world_size=RANKS, timeout=timedelta(seconds=timeout))


def equal(one, other):
    assert torch.equal(one, other), f"{one} and {other}"


def refused(call, says, kind=RuntimeError):
    try:
        call()
    except kind as error:
        assert says in str(error), error
    else:
        raise AssertionError(f"not refused; expected: {says}")


def values(rank, count, dtype):
    """Small whole numbers: exact in every type, and their sums too."""
    return (torch.arange(count) * (rank + 2) % 7 - 2).to(dtype)


def collectives():
    begin("polyring")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        for count in (0, 3, 1001):
            everyones = torch.stack([values(rank, count, dtype) for rank in range(RANKS)])
            own = everyones[RANK].clone()
            dist.all_reduce(own)
            equal(own, everyones.sum(0).to(dtype))
            own = everyones[RANK].clone()
            dist.all_reduce(own, op=dist.ReduceOp.MAX)
            equal(own, everyones.max(0).values)
            gathered = [torch.empty(count, dtype=dtype) for _ in range(RANKS)]
            dist.all_gather(gathered, everyones[RANK].clone())
            equal(torch.stack(gathered), everyones)
            flat = torch.empty(RANKS * count, dtype=dtype)
            dist.all_gather_into_tensor(flat, everyones[RANK].clone())
            equal(flat, everyones.reshape(-1))
            output = torch.empty(count, dtype=dtype)
            dist.reduce_scatter(output, [values(RANK + part, count, dtype) for part in range(RANKS)])
            sums = [sum(values(rank + part, count, dtype) for rank in range(RANKS)) for part in range(RANKS)]
            equal(output, sums[RANK])
            dist.reduce_scatter_tensor(output, torch.cat([values(RANK + part, count, dtype) for part in range(RANKS)]))
            equal(output, sums[RANK])
            sent = everyones[RANK].clone()
            dist.broadcast(sent, src=RANKS - 1)
            equal(sent, everyones[RANKS - 1])
            own = everyones[RANK].clone()
            dist.reduce(own, dst=1)
            equal(own, everyones.sum(0).to(dtype) if RANK == 1 else everyones[RANK])
    objects()
    works()
    subgroups()
    refusals()
    dist.barrier()
    dist.destroy_process_group()
    assert "polyring" not in [thread.name for thread in threading.enumerate()], "a communicator was not ended"


def objects():
    """Of any number of bytes."""
    gathered = [None] * RANKS
    dist.all_gather_object(gathered, {"rank": RANK, "text": "x" * RANK})
    assert gathered == [{"rank": rank, "text": "x" * rank} for rank in range(RANKS)], gathered
    sent = [("from", RANK)]
    dist.broadcast_object_list(sent, src=1)
    assert sent == [("from", 1)], sent


def works():
    """Several at once, waited for in another order, some by nobody."""
    tensors = [torch.full((1000,), float(RANK + i)) for i in range(100)]
    started = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    future = started[50].get_future()
    for work in reversed(started[60:]):
        work.wait()
        assert work.is_completed() and work.is_success() and work.exception() is None
    future.wait()
    equal(future.value()[0], tensors[50])
    for i, tensor in enumerate(tensors):
        if i == 50 or i >= 60:
            equal(tensor, torch.full((1000,), float(sum(range(RANKS)) + RANKS * i)))
    then = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    equal(then.wait(), torch.full((3,), 2.0 * RANKS))


def subgroups():
    ranks = [0, RANKS - 1]
    group = dist.new_group(ranks, backend="polyring")
    if RANK in ranks:
        tensor = torch.tensor([RANK + 1])
        dist.all_reduce(tensor, group=group)
        equal(tensor, torch.tensor([1 + RANKS]))
        tensor = torch.tensor([RANK])
        dist.broadcast(tensor, src=RANKS - 1, group=group)
        equal(tensor, torch.tensor([RANKS - 1]))


def refusals():
    """Each of them on all ranks, so that the group goes on."""
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.uint8)), "does not combine elements of torch.uint8; convert it")
    elsewhere = torch.ones(3, device="meta")
    refused(lambda: polyring.torch.HookState().start(0, elsewhere), "polyring.torch is for CPU tensors, and this one is on meta; move it by .cpu()")
    refused(lambda: dist.all_reduce(torch.ones(3, 4).t()), "is not contiguous; give .contiguous()")
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), op=dist.ReduceOp.BXOR), "polyring has no operation BXOR; it has sum, avg")
    refused(lambda: dist.send(torch.ones(3), (RANK + 1) % RANKS), 'no send; use a group that torch.distributed.new_group(backend="gloo") makes')
    refused(lambda: dist.all_to_all_single(torch.ones(RANKS), torch.ones(RANKS)), "polyring has no all")
    refused(lambda: dist.all_gather_into_tensor(torch.ones(RANKS * 3), torch.ones(3, dtype=torch.float64)), "it needs")
    refused(lambda: polyring.torch.HookState(timeout=3), "timeout cannot be chosen")
    total = torch.ones(3)
    dist.all_reduce(total)
    equal(total, torch.full((3,), float(RANKS)))


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
                               torch.nn.Flatten(), torch.nn.Linear(128, 3000), torch.nn.ReLU(), torch.nn.Linear(3000, 10))


def losses(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(7 + RANK)
    found = []
    for _ in range(STEPS):
        images = torch.randn(8, 3, 12, 12, generator=generator)
        labels = torch.randint(10, (8,), generator=generator)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack([*found, *(parameter.detach().double().sum() for parameter in model.parameters())])


def training():
    """Of two buckets: the first is of 1 MiB, whatever the limit."""
    begin("gloo")
    of_gloo = losses(DistributedDataParallel(net(), bucket_cap_mb=0.05))
    for options in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}):
        state = polyring.torch.HookState(timeout=TIME_LIMIT_S)
        hooked = DistributedDataParallel(net(), bucket_cap_mb=0.05, **options)
        hooked.register_comm_hook(state, polyring.torch.allreduce_hook)
        found = losses(hooked)
        assert torch.allclose(found, of_gloo, rtol=ROUNDING, atol=ROUNDING), f"hook, {options}: {found - of_gloo}"
        assert state.calls > STEPS, "the hook was not used"
        group = dist.new_group(backend="polyring")
        found = losses(DistributedDataParallel(net(), bucket_cap_mb=0.05, process_group=group, **options))
        assert torch.allclose(found, of_gloo, rtol=ROUNDING, atol=ROUNDING), f"backend, {options}: {found - of_gloo}"
        state.close()
    lent = polyring.torch.HookState(group)
    hooked = DistributedDataParallel(net(), bucket_cap_mb=0.05, process_group=group)
    hooked.register_comm_hook(lent, polyring.torch.allreduce_hook)
    assert torch.allclose(losses(hooked), of_gloo, rtol=ROUNDING, atol=ROUNDING), "hook and backend"
    lent.close()
    dist.destroy_process_group()


def failure():
    """The last rank leaves; what the others wait for fails with a sentence, and their processes live."""
    begin("polyring", timeout=3)
    gone = RANK == RANKS - 1
    model, hooked = DistributedDataParallel(net()), DistributedDataParallel(net())
    hooked.register_comm_hook(polyring.torch.HookState(), polyring.torch.allreduce_hook)
    losses(model)
    losses(hooked)
    if gone:
        os._exit(0)
    refused(lambda: losses(hooked), "rank")
    refused(lambda: losses(model), "rank")
    refused(lambda: dist.all_reduce(torch.ones(3)), "rank")
    work = dist.all_reduce(torch.ones(3), async_op=True)
    refused(work.wait, "rank", polyring.Error)
    assert work.is_completed() and not work.is_success() and work.exception().code != polyring.Result.SUCCESS
    refused(lambda: work.get_future().wait(), "rank")


globals()[WHAT]()
print(f"rank {RANK}: all is well")
