"""The convolutional networks of models/resnet.cpp, vgg.cpp, inception.cpp and deeplab.cpp."""

import torch
from torch.nn import functional

from stepping.net import Net

EXPANSION = 4  # a bottleneck's output channels over its width


class ResNet(Net):
    BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}

    def __init__(self, device, depth, classes):
        super().__init__(device)
        self.blocks = []  # (name, whether it has a projection)
        self.pair("conv1", "bn1", 3, 64, 7, 2)
        of = 64
        for group, blocks in enumerate(self.BLOCKS[depth]):
            width = 64 << group
            for block in range(blocks):
                name = f"layer{group + 1}.{block}"
                stride = 2 if block == 0 and group > 0 else 1
                self.pair(f"{name}.conv1", f"{name}.bn1", of, width, 1)
                self.pair(f"{name}.conv2", f"{name}.bn2", width, width, 3, stride)
                self.pair(f"{name}.conv3", f"{name}.bn3", width, EXPANSION * width, 1)
                if block == 0:
                    self.pair(f"{name}.downsample.0", f"{name}.downsample.1", of, EXPANSION * width, 1, stride)
                self.blocks.append((name, block == 0))
                of = EXPANSION * width
        self.linear("fc", of, classes)

    def pair(self, convolution, norm, of, out, kernel, stride=1):
        self.convolution(convolution, of, out, kernel, stride)
        self.batch_norm(norm, out)

    def normed(self, x, convolution, norm):
        return self[norm](self[convolution](x))

    def forward(self, images, labels):
        x = functional.relu(self.normed(images, "conv1", "bn1"))
        x = functional.max_pool2d(x, 3, 2, 1)
        for name, projects in self.blocks:
            y = functional.relu(self.normed(x, f"{name}.conv1", f"{name}.bn1"))
            y = functional.relu(self.normed(y, f"{name}.conv2", f"{name}.bn2"))
            y = self.normed(y, f"{name}.conv3", f"{name}.bn3")
            shortcut = self.normed(x, f"{name}.downsample.0", f"{name}.downsample.1") if projects else x
            x = functional.relu(y + shortcut)
        return functional.cross_entropy(self["fc"](x.mean((2, 3))), labels)


class Vgg16(Net):
    STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))

    def __init__(self, device):
        super().__init__(device)
        self.features_of = []  # (name, whether a max-pool follows)
        of, index = 3, 0
        for convolutions, channels in self.STAGES:
            for i in range(convolutions):
                pooled = i + 1 == convolutions
                self.convolution(f"features.{index}", of, channels, 3, bias=True)
                self.features_of.append((f"features.{index}", pooled))
                of = channels
                index += 3 if pooled else 2
        self.linear("classifier.0", 512 * 7 * 7, 4096)
        self.linear("classifier.3", 4096, 4096)
        self.linear("classifier.6", 4096, 1000)

    def forward(self, images, labels):
        x = images
        for name, pooled in self.features_of:
            x = functional.relu(self[name](x))
            x = functional.max_pool2d(x, 2) if pooled else x
        x = x.flatten(1)
        for name in ("classifier.0", "classifier.3"):
            x = functional.dropout(functional.relu(self[name](x)))
        return functional.cross_entropy(self["classifier.6"](x), labels)


ROW, COLUMN = (1, 7), (7, 1)


def module_a(pool):
    return [[("branch1x1", 64, 1)], [("branch5x5_1", 48, 1), ("branch5x5_2", 64, 5)],
            [("branch3x3dbl_1", 64, 1), ("branch3x3dbl_2", 96, 3), ("branch3x3dbl_3", 96, 3)], ["mean", ("branch_pool", pool, 1)]]


def module_c(c):
    return [[("branch1x1", 192, 1)], [("branch7x7_1", c, 1), ("branch7x7_2", c, ROW), ("branch7x7_3", 192, COLUMN)],
            [("branch7x7dbl_1", c, 1), ("branch7x7dbl_2", c, COLUMN), ("branch7x7dbl_3", c, ROW), ("branch7x7dbl_4", c, COLUMN),
             ("branch7x7dbl_5", 192, ROW)], ["mean", ("branch_pool", 192, 1)]]


