"""Networks whose layers have the names of models/*.cpp, in plain torch.nn."""

import math

import torch
from torch import nn
from torch.nn import functional


class RmsNorm(nn.Module):
    def __init__(self, features, device):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features, device=device))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Net(nn.Module):
    """Layers by their dotted names. A subclass adds them in the order of the catalogue's definition, and its forward() takes a
    batch and returns the loss. On the device `meta` parameters have shapes, and no memory."""

    def __init__(self, device):
        super().__init__()
        self.device = device
        self.of_name = {}

    def __getitem__(self, name):
        return self.of_name[name]

    def holder(self, name):
        """The module in which the last part of a dotted name is registered, and that part."""
        *path, last = name.split(".")
        at = self
        for part in path:
            if part not in at._modules:
                at.add_module(part, nn.Module())
            at = at._modules[part]
        return at, last

    def add(self, name, layer):
        at, last = self.holder(name)
        at.add_module(last, layer)
        self.of_name[name] = layer

    def vector(self, name, features):
        at, last = self.holder(name)
        at.register_parameter(last, nn.Parameter(torch.zeros(features, device=self.device)))
        self.of_name[name] = getattr(at, last)

    def convolution(self, name, of, out, kernel=1, stride=1, padding=None, bias=False, dilation=1):
        """`kernel`: a number, or (height, width). Without `padding` the output is as large as the input over the stride."""
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        if padding is None:
            padding = (dilation * (height - 1) // 2, dilation * (width - 1) // 2)
        self.add(name, nn.Conv2d(of, out, (height, width), stride, padding, dilation, bias=bias, device=self.device))

    def doubling_convolution(self, name, of, out):
        """A transposed convolution, 3x3, to twice the height and width."""
        self.add(name, nn.ConvTranspose2d(of, out, 3, 2, 1, 1, device=self.device))

    def batch_norm(self, name, channels):
        self.add(name, nn.BatchNorm2d(channels, device=self.device))

    def group_norm(self, name, channels):
        self.add(name, nn.GroupNorm(32, channels, device=self.device))

    def layer_norm(self, name, features):
        self.add(name, nn.LayerNorm(features, device=self.device))

    def rms_norm(self, name, features):
        self.add(name, RmsNorm(features, self.device))

    def linear(self, name, of, out, bias=True):
        self.add(name, nn.Linear(of, out, bias, device=self.device))

    def embedding(self, name, rows, features):
        self.add(name, nn.Embedding(rows, features, device=self.device))


def has_fused_attention():
    return hasattr(functional, "scaled_dot_product_attention")  # since PyTorch 2.0


def attention(query, key, value, heads, causal=False, dropout=0.0):
    """Of [batch, positions, features] each; key and value may have fewer features: those of fewer heads."""
    batch, _, features = query.shape
    width = features // heads

    def by_head(x):
        split = x.view(batch, x.shape[1], -1, width).transpose(1, 2)
        return split.repeat_interleave(heads // split.shape[1], 1) if split.shape[1] < heads else split

    query, key, value = by_head(query), by_head(key), by_head(value)
    if has_fused_attention():
        mixed = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=causal)
    else:
        scores = query @ key.transpose(2, 3) / math.sqrt(width)
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        mixed = functional.dropout(scores.softmax(-1), dropout) @ value
    return mixed.transpose(1, 2).reshape(batch, -1, features)
