# SPDX-License-Identifier: Apache-2.0
"""Domains of operators that move data: axes, shapes, reductions."""

from __future__ import annotations

import numpy as np

from exhaust.attributes import BIG
from exhaust.choices import Outside
from exhaust.making import Domain, Making
from exhaust.values import has_nan


def reduction(m: Making) -> None:
    x = m.tensor(m.shape())
    if m.operator in ("ReduceMax", "ReduceMin") and has_nan(x):
        raise Outside
    if m.operator == "ReduceMean" and not x.size:
        raise Outside  # "undefined", the text says
    if m.operator == "ReduceL2" and x.dtype.kind in "iu" and _squares_wrap(x):
        raise Outside  # no text tells the root of a square that has no room
    if m.flag("axes"):
        axes = m.some_axes(x.ndim)
        if not axes and m.has("axes"):
            raise Outside
        m.setting("axes", np.array(axes, np.int64) if m.takes("axes") else axes)
    m.leave("axes")


def _squares_wrap(x: np.ndarray) -> bool:
    return sum(int(one) ** 2 for one in x.ravel()) > np.iinfo(x.dtype).max


def flatten(m: Making) -> None:
    x = m.tensor(m.shape(0))
    m.set("axis", m.pick("axis", [a for a in [1, 0, *m.axes_of(x.ndim), x.ndim] if -x.ndim <= a <= x.ndim]))


def reshape(m: Making) -> None:
    """Zeros keep a size or are one, -1 is what is left."""
    x = m.tensor(m.shape())
    shape = [m.pick("to", [-1, 0, 1, 2, 3]) for _ in range(m.pick("to rank", [1, 2, 0, 3]))]
    if m.has("allowzero"):
        m.set("allowzero", m.pick("allowzero", [0, 1]))
    if shape.count(-1) > 1:
        raise Outside
    kept = [x.shape[i] if size == 0 and i < x.ndim and not m._attributes.get("allowzero") else size
            for i, size in enumerate(shape)]  # fmt: skip
    rest = int(np.prod([size for size in kept if size != -1], dtype=np.int64))
    if (-1 in kept and (not rest or x.size % rest)) or (-1 not in kept and rest != x.size):
        raise Outside
    m.setting("shape", np.array(shape, np.int64) if m.takes("shape") else shape)


def concat(m: Making) -> None:
    x = m.tensor(m.shape(1))
    axis = m.axis() if m.opset >= 4 or m.flag("axis stated") else 1
    if m.opset >= 4 or axis != 1:
        m.set("axis", axis)
    m.leave("axis")
    if axis >= x.ndim:
        raise Outside
    for _ in range(m.pick("more", [1, 0, 2])):
        size = m.pick("size", (2, 1, 0, 3))
        m.tensor(tuple(size if i == axis % x.ndim else s for i, s in enumerate(x.shape)))


