# SPDX-License-Identifier: Apache-2.0
"""Replays for operators with channels and windows: convolutions, pools, resizing, normalisation, recurrence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuzz.growing import Step, dtype_of, elem_type


def _image(step: Step, spatial: int | None = None, dtype: str | None = None) -> np.ndarray:
    """Returns a batch with channels and one to three spatial axes, none of them tiny."""
    spatial = step.random.choice([1, 2, 2, 2, 3]) if spatial is None else spatial
    shape = (step.random.randint(1, 2), step.random.choice([1, 2, 4]), *(step.random.randint(5, 6),) * spatial)
    fits = [v.shape for v in step.growth.values.values() if v.ndim == spatial + 2 and v.size and min(v.shape[2:]) > 4]
    return step.input(step.random.choice(fits) if fits and step.chance() else shape, dtype=dtype)


def _window(step: Step, spatial: int, *, dilations: bool = True, padded: bool = True) -> list[int]:
    """Returns the attributes of a sliding window, and its sizes."""
    kernel = [step.random.randint(1, 3) for _ in range(spatial)]
    step.maybe("strides", [[step.random.randint(1, min(2, size)) for size in kernel]])
    way = step.random.choice(["none", "pads", "auto"]) if padded else "none"
    if dilations and way != "auto" and step.chance(0.4):
        step.set("dilations", [step.random.randint(1, 2) for _ in kernel])
    if way == "pads":
        step.set("pads", [step.random.randint(0, size // 2) for size in kernel * 2])
    elif way == "auto":
        step.set("auto_pad", step.random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    return kernel


def conv(step: Step) -> None:
    x = _image(step)
    kernel = _window(step, x.ndim - 2)
    group = step.random.choice([g for g in (1, 2) if x.shape[1] % g == 0])
    step.set("group", group)
    if step.chance():
        step.set("kernel_shape", kernel)
    channels = group * step.random.randint(1, 2)
    step.input((channels, x.shape[1] // group, *kernel))
    if step.chance():
        step.input((channels,))


def conv_transpose(step: Step) -> None:
    x = _image(step)
    kernel = _window(step, x.ndim - 2, dilations=False)
    group = step.random.choice([g for g in (1, 2) if x.shape[1] % g == 0])
    step.set("group", group)
    if step.chance():
        step.set("kernel_shape", kernel)
    channels = step.random.randint(1, 2)
    step.input((x.shape[1], channels, *kernel))
    if step.chance():
        step.input((channels * group,))


def pool(step: Step) -> None:
    x = _image(step)
    step.set("kernel_shape", _window(step, x.ndim - 2))
    step.maybe("ceil_mode", [0, 1])
    step.maybe("count_include_pad", [0, 1])
    if step.has("p"):
        step.maybe("p", [1.0, 2.0] if step.opset < 2 else [1, 2])
    if step.schema.name == "MaxPool" and step.opset >= 8 and step.chance(0.2):
        step.outputs = 2
        step.maybe("storage_order", [0, 1])


def global_pool(step: Step) -> None:
    _image(step)
    step.maybe("p", [1.0, 2.0] if step.opset < 2 else [1, 2])


def upsample(step: Step) -> None:
    x = _image(step, 2)
    factors = [step.random.choice([1.0, 2.0, 1.5]) for _ in range(2)]
    step.set("mode", step.random.choice(["nearest", "linear" if step.opset >= 7 else "bilinear"]))
    if step.has("height_scale"):
        step.set("height_scale", factors[0])
        step.set("width_scale", factors[1])
    elif step.has("scales"):
        step.set("scales", [1.0, 1.0, *factors])
    else:
        step.give(np.array([1.0, 1.0, *factors]), "float")
    assert x.ndim == 4


def resize(step: Step) -> None:
    mode = step.random.choice(["nearest", "nearest", "linear", *(["cubic"] if step.opset >= 11 else [])])
    step.set("mode", mode)
    x = _image(step, 2 if mode == "cubic" else None, None if mode == "nearest" else "float")
    spatial = x.ndim - 2
    factors = [step.random.choice([1.0, 2.0, 0.5, 1.5, 0.6]) for _ in range(spatial)]
    if step.opset < 11:
        step.give(np.array([1.0, 1.0, *factors]), "float")
        return
    ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    ways += ["tf_half_pixel_for_nn"] if step.opset < 13 else []
    ways += ["half_pixel_symmetric"] if step.opset >= 19 else []
    step.maybe("coordinate_transformation_mode", ways)
    if mode == "nearest":
        step.maybe("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        step.maybe("cubic_coeff_a", [-0.5, -0.75])
        step.maybe("exclude_outside", [0, 1])
    if mode != "nearest" and step.chance(0.3):
        step.set("antialias", 1)
    axes = list(range(x.ndim))
    if step.has("axes") and step.chance(0.3):
        axes = axes[2:]
        step.set("axes", axes)
    if step.opset < 13:
        step.give(np.zeros(0), "float")
    else:
        step.omit()
    sizes = [*x.shape[:2], *(max(1, int(size * factor)) for size, factor in zip(x.shape[2:], factors, strict=True))]
    if step.chance():
        step.give(np.array([1.0, 1.0, *factors])[axes], "float")
    else:
        if step.opset < 13:
            step.give(np.zeros(0), "float")
        else:
            step.omit()
        step.give(np.array(sizes)[axes], "int64")


def batch_normalization(step: Step) -> None:
    x = _image(step)
    step.set("is_test", 1)
    step.maybe("epsilon", [1e-5, 1e-2])
    step.maybe("momentum", [0.9, 0.5])
    if step.opset < 6:
        step.set("consumed_inputs", [0, 0, 0, 1, 1])
    for _ in range(2):
        step.input(x.shape[1:2])
    step.input(x.shape[1:2])
    step.input(x.shape[1:2], fits=lambda a: bool(np.all(a > 0)), fresh=lambda a: np.asarray(abs(a) + 1).astype(a.dtype))


def instance_normalization(step: Step) -> None:
    x = _image(step)
    step.maybe("epsilon", [1e-5, 1e-2])
    for _ in range(2):
        step.input(x.shape[1:2])


def _stash(step: Step, x: np.ndarray) -> None:
    """Doubles are not to pass through float32, which costs more digits than a comparison of doubles allows."""
    if x.dtype == np.float64:
        step.set("stash_type", elem_type("double"))


def layer_normalization(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: a.size > 0)
    _stash(step, x)
    axis = step.axis(x.ndim) if step.chance() else -1
    step.set("axis", axis)
    step.maybe("epsilon", [1e-5, 1e-2])
    step.input(x.shape[axis:])
    if step.schema.name == "LayerNormalization" and step.chance():
        step.input(x.shape[axis:])


def group_normalization(step: Step) -> None:
    x = _image(step)
    _stash(step, x)
    groups = step.random.choice([g for g in (1, 2) if x.shape[1] % g == 0])
    step.set("num_groups", groups)
    for _ in range(2):
        step.input(x.shape[1:2])


def mean_variance(step: Step) -> None:
    x = _image(step, 2)
    if step.chance():
        step.set("axes", [step.random.randrange(x.ndim)])


def local_response(step: Step) -> None:
    _image(step, 2)
    step.set("size", step.random.choice([1, 2, 3]))
    step.maybe("alpha", [1e-4, 0.5])
    step.maybe("bias", [1.0, 2.0])


def recurrent(step: Step) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[step.schema.name]
    length, batch, width, hidden = 3, 2, 2, 2
    both = step.chance(0.3)
    step.set("hidden_size", hidden)
    step.set("direction", "bidirectional" if both else step.random.choice(["forward", "reverse"]))
    step.set("output_sequence", 1)
    directions = 1 + both
    if step.schema.name == "GRU":
        step.maybe("linear_before_reset", [0, 1])
    layout = int(step.has("layout") and step.chance(0.1))
    step.set("layout", layout)
    step.input((batch, length, width) if layout else (length, batch, width))
    step.input((directions, gates * hidden, width))
    step.input((directions, gates * hidden, hidden))
    if step.chance():
        step.input((directions, 2 * gates * hidden))
    else:
        step.omit()
    if step.chance(0.3):
        step.give([length, length - 1], "int32")
    else:
        step.omit()
    if step.chance():
        step.input((batch, directions, hidden) if layout else (directions, batch, hidden))
    step.outputs = 2


def grid_sample(step: Step) -> None:
    x = step.input((1, 2, 4, 4))
    bilinear = "bilinear" if step.opset < 20 else "linear"
    step.maybe("mode", ["nearest", bilinear])
    step.maybe("padding_mode", ["zeros", "border", "reflection"])
    step.maybe("align_corners", [0, 1])
    step.give(np.tanh(step.growth.draw_array("float", (1, 3, 2, 2))), "float" if x.dtype.kind != "f" else dtype_of(x))


def roi_align(step: Step) -> None:
    x = step.input((1, 2, 6, 6))
    step.set("output_height", 2)
    step.set("output_width", 2)
    step.maybe("sampling_ratio", [2])
    step.maybe("mode", ["avg", "max"])
    step.maybe("coordinate_transformation_mode", ["half_pixel", "output_half_pixel"])
    step.give([[0.5, 0.5, 3.0, 4.0], [1.0, 0.0, 5.0, 5.0]], dtype_of(x))
    step.give([0, 0], "int64")


def max_unpool(step: Step) -> None:
    step.set("kernel_shape", [2, 2])
    step.set("strides", [2, 2])
    step.input((1, 1, 2, 2))
    step.give([[[[0, 3], [9, 10]]]], "int64")
    if step.chance(0.3):
        step.give([1, 1, 4, 4], "int64")


def affine_grid(step: Step) -> None:
    step.input((1, 2, 3))
    step.give([1, 2, 3, 4], "int64")
    step.maybe("align_corners", [0, 1])


def col2im(step: Step) -> None:
    step.input((1, 4, 9))
    step.give([4, 4], "int64")
    step.give([2, 2], "int64")


def rotary_embedding(step: Step) -> None:
    x = step.input((2, 3, 4, 4))
    for _ in range(2):
        step.input((8, 2), dtype=dtype_of(x))
    step.give([[0, 1, 2, 3], [3, 2, 1, 0]], "int64")
    step.maybe("interleaved", [0, 1])


def attention(step: Step) -> None:
    length = step.random.randint(2, 4)
    x = step.input((2, 2, 3, 4))
    for _ in range(2):
        step.input((2, 2, length, 4), dtype=dtype_of(x))
    if step.chance(0.3):
        step.input((3, length), dtype=dtype_of(x))
    step.maybe("is_causal", [0, 1])
    step.maybe("scale", [0.5])
    step.maybe("softcap", [0.0, 2.0])


def integer_matmul(step: Step) -> None:
    kinds = [step.random.choice(["uint8", "int8"]) for _ in range(2)]
    step.input((2, 3), dtype=kinds[0])
    step.input((3, 4), dtype=kinds[1])
    for kind in kinds[: step.random.randint(0, 2)]:
        step.give(step.random.choice([0, 2]), kind)


def dft(step: Step) -> None:
    step.input((1, 4, 3, 1), dtype="float")
    axis = step.random.choice([1, 2])
    if step.has("axis"):
        step.set("axis", axis)
    elif step.chance():
        step.omit()
        step.give(axis, "int64")
    step.maybe("onesided", [0, 1])


RECIPES: dict[str, Callable[[Step], None]] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool),
    **dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), global_pool),
    "Upsample": upsample,
    "Resize": resize,
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_normalization),
    "GroupNormalization": group_normalization,
    "MeanVarianceNormalization": mean_variance,
    "LRN": local_response,
    **dict.fromkeys(("RNN", "GRU", "LSTM"), recurrent),
    "GridSample": grid_sample,
    "RoiAlign": roi_align,
    "MaxUnpool": max_unpool,
    "AffineGrid": affine_grid,
    "Col2Im": col2im,
    "RotaryEmbedding": rotary_embedding,
    "Attention": attention,
    "MatMulInteger": integer_matmul,
    "DFT": dft,
}