# A name that ends with "ab" stands for two convolutions, 1x3 and 3x1, that both read what is before them.
MODULE_E = [[("branch1x1", 320, 1)], [("branch3x3_1", 384, 1), ("branch3x3_2ab", 384, 3)],
            [("branch3x3dbl_1", 448, 1), ("branch3x3dbl_2", 384, 3), ("branch3x3dbl_3ab", 384, 3)], ["mean", ("branch_pool", 192, 1)]]

HALVED = "halved"  # in place of a kernel: 3x3, stride 2, no padding


class Inception3(Net):
    """A module is a list of branches, and a branch a chain of convolutions that begins with the module's input."""

    STEM = (("Conv2d_1a_3x3", 3, 32, 3, 2, 0), ("Conv2d_2a_3x3", 32, 32, 3, 1, 0), ("Conv2d_2b_3x3", 32, 64, 3, 1, 1), "pool",
            ("Conv2d_3b_1x1", 64, 80, 1, 1, 0), ("Conv2d_4a_3x3", 80, 192, 3, 1, 0), "pool")
    MODULES = (
        ("Mixed_5b", 192, module_a(32)), ("Mixed_5c", 256, module_a(64)), ("Mixed_5d", 288, module_a(64)),
        ("Mixed_6a", 288, [[("branch3x3", 384, HALVED)],
                           [("branch3x3dbl_1", 64, 1), ("branch3x3dbl_2", 96, 3), ("branch3x3dbl_3", 96, HALVED)], ["max"]]),
        ("Mixed_6b", 768, module_c(128)), ("Mixed_6c", 768, module_c(160)), ("Mixed_6d", 768, module_c(160)),
        ("Mixed_6e", 768, module_c(192)),
        ("Mixed_7a", 768, [[("branch3x3_1", 192, 1), ("branch3x3_2", 320, HALVED)],
                           [("branch7x7x3_1", 192, 1), ("branch7x7x3_2", 192, ROW), ("branch7x7x3_3", 192, COLUMN),
                            ("branch7x7x3_4", 192, HALVED)], ["max"]]),
        ("Mixed_7b", 1280, MODULE_E), ("Mixed_7c", 2048, MODULE_E))

    def __init__(self, device):
        super().__init__(device)
        for layer in self.STEM:
            if layer != "pool":
                self.pair(*layer)
        for module, of, branches in self.MODULES:
            for branch in branches:
                channels = of
                for name, out, kernel in (layer for layer in branch if not isinstance(layer, str)):
                    self.add_layer(f"{module}.{name}", channels, out, kernel)
                    channels = out
        self.linear("fc", 2048, 1000)

    def add_layer(self, name, of, out, kernel):
        if name.endswith("ab"):
            self.pair(f"{name[:-1]}", of, out, (1, 3))
            self.pair(f"{name[:-2]}b", of, out, (3, 1))
        elif kernel == HALVED:
            self.pair(name, of, out, 3, 2, 0)
        else:
            self.pair(name, of, out, kernel)

    def pair(self, name, of, out, kernel, stride=1, padding=None):
        self.convolution(f"{name}.conv", of, out, kernel, stride, padding)
        self.batch_norm(f"{name}.bn", out)

    def run(self, x, name):
        return functional.relu(self[f"{name}.bn"](self[f"{name}.conv"](x)))

    def branch(self, x, module, layers):
        for layer in layers:
            if layer == "mean":
                x = functional.avg_pool2d(x, 3, 1, 1)
            elif layer == "max":
                x = functional.max_pool2d(x, 3, 2)
            elif layer[0].endswith("ab"):
                name = f"{module}.{layer[0][:-2]}"
                x = torch.cat([self.run(x, f"{name}a"), self.run(x, f"{name}b")], 1)
            else:
                x = self.run(x, f"{module}.{layer[0]}")
        return x

    def forward(self, images, labels):
        x = images
        for layer in self.STEM:
            x = functional.max_pool2d(x, 3, 2) if layer == "pool" else self.run(x, layer[0])
        for module, _, branches in self.MODULES:
            x = torch.cat([self.branch(x, module, layers) for layers in branches], 1)
        x = functional.dropout(x.mean((2, 3)))
        return functional.cross_entropy(self["fc"](x), labels)


