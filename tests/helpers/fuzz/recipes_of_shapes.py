# SPDX-License-Identifier: Apache-2.0
"""Replays for operators that move data: axes, shapes, indices, reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuzz.growing import Step, Unfit, dtype_of, elem_type


def reduction(step: Step) -> None:
    real = step.schema.name in ("ReduceLogSum", "ReduceLogSumExp")  # of integers nobody says how they are rounded
    x = step.input(fits=lambda a: bool(a.size > 0 and ("float" in a.dtype.name or not real)))
    if step.chance(0.8):
        axes = step.axes(x.ndim)
        if axes or step.takes("axes"):
            step.setting("axes", np.array(axes, np.int64) if step.takes("axes") else axes, "int64")
    step.maybe("keepdims", [0, 1])
    step.maybe("noop_with_empty_axes", [0, 1])


def flatten(step: Step) -> None:
    x = step.input(least=1)
    if step.chance(0.8):
        step.set("axis", step.axis(x.ndim + (step.opset < 11)))


def reshape(step: Step) -> None:
    x = step.input()
    shape = list(x.shape)
    step.random.shuffle(shape)
    if len(shape) > 1 and step.chance():
        first, second, *rest = shape
        shape = [first * second, *rest]
    shape = [1, *shape] if step.chance(0.3) else shape
    if shape and step.chance(0.4) and all(shape):
        shape[step.random.randrange(len(shape))] = -1
    for i, size in enumerate(x.shape[: len(shape)]):
        if shape[i] == size and step.chance(0.3):
            shape[i] = 0
    if 0 in x.shape and -1 not in shape:
        step.maybe("allowzero", [0, 1])
    step.setting("shape", np.array(shape, np.int64) if step.takes("shape") else shape, "int64")


def transpose(step: Step) -> None:
    x = step.input()
    if step.chance(0.8):
        step.set("perm", step.random.sample(range(x.ndim), x.ndim))


def concat(step: Step) -> None:
    x = step.input(least=2)
    axis = step.axis(x.ndim) if step.opset >= 4 or step.chance() else 1
    if step.opset >= 4 or axis != 1:
        step.set("axis", axis)
    for _ in range(step.random.randint(0, 2)):
        size = step.random.randint(1, 3)
        shape = tuple(size if i == axis % x.ndim else s for i, s in enumerate(x.shape))
        step.input(step.random.choice([x.shape, shape]))


def split(step: Step) -> None:
    x = step.input(least=1)
    axis = step.axis(x.ndim)
    if axis % x.ndim or step.chance():
        step.set("axis", axis)
    total = x.shape[axis]
    step.outputs = step.random.randint(1, 3)
    if total % step.outputs or step.chance(0.6):
        cuts = sorted(step.random.randint(0, total) for _ in range(step.outputs - 1))
        parts = np.diff([0, *cuts, total])
        if total >= step.outputs and step.opset >= 18 and step.chance(0.3):
            chunk = -(-total // step.outputs)
            if chunk * (step.outputs - 1) > total:
                raise Unfit
            step.set("num_outputs", step.outputs)
        else:
            step.setting("split", parts if step.takes("split") else [int(p) for p in parts], "int64")
    else:
        step.set("num_outputs", step.outputs)


def squeeze(step: Step) -> None:
    x = step.input(fits=lambda a: 1 in a.shape, fresh=lambda a: a[..., None])
    ones = [i for i, size in enumerate(x.shape) if size == 1]
    if step.chance(0.8) or step.opset < 11:
        axes = step.random.sample(ones, step.random.randint(1, len(ones)))
        axes = [a - x.ndim if step.opset >= 11 and step.chance(0.3) else a for a in axes]
        step.setting("axes", np.array(axes) if step.takes("axes") else axes, "int64")


def unsqueeze(step: Step) -> None:
    x = step.input()
    count = step.random.randint(1, 2)
    axes = step.random.sample(range(x.ndim + count), count)
    axes = [a - x.ndim - count if step.opset >= 11 and step.chance(0.3) else a for a in axes]
    step.setting("axes", np.array(axes) if step.takes("axes") else sorted(axes), "int64")


def expand(step: Step) -> None:
    x = step.input()
    shape = [step.random.choice([1, 3]) if size == 1 else step.random.choice([1, size]) for size in x.shape]
    step.give(np.array([2, *shape] if step.chance(0.3) else shape, np.int64), "int64")


def tile(step: Step) -> None:
    x = step.input(least=1)
    if step.takes("tiles"):
        step.give(step.random.randint(1, 3), dtype_of(x))
        step.give(step.random.randrange(x.ndim), dtype_of(x))
    else:
        step.give(np.array([step.random.choice([1, 1, 2, 3]) for _ in x.shape], np.int64), "int64")


def _indices(step: Step, size: int, shape: tuple[int, ...]) -> np.ndarray:
    if not size:
        raise Unfit
    low = -size if step.opset >= 11 and step.chance() else 0
    return np.array([step.random.randrange(low, size) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)


def gather(step: Step) -> None:
    x = step.input(least=1)
    axis = step.axis(x.ndim)
    if axis or step.chance():
        step.set("axis", axis)
    step.give(_indices(step, x.shape[axis], step.growth.draw_shape(step.random.randint(0, 2))), "int64")


def gather_elements(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: a.size > 0)
    axis = step.axis(x.ndim)
    step.set("axis", axis)
    shape = tuple(step.random.randint(1, size) for size in x.shape)
    step.give(_indices(step, x.shape[axis], shape), "int64")


def gather_nd(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: a.size > 0)
    batch = step.random.randint(0, x.ndim - 1) if step.has("batch_dims") and step.chance() else 0
    step.maybe("batch_dims", [batch]) if not batch else step.set("batch_dims", batch)
    count = step.random.randint(1, x.ndim - batch)
    shape = (*x.shape[:batch], 2)
    parts = [_indices(step, size, shape) for size in x.shape[batch : batch + count]]
    step.give(np.stack(parts, axis=-1), "int64")


def scatter(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: a.size > 0)
    axis = step.axis(x.ndim)
    step.set("axis", axis)
    shape = tuple(step.random.randint(1, size) for size in x.shape)
    size, long = x.shape[axis], shape[axis]
    order = step.random.sample(range(size), long)  # distinct: the order of writing does not matter
    lined = np.array(order, np.int64).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    step.give(np.broadcast_to(lined, shape), "int64")
    step.input(shape)
    if x.dtype.kind != "b":
        step.maybe("reduction", ["none", "add", "mul", "max", "min"][: 5 if step.opset >= 18 else 3])


def scatter_nd(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: a.size > 0)
    count = step.random.randint(1, x.shape[0])
    rows = np.array(step.random.sample(range(x.shape[0]), count), np.int64)[:, None]
    step.give(rows, "int64")
    step.input((count, *x.shape[1:]))
    if x.dtype.kind != "b":
        step.maybe("reduction", ["none", "add", "mul", "max", "min"][: 5 if step.opset >= 18 else 3])


def slice_(step: Step) -> None:
    x = step.input(least=1)
    axes = step.axes(x.ndim, step.random.randint(1, x.ndim))
    steps = [step.random.choice([1, 1, 2, -1, -2]) if step.opset >= 10 else 1 for _ in axes]
    if all(s == 1 for s in steps) and step.chance():
        steps = []
    starts, ends = [], []
    for i, axis in enumerate(axes):
        size = x.shape[axis]
        start, end = (step.random.choice([*range(-size - 1, size + 2), 2**31 - 1]) for _ in range(2))
        if steps and steps[i] < 0:
            start, end = step.random.choice([(-1, -(2**31)), (size, 0), (2, -size - 1)])
        starts.append(start)
        ends.append(end)
    if step.has("starts"):
        step.set("starts", starts)
        step.set("ends", ends)
        step.set("axes", axes)
        return
    kind = step.random.choice(["int64", "int32"])
    for given in (starts, ends, axes, steps)[: 4 if steps else 3]:
        step.give(given, kind)


def pad(step: Step) -> None:
    x = step.input(least=1)
    modes = ["constant", "constant", "reflect", "edge", *(["wrap"] if step.opset >= 19 else [])]
    mode = step.random.choice(modes)
    if mode != "constant" or step.chance():
        step.set("mode", mode)
    axes = list(range(x.ndim))
    if step.takes("axes") and step.chance():
        axes = step.axes(x.ndim, step.random.randint(1, x.ndim))
    room = {"constant": 3, "edge": 3}.get(mode, 2)
    pads = [
        step.random.randint(
            -1 if mode == "constant" and x.shape[a] > 1 else 0,  # both ends may take one away
            min(room, max(0, x.shape[a] - 1) if mode == "reflect" else room),
        )
        for a in axes * 2
    ]
    if mode != "constant" and x.size == 0:
        raise Unfit
    for name in ("paddings", "pads"):
        if step.has(name):
            step.set(name, pads)
            step.maybe("value", [0.0, 1.5])
            return
    step.give(pads, "int64")
    if mode == "constant" and step.chance():
        step.give(step.random.choice([0, 1]), dtype_of(x))
    elif len(axes) < x.ndim:
        step.omit()
    if axes != list(range(x.ndim)):
        step.setting("axes", np.array(axes), step.random.choice(["int64", "int32"]))


def _distinct(array: np.ndarray) -> bool:
    return array.size > 0 and len(np.unique(array.astype(np.float64))) == array.size


def top_k(step: Step) -> None:
    x = step.input(least=1, fits=_distinct, fresh=lambda a: np.arange(a.size)[::-1].reshape(a.shape).astype(a.dtype))
    axis = step.axis(x.ndim)
    step.set("axis", axis)
    k = step.random.randint(1, x.shape[axis])
    if step.has("k"):
        step.set("k", k)
    else:
        step.give([k], "int64")
    step.maybe("largest", [0, 1])
    step.outputs = 2


def constant_of_shape(step: Step) -> None:
    step.give(step.growth.draw_shape(step.random.randint(0, 3)), "int64")


def range_(step: Step) -> None:
    kind = step.random.choice(["int64", "int32", "float"])
    for value in step.random.choice([(0, 5, 1), (5, 0, -2), (1, 1, 1), (-2, 4, 3)]):
        step.give(value, kind)


def compress(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: a.size > 0)
    size = x.size
    if step.chance():
        axis = step.axis(x.ndim)
        step.set("axis", axis)
        size = x.shape[axis]
    step.give([step.chance() for _ in range(step.random.randint(1, size))], "bool")


def space_depth(step: Step) -> None:
    side = 2
    shape = (1, 4, 3, 2) if step.schema.name == "DepthToSpace" else (1, 3, 4, 2)
    step.input(shape)
    step.set("blocksize", side)
    step.maybe("mode", ["DCR", "CRD"])


def shape_(step: Step) -> None:
    step.input()
    step.maybe("start", [-2, 0, 1])
    step.maybe("end", [-1, 2, 5])


def reverse_sequence(step: Step) -> None:
    x = step.input(least=2, fits=lambda a: a.size > 0)
    batch = step.random.choice([0, 1])
    step.set("batch_axis", batch)
    step.set("time_axis", 1 - batch)
    step.give([step.random.randint(1, x.shape[1 - batch]) for _ in range(x.shape[batch])], "int64")


def center_crop_pad(step: Step) -> None:
    x = step.input(least=1)
    axes = list(range(x.ndim))
    if step.chance():
        axes = step.axes(x.ndim, 1)
        step.set("axes", axes)
    step.give([step.random.randint(1, 5) for _ in axes], "int64")


def unique(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: a.size > 0)
    step.maybe("sorted", [1])
    if step.chance():
        step.set("axis", step.axis(x.ndim))
    step.outputs = step.random.choice([1, 1, 4])


def determinant(step: Step) -> None:
    size = step.random.randint(1, 3)
    step.input((*step.growth.draw_shape(step.random.randint(0, 2)), size, size))


def window(step: Step) -> None:
    step.give(step.random.randint(2, 6), "int64")
    step.maybe("periodic", [0, 1])


def loss(step: Step) -> None:
    x = step.input(step.random.choice([(3, 4), (2, 3, 4)]))
    shape = (x.shape[0], *x.shape[2:])
    step.give(np.array([step.random.randrange(x.shape[1]) for _ in range(int(np.prod(shape)))]).reshape(shape), "int64")
    if step.chance():
        step.input((x.shape[1],), fits=lambda a: bool(np.all(a > 0)), fresh=lambda a: abs(a) + a.dtype.type(1))
    step.maybe("reduction", ["none", "sum", "mean"])
    step.maybe("ignore_index", [1])


def tensor_scatter(step: Step) -> None:
    step.input((2, 4, 3))
    step.input((2, 2, 3))
    if step.chance():
        step.give([1, 2], "int64")
    step.set("axis", step.random.choice([1, -2]))
    step.maybe("mode", ["linear", "circular"])


def cast_bits(step: Step) -> None:
    step.input(dtype="float")
    step.set("to", elem_type("int32"))


RECIPES: dict[str, Callable[[Step], None]] = {
    **dict.fromkeys(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare".split(),
        reduction,
    ),
    "Flatten": flatten,
    "Reshape": reshape,
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Tile": tile,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Scatter": scatter,
    "ScatterElements": scatter,
    "ScatterND": scatter_nd,
    "Slice": slice_,
    "Pad": pad,
    "TopK": top_k,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
    "Compress": compress,
    "DepthToSpace": space_depth,
    "SpaceToDepth": space_depth,
    "Shape": shape_,
    "ReverseSequence": reverse_sequence,
    "CenterCropPad": center_crop_pad,
    "BitCast": cast_bits,
    "Unique": unique,
    "Det": determinant,
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), window),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), loss),
    "TensorScatter": tensor_scatter,
}