def split(m: Making) -> None:
    x = m.tensor(m.shape(1, sizes=(2, 3, 1, 0, 4)))
    m.leave("axis", "num_outputs", "split")
    axis = m.pick("axis", [0, *(a for a in m.axes_of(x.ndim) if a)])
    if axis or m.flag("axis stated"):
        m.set("axis", axis)
    total = x.shape[axis]
    m.outputs = m.pick("outputs", [2, 1, 3])
    if m.has("num_outputs") and m.flag("num_outputs"):
        m.set("num_outputs", m.outputs)
        if -(-total // m.outputs) * (m.outputs - 1) > total:
            raise Outside  # of too few elements nothing is left for the last part, an error at every run
    elif m.flag("split"):
        cuts = sorted(m.pick("cut", range(total + 1)) for _ in range(m.outputs - 1))
        parts = np.diff([0, *cuts, total])
        m.setting("split", parts if m.takes("split") else [int(p) for p in parts])
    elif total % m.outputs or m.has("num_outputs"):
        raise Outside


def squeeze(m: Making) -> None:
    x = m.tensor(m.shape(0, sizes=(1, 2, 3, 0)))
    ones = [a for a in m.axes_of(x.ndim, "axes") if x.shape[a] == 1]
    m.leave("axes")
    if m.flag("axes"):
        axes = [axis for axis in ones if m.flag("squeezed")]
        if len({a % x.ndim for a in axes}) < len(axes):
            raise Outside
        m.setting("axes", np.array(axes, np.int64) if m.takes("axes") else axes)


def unsqueeze(m: Making) -> None:
    x = m.tensor(m.shape())
    count = m.pick("count", [1, 2, 0])
    every = m.axes_of(x.ndim + count, "axes")
    axes = [m.pick("axes", every) for _ in range(count)]
    if len({a % (x.ndim + count) for a in axes}) < count:
        raise Outside
    m.setting("axes", np.array(axes, np.int64) if m.takes("axes") else axes)


def expand(m: Making) -> None:
    x = m.tensor(m.shape())
    m.tensor(elements=np.array(m.stretching(x.shape), np.int64))


def tile(m: Making) -> None:
    x = m.tensor(m.shape(1 if m.takes("tiles") else 0))
    if m.takes("tiles"):
        m.tensor(elements=m.pick("tiles", [2, 1, 0, 3]))
        m.tensor(elements=m.pick("axis", range(x.ndim)))
    else:
        m.tensor(elements=np.array([m.pick("repeats", [2, 1, 0, 3]) for _ in x.shape], np.int64))


def slice_(m: Making) -> None:
    x = m.tensor(m.shape(1, sizes=(3, 2, 1, 0)))
    axes = m.some_axes(x.ndim, "axes" if m.opset >= 10 else "starts", least=1)
    bounds = [0, 1, -1, 2, -2, BIG, -BIG - 1, 5]
    starts, ends = ([m.pick(name, order) for _ in axes] for name, order in
                    (("starts", bounds), ("ends", [BIG, 1, -1, 2, 0, -4, -BIG - 1])))  # fmt: skip
    named = m.flag("axes stated") or axes != list(range(len(axes)))
    if m.has("starts"):
        m.set("starts", starts)
        m.set("ends", ends)
        m.leave("axes")
        if named:
            m.set("axes", axes)
        return
    kinds = m.pick("index dtype", [["int64"], ["int32"]])
    m.tensor(elements=starts, dtype=kinds)
    m.tensor(elements=ends, dtype=kinds)
    if named:
        m.tensor(elements=axes, dtype=kinds)
    else:
        m.omit()
    if m.flag("steps"):
        m.tensor(elements=[m.pick("step", [1, -1, 2, -2, BIG, -BIG]) for _ in axes], dtype=kinds)


def pad(m: Making) -> None:
    x = m.tensor(m.shape(1))
    mode = m.pick("mode", ["constant", "reflect", "edge", *(["wrap"] if m.opset >= 19 else [])])
    if mode != "constant" or m.flag("mode stated"):
        m.set("mode", mode)
    m.leave("mode", "value")
    axes = list(range(x.ndim))
    if m.takes("axes") and m.flag("axes"):
        axes = m.some_axes(x.ndim)
    pads = [m.pick("pads", [1, 0, 2, -1, 3]) for _ in axes * 2]
    for i, axis in enumerate(axes):
        begin, end, size = pads[i], pads[i + len(axes)], x.shape[axis]
        if size + min(begin, 0) + min(end, 0) < 0 or (mode != "constant" and size == 0 and max(begin, end) > 0):
            raise Outside
        if mode == "reflect" and max(begin, end) >= max(size, 1):
            raise Outside
        if mode != "constant" and min(begin, end) < 0:
            raise Outside  # whether what is cut off is still mirrored, nobody says
    for name in ("paddings", "pads"):
        if m.has(name):
            m.set(name, pads)
            if m.flag("value"):
                m.set("value", m.pick("value is", [1.5, 0.0, float("inf"), float("nan")]))
            return
    m.tensor(elements=np.array(pads, np.int64))
    if m.flag("value"):
        m.tensor((), constant=m.flag("constant"))
    elif len(axes) < x.ndim or m.flag("no value"):
        m.omit()
    if m.takes("axes") and axes != list(range(x.ndim)):
        while len(m._inputs) < 3:
            m.omit()
        m.setting("axes", np.array(axes, np.int64))


def constant_of_shape(m: Making) -> None:
    import onnx

    m.tensor(elements=np.array(m.shape(), np.int64))
    m.leave("value")
    if m.flag("value"):
        names = [t[7:-1] for t in m.schema.outputs[0].types]
        from exhaust.values import FIRSTS, pool

        chosen = m.pick("value dtype", [n for n in FIRSTS if n in names] + sorted(set(names) - set(FIRSTS)))
        kind = m.pick("value is", ["plain", "extreme", "long"])
        m.set("value", onnx.numpy_helper.from_array(pool(chosen, kind)[:1], "v"))


def range_(m: Making) -> None:
    every = [(0, 5, 1), (5, 0, -2), (1, 1, 1), (-2, 4, 3), (3, 0, 1), (0, 3, 2), (0, 2, 3)]
    real = [(0, 1, 0.1), (1, 0, -0.25), (16777216, 16777220, 1), (0.1, 0.4, 0.1)]
    wide = [(2**53, 2**53 + 3, 1), (-(2**62), -(2**62) + 5, 2), (2**62, 2**62 - 4, -3), (-(2**63), 2**63 - 1, 2**62)]
    kind = m.pick("dtype", m.dtypes(0))
    span = m.pick(
        "span", every + (real if "float" in kind or kind == "double" else []) + (wide if kind == "int64" else [])
    )
    if kind == "int16":
        span = m.pick("int16 span", [span, (-32768, 32767, 20000), (32767, -32768, -30000)])
    for value in span:
        if not np.isfinite(m.tensor(elements=np.array(value), dtype=kind).astype(np.float64)):
            raise Outside


def depth_space(m: Making) -> None:
    side = m.pick("blocksize", [2, 1, 3])
    m.set("blocksize", side)
    batch, channels, height, width = m.sizes(4, (1, 2, 0))
    if m.operator == "DepthToSpace":
        m.tensor((batch, channels * side * side, height, width))
        if m.has("mode"):
            m.set("mode", m.pick("mode", ["DCR", "CRD"]))
    else:
        m.tensor((batch, channels, height * side, width * side))
        if m.has("mode"):
            m.set("mode", m.pick("mode", ["DCR", "CRD"]))


def center_crop_pad(m: Making) -> None:
    x = m.tensor(m.shape(1))
    axes = list(range(x.ndim))
    m.leave("axes")
    if m.flag("axes"):
        axes = m.some_axes(x.ndim)
        m.set("axes", axes)
    m.tensor(elements=np.array([m.pick("to", [2, 1, 4, 0, 5]) for _ in axes], np.int64))


def eye_like(m: Making) -> None:
    m.tensor(m.sizes(2))


def trilu(m: Making) -> None:
    m.tensor(m.shape(2, 4))
    if m.present("k"):
        m.tensor(elements=np.array(m.pick("k", [0, 1, -1, 5, -5, 2**62, -(2**62), 2**63 - 1, -(2**63)]), np.int64))


def upper_matrix(m: Making) -> None:
    size = m.pick("side", (2, 1, 3, 0))
    m.tensor((*m.shape(0, 1), size, size))


def mel(m: Making) -> None:
    for value, dtype in (
        (m.pick("bins", [3, 1, 8]), ""),
        (m.pick("dft", [16, 8]), ""),
        (m.pick("rate", [8000, 100]), ""),
    ):
        m.tensor(elements=np.array(value), dtype=dtype)
    low, high = m.pick("edges", [(0.0, 4000.0), (20.0, 50.0)])
    m.tensor(elements=np.array(low), dtype="float")
    m.tensor(elements=np.array(high), dtype="float")


def window(m: Making) -> None:
    m.tensor(elements=np.array(m.pick("length", [5, 1, 2, 4, 0])))


DOMAINS: dict[str, Domain] = {
    **dict.fromkeys(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare".split(),
        reduction,
    ),
    "Flatten": flatten,
    "Reshape": reshape,
    "Concat": concat,
    "Split": split,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Tile": tile,
    "Slice": slice_,
    "Pad": pad,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), depth_space),
    "CenterCropPad": center_crop_pad,
    "EyeLike": eye_like,
    "Trilu": trilu,
    "Det": upper_matrix,
    "MelWeightMatrix": mel,
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), window),
}
