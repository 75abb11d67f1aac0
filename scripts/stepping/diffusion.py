"""The U-Net of models/unet.cpp."""

import math

import torch
from torch.nn import functional

from stepping.net import Net, attention

CHANNELS = (320, 640, 1280, 1280)
TIME = 1280  # features of the time step
TEXT_TOKENS, TEXT_FEATURES = 77, 768
HEADS = 8
RESNETS = 2  # of a level on the way down; one more on the way up


def attends(level):
    return level + 1 < len(CHANNELS)


class UNet(Net):
    def __init__(self, device):
        super().__init__(device)
        self.shortcuts = set()  # names of those that change the number of channels
        self.convolution("conv_in", 4, CHANNELS[0], 3, bias=True)
        self.linear("time_embedding.linear_1", CHANNELS[0], TIME)
        self.linear("time_embedding.linear_2", TIME, TIME)
        skips = [CHANNELS[0]]
        channels = CHANNELS[0]
        for level, out in enumerate(CHANNELS):
            name = f"down_blocks.{level}"
            for i in range(RESNETS):
                self.add_resnet(f"{name}.resnets.{i}", channels, out)
                channels = out
                if attends(level):
                    self.add_transformer(f"{name}.attentions.{i}", out)
                skips.append(out)
            if attends(level):
                self.convolution(f"{name}.downsamplers.0.conv", out, out, 3, 2, bias=True)
                skips.append(out)
        self.add_resnet("mid_block.resnets.0", channels, channels)
        self.add_transformer("mid_block.attentions.0", channels)
        self.add_resnet("mid_block.resnets.1", channels, channels)
        for number, level in enumerate(reversed(range(len(CHANNELS)))):
            name, out = f"up_blocks.{number}", CHANNELS[level]
            for i in range(RESNETS + 1):
                self.add_resnet(f"{name}.resnets.{i}", channels + skips.pop(), out)
                channels = out
                if attends(level):
                    self.add_transformer(f"{name}.attentions.{i}", out)
            if level > 0:
                self.convolution(f"{name}.upsamplers.0.conv", out, out, 3, bias=True)
        self.group_norm("conv_norm_out", CHANNELS[0])
        self.convolution("conv_out", CHANNELS[0], 4, 3, bias=True)

    def add_resnet(self, name, of, out):
        self.group_norm(f"{name}.norm1", of)
        self.convolution(f"{name}.conv1", of, out, 3, bias=True)
        self.linear(f"{name}.time_emb_proj", TIME, out)
        self.group_norm(f"{name}.norm2", out)
        self.convolution(f"{name}.conv2", out, out, 3, bias=True)
        if of != out:
            self.convolution(f"{name}.conv_shortcut", of, out, bias=True)
            self.shortcuts.add(name)

    def add_transformer(self, name, c):
        block = f"{name}.transformer_blocks.0"
        self.group_norm(f"{name}.norm", c)
        self.convolution(f"{name}.proj_in", c, c, bias=True)
        for number, features in ((1, c), (2, TEXT_FEATURES)):
            self.layer_norm(f"{block}.norm{number}", c)
            self.linear(f"{block}.attn{number}.to_q", c, c, False)
            self.linear(f"{block}.attn{number}.to_k", features, c, False)
            self.linear(f"{block}.attn{number}.to_v", features, c, False)
            self.linear(f"{block}.attn{number}.to_out.0", c, c)
        self.layer_norm(f"{block}.norm3", c)
        self.linear(f"{block}.ff.net.0.proj", c, 8 * c)
        self.linear(f"{block}.ff.net.2", 4 * c, c)
        self.convolution(f"{name}.proj_out", c, c, bias=True)

    def resnet(self, x, name, time):
        y = self[f"{name}.conv1"](functional.silu(self[f"{name}.norm1"](x)))
        y = y + self[f"{name}.time_emb_proj"](functional.silu(time))[:, :, None, None]
        y = self[f"{name}.conv2"](functional.silu(self[f"{name}.norm2"](y)))
        return y + (self[f"{name}.conv_shortcut"](x) if name in self.shortcuts else x)

    def attend(self, x, of, name):
        heads = self[f"{name}.to_q"](x), self[f"{name}.to_k"](of), self[f"{name}.to_v"](of)
        return self[f"{name}.to_out.0"](attention(*heads, HEADS))

    def transformer(self, x, name, text):
        block = f"{name}.transformer_blocks.0"
        y = self[f"{name}.proj_in"](self[f"{name}.norm"](x))
        rows = y.flatten(2).transpose(1, 2)
        normed = self[f"{block}.norm1"](rows)
        rows = rows + self.attend(normed, normed, f"{block}.attn1")
        rows = rows + self.attend(self[f"{block}.norm2"](rows), text, f"{block}.attn2")
        value, gate = self[f"{block}.ff.net.0.proj"](self[f"{block}.norm3"](rows)).chunk(2, -1)
        rows = rows + self[f"{block}.ff.net.2"](value * functional.gelu(gate))
        return x + self[f"{name}.proj_out"](rows.transpose(1, 2).reshape(y.shape))

    def down(self, x, time, text):
        skips = [x]
        for level in range(len(CHANNELS)):
            name = f"down_blocks.{level}"
            for i in range(RESNETS):
                x = self.resnet(x, f"{name}.resnets.{i}", time)
                x = self.transformer(x, f"{name}.attentions.{i}", text) if attends(level) else x
                skips.append(x)
            if attends(level):
                x = self[f"{name}.downsamplers.0.conv"](x)
                skips.append(x)
        return x, skips

    def up(self, x, skips, time, text):
        for number, level in enumerate(reversed(range(len(CHANNELS)))):
            name = f"up_blocks.{number}"
            for i in range(RESNETS + 1):
                x = self.resnet(torch.cat([x, skips.pop()], 1), f"{name}.resnets.{i}", time)
                x = self.transformer(x, f"{name}.attentions.{i}", text) if attends(level) else x
            if level > 0:
                x = self[f"{name}.upsamplers.0.conv"](functional.interpolate(x, scale_factor=2.0))
        return x

    def time_features(self, steps):
        half = CHANNELS[0] // 2
        rates = torch.exp(-math.log(10_000) * torch.arange(half, device=steps.device) / half)
        angles = steps[:, None] * rates[None, :]
        y = self["time_embedding.linear_1"](torch.cat([angles.cos(), angles.sin()], -1))
        return self["time_embedding.linear_2"](functional.silu(y))

    def forward(self, latents, steps, text, noise):
        time = self.time_features(steps)
        x, skips = self.down(self["conv_in"](latents), time, text)
        x = self.resnet(x, "mid_block.resnets.0", time)
        x = self.resnet(self.transformer(x, "mid_block.attentions.0", text), "mid_block.resnets.1", time)
        x = self.up(x, skips, time, text)
        x = self["conv_out"](functional.silu(self["conv_norm_out"](x)))
        return functional.mse_loss(x.float(), noise)
