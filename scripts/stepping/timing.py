"""Times training steps: forward pass, backward pass with the moment at which each gradient is ready, optimizer."""

import dataclasses
import statistics
import time

import torch

from racing import results
from stepping.errors import Refused


class CpuClock:
    def now(self):
        return time.perf_counter()

    def ms(self, begin, end):
        return 1e3 * (end - begin)

    def settle(self):
        pass


class CudaClock:
    """Moments on the GPU's stream: the host is ahead of it."""

    def now(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def ms(self, begin, end):
        return begin.elapsed_time(end)

    def settle(self):
        torch.cuda.synchronize()


@dataclasses.dataclass
class Times:
    """Of all iterations that count: milliseconds, and for each gradient the parts of the backward pass after which it was ready."""

    forward_ms: list = dataclasses.field(default_factory=list)
    backward_ms: list = dataclasses.field(default_factory=list)
    optimizer_ms: list = dataclasses.field(default_factory=list)
    ready: dict = dataclasses.field(default_factory=dict)


class Stepper:
    def __init__(self, model, batch, optimizer, device, mixed):
        self.model, self.batch, self.optimizer = model, batch, optimizer
        self.device = device
        self.clock = CudaClock() if device == "cuda" else CpuClock()
        self.type = mixed_type(device) if mixed else None
        self.scaler = scaler(self.type == torch.float16)
        self.moments = {}
        self.kept = [self.watch(name, parameter) for name, parameter in trained(model)]

    def watch(self, name, parameter):
        """Notes when the gradient is complete: after the last of its parts, where several layers share a weight."""

        def ready(*_):
            self.moments[name] = self.clock.now()

        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # since PyTorch 2.1
            return parameter.register_post_accumulate_grad_hook(ready)
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        accumulator.register_hook(ready)
        return accumulator  # it and its hook live as long as this

    def loss(self):
        with torch.autocast(self.device, dtype=self.type, enabled=self.type is not None):
            loss = self.model(*self.batch)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise Refused("the model does not return its loss, a tensor of one number; let its forward() compute the loss")
        return loss

    def step(self, times):
        """One step, which is added to `times`."""
        self.optimizer.zero_grad(set_to_none=True)
        self.moments.clear()
        self.clock.settle()
        begin = self.clock.now()
        loss = self.loss()
        forward = self.clock.now()
        self.scaler.scale(loss).backward()
        backward = self.clock.now()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        end = self.clock.now()
        self.clock.settle()
        for name, _ in trained(self.model):
            if name not in self.moments:
                raise Refused(f"{name} gets no gradient: the loss does not depend on it; leave it out, or freeze it")
        times.forward_ms.append(self.clock.ms(begin, forward))
        times.backward_ms.append(self.clock.ms(forward, backward))
        times.optimizer_ms.append(self.clock.ms(backward, end))
        for name, moment in self.moments.items():
            part = self.clock.ms(forward, moment) / times.backward_ms[-1]
            times.ready.setdefault(name, []).append(min(1.0, max(0.0, part)))


def scaler(enabled):
    if hasattr(torch.amp, "GradScaler"):  # since PyTorch 2.3, which warns of the other
        return torch.amp.GradScaler("cuda", enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)


def trained(model):
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]


def mixed_type(device):
    """bfloat16 where it is fast, else float16, whose loss is scaled."""
    if device == "cuda" and torch.cuda.get_device_capability()[0] < 8:
        return torch.float16
    return torch.bfloat16


def optimizer_of(model, adam):
    parameters = [parameter for _, parameter in trained(model)]
    if not parameters:
        raise Refused("the model has no parameter that is trained")
    return torch.optim.AdamW(parameters, lr=1e-4) if adam else torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


def measure(stepper, iterations, warmup, progress):
    for i in range(warmup):
        progress(f"warm-up {i + 1} of {warmup}")
        stepper.step(Times())
    times = Times()
    for i in range(iterations):
        progress(f"step {i + 1} of {iterations}")
        stepper.step(times)
    progress("")
    return times


def in_ready_order(times, elements):
    """Of each gradient its name, elements and the median part of the backward pass after which it was ready, in that order."""
    gradients = [{"name": name, "elements": elements[name], "ready": round(statistics.median(parts), 6)}
                 for name, parts in times.ready.items()]
    return sorted(gradients, key=lambda gradient: gradient["ready"])


def summary(samples):
    """Median with its 95 % interval, as in result files, and the samples."""
    estimate = results.estimate(samples)
    return {"median": round(estimate.median, 6), "low": round(estimate.low, 6), "high": round(estimate.high, 6),
            "samples": [round(sample, 6) for sample in samples]}
