# SPDX-License-Identifier: Apache-2.0
"""Networks on images: MobileNetV3, U-Net, each way to resize and to sample, padding and pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

from real.torch_rows import Arguments, Row, calls, rand


class Squeezed(nn.Module):
    """A block of MobileNetV3: expand, depthwise, squeeze and excite, project."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        self.wide = nn.Sequential(nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(32, 32, 5, padding=2, groups=32), nn.BatchNorm2d(32), nn.ReLU6())
        self.excite = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Conv2d(8, 32, 1), nn.Hardsigmoid()
        )
        self.narrow, self.head = nn.Conv2d(32, 16, 1), nn.Linear(16, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        y = self.deep(self.wide(x))
        x = x + self.narrow(y * self.excite(y))
        return self.head(F.dropout(x.mean((2, 3)), 0.2, self.training))


class UNet(nn.Module):
    """Down, up by one way of interpolation, and a skip."""

    def __init__(self, mode: str = "bilinear", *, normal: nn.Module | None = None, **options: Any) -> None:
        super().__init__()
        self.mode, self.options = mode, options
        self.down, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 16, 2, stride=2), nn.Conv2d(24, 2, 1)
        self.normal = normal or nn.GroupNorm(4, 16)

    def forward(self, image: Tensor) -> Tensor:
        skip = F.silu(self.down(image))
        x = F.max_pool2d(skip, 4)
        x = F.silu(self.normal(self.deep(x)))
        x = F.interpolate(self.up(x), size=skip.shape[2:], mode=self.mode, **self.options)
        return F.interpolate(self.out(torch.cat([skip, x], 1)), scale_factor=2.0, mode="nearest")


def image(n: int, channels: int = 3) -> Arguments:
    return (rand(n, 1 + n, channels, 16 + 8 * n, 24),)


IMAGE_OPEN = ({0: "batch", 2: "height", 3: "width"},)


def resizes(**options: Any) -> Callable[[], nn.Module]:
    return calls(lambda x: F.interpolate(x, **options))


def pads(x: Tensor) -> Arguments:
    edges = F.pad(x, (1, 2, 3, 0)), F.pad(x, (2, 1, 1, 1), "reflect"), F.pad(x, (1, 0, 2, 1), "replicate")
    return *edges, F.pad(x[0], (1, 1), "circular")


def grids(n: int) -> Arguments:
    return rand(n, 1 + n, 3, 6 + n, 7), rand(n + 1, 1 + n, 5 + n, 4, 2)


def samples(mode: str, padding: str, *, corners: bool) -> Row:
    def function(x: Tensor, grid: Tensor) -> Tensor:
        return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)

    open_ = ({0: "batch", 2: "height"}, {0: "batch", 1: "rows"})
    return Row(
        f"grid_sample {mode} {padding}", calls(function), grids, open_, (18, 20) if padding == "zeros" else (20,)
    )


SIZED = lambda n: image(0)  # noqa: E731 - the same sizes for every n

IMAGES = [
    Row("MobileNetV3", Squeezed, image, IMAGE_OPEN, (18, 22, 24)),
    Row("U-Net bilinear", UNet, image, IMAGE_OPEN, (18, 21)),
    Row("U-Net bicubic", lambda: UNet("bicubic", align_corners=True), SIZED, (), (18, 21)),
    Row("U-Net nearest, InstanceNorm", lambda: UNet("nearest", normal=nn.InstanceNorm2d(16, affine=True)), image,
        IMAGE_OPEN, (18, 23)),
    Row("resize bilinear, corners", resizes(scale_factor=1.5, mode="bilinear", align_corners=True), image, IMAGE_OPEN),
    Row("resize bicubic", resizes(size=(20, 30), mode="bicubic", align_corners=False), image, IMAGE_OPEN, (18, 20)),
    Row("resize antialias", resizes(size=(10, 12), mode="bilinear", antialias=True), SIZED, (), (18,)),
    Row("resize bicubic antialias", resizes(size=(10, 12), mode="bicubic", antialias=True), SIZED, (), (18,)),
    Row("resize nearest-exact", resizes(size=(10, 36), mode="nearest-exact"), image, IMAGE_OPEN, (19,)),
    Row("resize one axis", lambda: nn.Upsample(scale_factor=2, mode="linear"), lambda n: (rand(n, 2, 3, 5 + n),),
        ({2: "length"},), (18,)),
    Row("resize three axes", lambda: nn.Upsample(scale_factor=2, mode="trilinear"),
        lambda n: (rand(n, 1, 2, 3 + n, 4, 5),), ({2: "depth"},), (18,)),
    *(
        samples(mode, padding, corners=corners)
        for mode, corners in (("bilinear", False), ("nearest", False), ("bicubic", True))
        for padding in ("zeros", "border", "reflection")
    ),
    Row("pads", calls(pads), lambda n: (rand(n, 1 + n, 3, 6 + n, 8),), ({0: "batch", 2: "height"},), (18, 21)),
    Row("pools", calls(lambda x: (F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
                                  F.lp_pool2d(x, 2, 2), F.adaptive_max_pool2d(x, 1))), image, IMAGE_OPEN, (18, 22)),
    Row("shuffles", lambda: nn.Sequential(nn.PixelUnshuffle(2), nn.PixelShuffle(2), nn.PReLU(3), nn.Mish()), image,
        IMAGE_OPEN, (18, 22)),
]  # fmt: skip