class DeepLab(Net):
    """Without batch normalisation, as in models/deeplab.cpp. Atrous convolutions stand for the strides that later blocks lack."""

    BLOCKS = ((64, 64, 3, 1), (256, 128, 4, 1), (512, 256, 6, 2), (1024, 512, 3, 4))  # in, width, units, rate
    RATES = (12, 24, 36)
    CLASSES = 3

    def __init__(self, device):
        super().__init__(device)
        self.convolution("resnet.conv1", 16, 64, 7, 2, bias=True)
        self.units = []  # (name, whether it has a projection, its stride)
        for number, (of, width, units, rate) in enumerate(self.BLOCKS, start=1):
            for unit in range(1, units + 1):
                self.add_unit(f"resnet.block{number}.unit_{unit}", of if unit == 1 else 4 * width, width, unit == 1,
                              2 if number == 1 and unit == units else 1, rate)
        self.convolution("aspp.conv_1x1", 2048, 256)
        for rate in self.RATES:
            self.convolution(f"aspp.rate_{rate}", 2048, 256, 3, dilation=rate)
        self.convolution("aspp.image_level", 2048, 256)
        self.convolution("aspp.conv_1x1_concat", 5 * 256, 256)
        self.add_decoder()

    def add_unit(self, name, of, width, projects, stride, rate):
        if projects:
            self.convolution(f"{name}.shortcut", of, 4 * width, bias=True)
        self.convolution(f"{name}.conv1", of, width)
        self.convolution(f"{name}.conv2", width, width, 3, stride, dilation=rate)
        self.convolution(f"{name}.conv3", width, 4 * width, bias=True)
        self.units.append((name, projects, stride))

    def add_decoder(self):
        self.convolution("decoder.low_level", 64, 48)
        self.doubling_convolution("decoder.deconv1", 256, 256)
        self.convolution("decoder.conv1", 256 + 48, 256, 3)
        self.convolution("decoder.conv2", 256, 256, 3)
        self.doubling_convolution("decoder.deconv2", 256, 256)
        self.doubling_convolution("decoder.deconv3", 256, 256)
        self.convolution("decoder.skip1", 16, 64, 3, bias=True)
        self.convolution("decoder.skip2", 64, 128, 3, bias=True)
        self.convolution("decoder.conv3", 256 + 128, 256, 3, bias=True)
        self.convolution("decoder.conv4", 256, 256, 3, bias=True)
        self.convolution("decoder.logits", 256, self.CLASSES, bias=True)

    def run(self, x, *names):
        for name in names:
            x = functional.relu(self[name](x))
        return x

    def unit(self, x, name, projects, stride):
        before = functional.relu(x)
        y = self.run(before, f"{name}.conv1", f"{name}.conv2")
        shortcut = self[f"{name}.shortcut"](before) if projects else x
        return self[f"{name}.conv3"](y) + (shortcut[:, :, ::stride, ::stride] if stride > 1 else shortcut)

    def pyramid(self, x):
        image = self.run(x.mean((2, 3), keepdim=True), "aspp.image_level").expand(-1, -1, *x.shape[2:])
        parts = [self.run(x, "aspp.conv_1x1"), *(self.run(x, f"aspp.rate_{rate}") for rate in self.RATES), image]
        return self.run(torch.cat(parts, 1), "aspp.conv_1x1_concat")

    def forward(self, images, labels):
        first = functional.max_pool2d(self.run(images, "resnet.conv1"), 3, 2, 1)
        x = first
        for name, projects, stride in self.units:
            x = self.unit(x, name, projects, stride)
        x = self.run(self.pyramid(functional.relu(x)), "decoder.deconv1")
        x = self.run(torch.cat([x, self.run(first, "decoder.low_level")], 1), "decoder.conv1", "decoder.conv2")
        x = self.run(x, "decoder.deconv2", "decoder.deconv3")
        x = self.run(torch.cat([x, self.run(images, "decoder.skip1", "decoder.skip2")], 1), "decoder.conv3", "decoder.conv4")
        return functional.cross_entropy(self["decoder.logits"](x), labels)
