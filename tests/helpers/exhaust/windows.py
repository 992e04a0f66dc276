# SPDX-License-Identifier: Apache-2.0
"""Domains of operators with channels and windows: convolutions, pools, resizing, sampling."""

from __future__ import annotations

import numpy as np

from exhaust.choices import Outside
from exhaust.making import Domain, Making
from exhaust.values import has_nan

LENGTHS = (4, 5, 3, 1)


def image(m: Making, most: int = 2, channels: tuple[int, ...] = (1, 2)) -> tuple[int, ...]:
    """Returns batch, channels and one or two spatial axes."""
    spatial = m.pick("spatial axes", [n for n in (2, 1, 3) if n <= most])
    return (
        m.pick("batch", (1, 2, 0)),
        m.pick("channels", channels),
        *(m.pick("length", LENGTHS) for _ in range(spatial)),
    )


def _window(m: Making, spatial: int, lengths: tuple[int, ...], *, auto: bool = True) -> list[int]:
    """Returns the sizes of a sliding window, and gives its attributes."""
    m.leave("strides", "dilations", "pads", "auto_pad")
    kernel = [m.pick("kernel", (2, 1, 3)) for _ in range(spatial)]
    strides = [m.pick("stride", (1, 2, 3)) for _ in range(spatial)] if m.flag("strides") else [1] * spatial
    dilations = [1] * spatial
    if strides != [1] * spatial or m.flag("strides stated"):
        m.set("strides", strides)
    way = m.pick("padded", ["not", "pads", *(["SAME_UPPER", "SAME_LOWER", "VALID"] if auto else [])])
    if m.has("dilations") and not way.startswith("SAME") and m.flag("dilations"):
        dilations = [m.pick("dilation", (2, 1, 3)) for _ in range(spatial)]
        m.set("dilations", dilations)
    pads = [0] * 2 * spatial
    if way == "pads":
        pads = [m.pick("pad", range(size)) for size in kernel * 2]
        m.set("pads", pads)
    elif way != "not":
        m.set("auto_pad", way)
    for i, length in enumerate(lengths):
        extent = (kernel[i] - 1) * dilations[i] + 1
        if way.startswith("SAME") and (-(-length // strides[i]) - 1) * strides[i] + extent < length:
            raise Outside  # less than no padding, for which nobody says what it means
        if not way.startswith("SAME") and length + pads[i] + pads[i + spatial] < extent:
            raise Outside
    return kernel


def pool(m: Making) -> None:
    shape = image(m)
    spatial = len(shape) - 2
    if has_nan(m.tensor(shape)) and m.operator == "MaxPool":
        raise Outside
    kernel = _window(m, spatial, shape[2:])
    m.set("kernel_shape", kernel)
    m.leave("storage_order", "p", "ceil_mode")
    if m.has("ceil_mode") and m.flag("ceil_mode"):
        m.set("ceil_mode", m.pick("ceil_mode is", [1, 0]))
        if m.operator == "AveragePool" and m.opset < 22 and m.given["ceil_mode"] and _begins_in_pads(m, shape[2:]):
            raise Outside  # inference counts a window of nothing there, and no text says what its mean is
    if m.has("p") and m.flag("p"):
        m.set("p", m.pick("p is", [1.0, 2.0, 3.0] if m.opset < 2 else [1, 2, 3]))
    if m.operator == "MaxPool" and m.opset >= 8:
        m.outputs = m.pick("outputs", [1, 2])
        if m.flag("storage_order"):
            m.set("storage_order", m.pick("order", [0, 1]))


def _begins_in_pads(m: Making, lengths: tuple[int, ...]) -> bool:
    """Tells whether rounding up counts a window that begins behind the input and the pads before it."""
    n, given = len(lengths), m.given
    pads = given.get("pads", [0] * 2 * n)
    if str(given.get("auto_pad", "")).startswith("SAME"):
        return False
    for i, length in enumerate(lengths):
        stride, dilation = given.get("strides", [1] * n)[i], given.get("dilations", [1] * n)[i]
        extent = (given["kernel_shape"][i] - 1) * dilation + 1
        steps = -(-(length + pads[i] + pads[i + n] - extent) // stride)
        if steps * stride >= length + pads[i]:
            return True
    return False


def global_pool(m: Making) -> None:
    m.tensor(image(m, 3))
    m.set("p", m.pick("p", [2.0, 1.0, 3.0] if m.opset < 2 else [2, 1, 3]))


def conv_integer(m: Making) -> None:
    shape = image(m, channels=(2, 1))
    spatial = len(shape) - 2
    m.tensor(shape)
    kernel = _window(m, spatial, shape[2:])
    group = m.pick("group", [g for g in (1, 2) if shape[1] % g == 0])
    m.set("group", group)
    m.leave("kernel_shape")
    if m.flag("kernel_shape"):
        m.set("kernel_shape", kernel)
    out = group * m.pick("filters", (1, 2))
    m.tensor((out, shape[1] // group, *kernel))
    if m.present("x_zero_point"):
        m.tensor((), constant=m.flag("constant", rare=True))
    if m.present("w_zero_point"):
        m.tensor(m.pick("zero points", [(), (1,), (out,)]), constant=m.flag("constant", rare=True))


def qlinear_conv(m: Making) -> None:
    shape = image(m, channels=(2, 1))
    spatial = len(shape) - 2
    kernel = _window(m, spatial, shape[2:])
    group = m.pick("group", [g for g in (1, 2) if shape[1] % g == 0])
    m.set("group", group)
    m.leave("kernel_shape")
    out = group * m.pick("filters", (1, 2))
    per = m.pick("scales", [(), (out,)])
    m.tensor(shape)
    m.tensor(elements=np.float32(m.pick("x_scale", [0.5, 0.1])))
    m.tensor((), constant=True)
    m.tensor((out, shape[1] // group, *kernel))
    m.tensor(elements=np.full(per, m.pick("w_scale", [0.25, 0.1]), np.float32))
    m.tensor(per, constant=True)
    m.tensor(elements=np.float32(m.pick("y_scale", [1.0, 0.3])))
    m.tensor((), constant=True)
    if m.present("bias"):
        m.tensor((out,))


def conv_transpose(m: Making) -> None:
    shape = image(m, channels=(2, 1))
    spatial = len(shape) - 2
    m.leave("strides", "dilations", "pads", "auto_pad", "output_padding", "output_shape", "kernel_shape")
    kernel = [m.pick("kernel", (2, 1, 3)) for _ in range(spatial)]
    strides = [m.pick("stride", (1, 2, 3)) for _ in range(spatial)]
    if m.flag("strides"):
        m.set("strides", strides)
    else:
        strides = [1] * spatial
    dilations = [1] * spatial
    if m.flag("dilations"):
        dilations = [m.pick("dilation", (2, 1)) for _ in range(spatial)]
        m.set("dilations", dilations)
    way = m.pick("padded", ["not", "pads", "output_shape", "SAME_UPPER", "SAME_LOWER", "VALID"])
    full = [(length - 1) * stride + (size - 1) * dilation + 1
            for length, stride, size, dilation in zip(shape[2:], strides, kernel, dilations, strict=True)]  # fmt: skip
    if way == "pads":
        pads = [m.pick("pad", range(size)) for size in kernel * 2]
        if any(length - pads[i] - pads[i + spatial] < 1 for i, length in enumerate(full)):
            raise Outside
        m.set("pads", pads)
    elif way == "output_shape":
        asked = [size - m.pick("less", [0, 1, 2]) for size in full]
        if min(asked) < 1:
            raise Outside
        m.set("output_shape", asked)
        if m.flag("auto_pad"):
            m.set("auto_pad", m.pick("side", ["SAME_UPPER", "SAME_LOWER", "NOTSET"]))
    elif way != "not":
        m.set("auto_pad", way)
        if way != "VALID" and any(
            size < length * stride for size, length, stride in zip(full, shape[2:], strides, strict=True)
        ):
            raise Outside  # less than no padding
    # Under SAME text, inference and runtimes disagree about what it adds.
    if max(strides) > 1 and not way.startswith("SAME") and m.flag("output_padding"):
        m.set("output_padding", [min(stride - 1, 1) for stride in strides])
    group = m.pick("group", [g for g in (1, 2) if shape[1] % g == 0])
    m.set("group", group)
    if m.flag("kernel_shape"):
        m.set("kernel_shape", kernel)
    m.tensor(shape)
    channels = m.pick("filters", (1, 2))
    m.tensor((shape[1], channels, *kernel))
    if m.present("bias"):
        m.tensor((channels * group,))


def deform_conv(m: Making) -> None:
    batch, groups, offsets = m.pick("batch", (1, 2)), m.pick("group", (1, 2)), m.pick("offset_group", (1, 2))
    height, width = m.pick("length", (4, 3)), m.pick("length", (4, 3))
    kernel = [m.pick("kernel", (2, 1)), m.pick("kernel", (2, 1))]
    stride, pad, dilation = m.pick("stride", (1, 2)), m.pick("pad", (0, 1)), m.pick("dilation", (1, 2))
    m.set("strides", [stride] * 2)
    m.set("pads", [pad] * 4)
    m.set("dilations", [dilation] * 2)
    m.set("group", groups)
    m.set("offset_group", offsets)
    m.leave("kernel_shape")
    out = [
        (size + 2 * pad - (k - 1) * dilation - 1) // stride + 1 for size, k in zip((height, width), kernel, strict=True)
    ]
    if min(out) < 1:
        raise Outside
    channels = groups * offsets
    m.tensor((batch, channels, height, width))
    filters = groups * m.pick("filters", (1, 2))
    m.tensor((filters, channels // groups, *kernel))
    m.tensor((batch, offsets * kernel[0] * kernel[1] * 2, *out))
    if m.present("bias"):
        m.tensor((filters,))
    if m.present("mask"):
        m.tensor((batch, offsets * kernel[0] * kernel[1], *out))


def upsampled(m: Making) -> None:
    m.set("mode", m.pick("mode", ["nearest", "linear" if m.opset >= 7 else "bilinear"]))
    x = m.tensor((*m.sizes(2, (1, 2)), *m.sizes(2, (2, 3, 1))), constant=False)
    if x.dtype.kind in "iu" and m.given["mode"] != "nearest":
        raise Outside  # rounded as each likes
    factors = [m.pick("factor", [2.0, 1.0, 1.5, 2.7]) for _ in range(2)]
    if m.has("height_scale"):
        m.set("height_scale", factors[0])
        m.set("width_scale", factors[1])
    elif m.has("scales"):
        m.set("scales", [1.0, 1.0, *factors])
    else:
        m.tensor(elements=np.array([1.0, 1.0, *factors]))


def resize(m: Making) -> None:
    mode = m.pick("mode", ["nearest", "linear", *(["cubic"] if m.opset >= 11 else [])])
    m.set("mode", mode)
    spatial = 2 if mode == "cubic" else m.pick("spatial axes", [2, 1])
    x = m.tensor(
        (
            m.pick("batch", (1, 2)),
            m.pick("channels", (1, 2)),
            *(m.pick("length", (4, 3, 2, 1, 5)) for _ in range(spatial)),
        )
    )
    if x.dtype.kind in "iu" and mode != "nearest":
        raise Outside  # rounded as each likes
    factors = [m.pick("factor", [2.0, 0.5, 1.0, 1.5, 0.6, 3.0, 0.3]) for _ in range(spatial)]
    if m.opset < 11:
        m.tensor(elements=np.array([1.0, 1.0, *factors]))
        return
    ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"]
    ways += ["tf_half_pixel_for_nn"] if m.opset < 13 else []
    ways += ["half_pixel_symmetric"] if m.opset >= 19 else []
    way = m.pick("coordinate_transformation_mode", ways)
    if way == "align_corners" and any(
        int(size * factor) < 2 for size, factor in zip(x.shape[2:], factors, strict=True)
    ):
        raise Outside  # of one element no text says where it lies
    if way != "half_pixel" or m.flag("way stated"):
        m.set("coordinate_transformation_mode", way)
    m.leave("coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value",
            "antialias", "axes", "keep_aspect_ratio_policy")  # fmt: skip
    if mode == "nearest" and m.flag("nearest_mode"):
        m.set("nearest_mode", m.pick("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic" and m.flag("cubic"):
        m.set("cubic_coeff_a", m.pick("cubic_coeff_a", [-0.75, -0.5]))
        m.set("exclude_outside", m.pick("exclude_outside", [0, 1]))
    if m.has("antialias") and m.flag("antialias"):
        m.set("antialias", 1)
    axes = list(range(x.ndim))
    if m.has("axes") and m.flag("axes"):
        axes = m.pick("axes are", [axes[2:], axes[-1:], axes[::-1], [a - x.ndim for a in axes[2:]]])
        m.set("axes", axes)
    if way == "tf_crop_and_resize":
        box = m.pick("box", [(0.0, 1.0), (0.2, 0.7), (-0.5, 1.2)])
        m.tensor(
            elements=np.array(
                [*(box[0] if a % x.ndim > 1 else 0.0 for a in axes), *(box[1] if a % x.ndim > 1 else 1.0 for a in axes)]
            )
        )
        if m.flag("extrapolation_value"):
            m.set("extrapolation_value", 0.5)
    elif m.opset < 13:
        m.tensor(elements=np.zeros(0), constant=True)
    else:
        m.omit()
    every = [1.0, 1.0, *factors]
    if m.flag("sizes"):
        if m.opset < 13:
            m.tensor(elements=np.zeros(0), constant=True)
        else:
            m.omit()
        sizes = [max(1, int(size * factor)) for size, factor in zip(x.shape, every, strict=True)]
        if m.has("keep_aspect_ratio_policy") and m.flag("policy"):
            m.set("keep_aspect_ratio_policy", m.pick("policy is", ["stretch", "not_larger", "not_smaller"]))
        m.tensor(elements=np.array([sizes[a] for a in axes], np.int64))
    else:
        m.tensor(elements=np.array([every[a] for a in axes]))


def grid_sample(m: Making) -> None:
    deep = m.opset >= 20 and m.flag("volume")
    lengths = m.sizes(3 if deep else 2, (3, 2, 1, 4))
    batch = m.pick("batch", (1, 2))
    x = m.tensor((batch, m.pick("channels", (1, 2)), *lengths), constant=False)
    if x.dtype.kind == "O":
        raise Outside  # runtimes lose strings
    names = ["bilinear", "nearest", "bicubic"] if m.opset < 20 else ["linear", "nearest", "cubic"]
    if "float" not in x.dtype.name:
        names = names[1:2]  # what lies between integers is rounded as each likes
    m.set("mode", m.pick("mode", names[: 2 if deep else 3]))
    m.set("padding_mode", m.pick("padding_mode", ["zeros", "border", "reflection"]))
    if m.given["mode"] in ("bicubic", "cubic") and m.given["padding_mode"] != "zeros":
        raise Outside  # whether a place is moved inside, or each of the pixels around it, no text tells
    m.set("align_corners", m.pick("align_corners", [0, 1]))
    out = (2, *m.sizes(len(lengths) - 1, (2, 1)))
    count = int(np.prod(out)) * batch * len(lengths)
    places = m.pick("places", [[0.1, -0.3, 0.7], [1.0, -1.0, 0.0], [1.3, -2.6, 0.4], [9.1, -7.7, 5.0]])
    kinds = [kind for kind in m.dtypes(1) if kind != "float16" or x.dtype == np.float16]  # in which it is computed
    m.tensor(
        elements=np.resize(np.array(places), count).reshape(batch, *out, len(lengths)), dtype=kinds, constant=False
    )


def roi_align(m: Making) -> None:
    m.tensor((2, m.pick("channels", (1, 2)), 6, 5), constant=False)
    m.leave(
        "output_height", "output_width", "sampling_ratio", "spatial_scale", "mode", "coordinate_transformation_mode"
    )
    for name, options in {"output_height": [2, 3], "output_width": [2, 1], "sampling_ratio": [2, 0, 1],
                          "spatial_scale": [0.5, 1.0], "mode": ["max", "avg"],
                          "coordinate_transformation_mode": ["half_pixel", "output_half_pixel"]}.items():  # fmt: skip
        if m.has(name) and m.flag(name):
            m.set(name, m.pick(f"{name} is", options))
    count = m.pick("regions", (2, 1, 0))
    boxes = m.pick(
        "boxes", [[[0.5, 0.5, 3.0, 4.0], [1.0, 0.0, 5.0, 5.0]], [[1.0, 1.0, 1.2, 1.1], [-1.0, -2.0, 7.0, 9.0]]]
    )
    m.tensor(elements=np.array(boxes)[:count], constant=False)
    m.tensor(elements=np.array([1, 0])[:count], constant=False)


def max_unpool(m: Making) -> None:
    m.leave("pads", "strides")
    m.set("kernel_shape", [2, 2])
    stride = m.pick("strides", [[2, 2], [1, 1]])
    m.set("strides", stride)
    m.tensor((1, 1, 2, 2))
    m.tensor(elements=[[[[0, 3], [9, 10]]]] if stride == [2, 2] else [[[[0, 2], [5, 8]]]], constant=False)
    if m.present("output_shape"):
        m.tensor(elements=[1, 1, *m.pick("to", [(4, 4), (5, 5)])])


def affine_grid(m: Making) -> None:
    deep = m.flag("volume")
    batch = m.pick("batch", (1, 2))
    m.tensor((batch, 3, 4) if deep else (batch, 2, 3))
    lengths = (3, 2)  # of one element with align_corners, the text does not say where it lies
    m.tensor(elements=np.array([batch, 2, *(m.pick("length", lengths) for _ in range(3 if deep else 2))]))


def col2im(m: Making) -> None:
    m.leave("strides", "pads", "dilations")
    image = [m.pick("length", (4, 3, 2)) for _ in range(m.pick("spatial axes", [2, 1]))]
    block = [m.pick("block", (2, 1)) for _ in image]
    stride, pad, dilation = m.pick("stride", (1, 2)), m.pick("pad", (0, 1)), m.pick("dilation", (1, 2))
    for name, value, usual, times in (("strides", stride, 1, 1), ("pads", pad, 0, 2), ("dilations", dilation, 1, 1)):
        if value != usual or m.flag(f"{name} stated"):
            m.set(name, [value] * len(image) * times)
    blocks = [(size + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for size, k in zip(image, block, strict=True)]
    if min(blocks) < 1:
        raise Outside
    m.tensor((m.pick("batch", (1, 2)), m.pick("channels", (1, 2)) * int(np.prod(block)), int(np.prod(blocks))))
    m.tensor(elements=np.array(image, np.int64))
    m.tensor(elements=np.array(block, np.int64))


DOMAINS: dict[str, Domain] = {
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool),
    "GlobalLpPool": global_pool,
    "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
    "ConvTranspose": conv_transpose,
    "DeformConv": deform_conv,
    "Upsample": upsampled,
    "Resize": resize,
    "GridSample": grid_sample,
    "RoiAlign": roi_align,
    "MaxUnpool": max_unpool,
    "AffineGrid": affine_grid,
    "Col2Im": col2im,
}
