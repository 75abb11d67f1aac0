"""The models of `polyring scale --model`: how each is made, and a batch of random samples for it."""

import dataclasses
import functools
from collections.abc import Callable

import torch

from stepping import cnn, diffusion, transformers


def images(count, device, size=224, classes=1000):
    return torch.randn(count, 3, size, size, device=device), torch.randint(classes, (count,), device=device)


def climate(count, device):
    return torch.randn(count, 16, 768, 1152, device=device), torch.randint(cnn.DeepLab.CLASSES, (count, 768, 1152), device=device)


def tokens(count, device, sequence, vocabulary):
    drawn = torch.randint(vocabulary, (count, sequence + 1), device=device)
    return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()


def pretraining(count, device, sequence=128, masked=20):
    words = transformers.Bert.VOCABULARY
    positions = torch.rand(count, sequence, device=device).argsort(1)[:, :masked]
    return (torch.randint(words, (count, sequence), device=device), torch.randint(2, (count, sequence), device=device), positions,
            torch.randint(words, (count, masked), device=device), torch.randint(2, (count,), device=device))


def latents(count, device):
    text = torch.randn(count, diffusion.TEXT_TOKENS, diffusion.TEXT_FEATURES, device=device)
    return (torch.randn(count, 4, 64, 64, device=device), torch.randint(1000, (count,), device=device), text,
            torch.randn(count, 4, 64, 64, device=device))


@dataclasses.dataclass(frozen=True)
class Entry:
    make: Callable  # of a device: the model, whose forward() takes what `draw` gives and returns the loss
    draw: Callable  # of a number of samples and a device
    adam: bool = True  # else stochastic gradient descent with momentum


def resnet(depth, classes=1000):
    return Entry(functools.partial(cnn.ResNet, depth=depth, classes=classes), functools.partial(images, classes=classes), adam=False)


def gpt2(layers, features, heads, sequence):
    return Entry(functools.partial(transformers.Gpt2, layers=layers, features=features, heads=heads, sequence=sequence),
                 functools.partial(tokens, sequence=sequence, vocabulary=transformers.Gpt2.VOCABULARY))


def llama(sequence, vocabulary, **shape):
    return Entry(functools.partial(transformers.Llama, vocabulary=vocabulary, **shape),
                 functools.partial(tokens, sequence=sequence, vocabulary=vocabulary))


CATALOGUE = {
    "resnet50": resnet(50),
    "resnet101": resnet(101),
    "resnet152": resnet(152),
    "resnet101-22k": resnet(101, 21841),
    "vgg16": Entry(cnn.Vgg16, images, adam=False),
    "inception3": Entry(cnn.Inception3, functools.partial(images, size=299), adam=False),
    "deeplabv3plus": Entry(cnn.DeepLab, climate, adam=False),
    "vit-l16": Entry(transformers.Vit, images),
    "stable-diffusion": Entry(diffusion.UNet, latents),
    "bert-large": Entry(transformers.Bert, pretraining),
    "gpt2-small": gpt2(12, 768, 12, 1024),
    "gpt2-xl": gpt2(48, 1600, 25, 1024),
    "gpt3-175b": gpt2(96, 12288, 96, 2048),
    "llama3-8b": llama(8192, 128256, layers=32, features=4096, heads=32, key_value_heads=8, feed_forward=14336),
    "llama3-70b": llama(8192, 128256, layers=80, features=8192, heads=64, key_value_heads=8, feed_forward=28672),
    "mixtral-8x7b": llama(4096, 32000, layers=32, features=4096, heads=32, key_value_heads=8, feed_forward=14336, experts=8, active=2),
}


def parameters_of(name):
    """(name, elements) of each parameter, in the order of the definition, reversed. Takes no memory for them."""
    return [(parameter, tensor.numel()) for parameter, tensor in reversed(list(CATALOGUE[name].make("meta").named_parameters()))]
