# SPDX-License-Identifier: Apache-2.0
"""Domains of operators with indices: what is gathered, scattered, selected, counted."""

from __future__ import annotations

import numpy as np

from exhaust.choices import Outside
from exhaust.making import Domain, Making
from exhaust.values import has_nan


def _indices(m: Making, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """The same number may stand at several places; from 11 on they may count from the end."""
    count = int(np.prod(shape, dtype=np.int64))
    if count and not size:
        raise Outside
    low = -size if m.opset >= 11 and m.flag("indices from the end") else 0
    every = list(range(low, size)) or [0]
    start, step = m.pick("first index", range(len(every))), m.pick("next index", [1, 0, 2])
    return np.array([every[(start + i * step) % len(every)] for i in range(count)], np.int64).reshape(shape)


def gather(m: Making) -> None:
    x = m.tensor(m.shape(1))
    axis = m.axis()
    if axis or m.flag("axis stated"):
        m.set("axis", axis)
    m.leave("axis")
    shape = tuple(m.pick("index size", (2, 1, 0)) for _ in range(m.pick("index rank", [1, 0, 2])))
    m.tensor(elements=_indices(m, x.shape[axis], shape))


def gather_elements(m: Making) -> None:
    x = m.tensor(m.shape(1))
    axis = m.axis()
    m.set("axis", axis)
    shape = tuple(m.pick("index size", range(size, -1, -1)) for size in x.shape)
    m.tensor(elements=_indices(m, x.shape[axis], shape))


def gather_nd(m: Making) -> None:
    x = m.tensor(m.shape(1))
    batch = m.pick("batch_dims", range(x.ndim)) if m.has("batch_dims") else 0
    if m.has("batch_dims"):
        m.set("batch_dims", batch)
    count = m.pick("depth", range(1, x.ndim - batch + 1))
    more = (m.pick("index size", (2, 1, 0)),) if m.flag("index rank") else ()
    shape = (*x.shape[:batch], *more)
    parts = [_indices(m, size, shape) for size in x.shape[batch : batch + count]]
    m.tensor(elements=np.stack(parts, axis=-1))


def scatter(m: Making) -> None:
    """Each place is written once; from 16 on also several times, where a reduction puts them together."""
    x = m.tensor(m.shape(1))
    axis = m.axis()
    m.set("axis", axis)
    shape = tuple(m.pick("index size", range(size, -1, -1)) for size in x.shape)
    way = "none"
    if m.has("reduction"):
        way = m.pick("reduction", ["none", "add", "mul", *(["max", "min"] if m.opset >= 18 else [])])
        if way != "none" or m.flag("reduction stated"):
            m.set("reduction", way)
        m.leave("reduction")
    size = x.shape[axis]
    if way == "none":
        line = np.arange(shape[axis])[:: -1 if m.flag("backwards") else 1] - (
            size if m.opset >= 11 and m.flag("from the end") else 0
        )
        places = np.broadcast_to(line.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]), shape)
    else:
        places = _indices(m, size, shape)
    m.tensor(elements=places)
    m.tensor(shape)


def scatter_nd(m: Making) -> None:
    x = m.tensor(m.shape(1))
    way = "none"
    if m.has("reduction"):
        way = m.pick("reduction", ["none", "add", "mul", *(["max", "min"] if m.opset >= 18 else [])])
        m.set("reduction", way)
    count = m.pick("rows", range(x.shape[0] + 1))
    depth = m.pick("depth", range(1, x.ndim + 1))
    if way == "none":
        rows = np.arange(count)[::-1][:, None]
        places = np.concatenate([rows, *[_indices(m, size, (count, 1)) for size in x.shape[1:depth]]], axis=1)
    else:
        places = np.stack([_indices(m, size, (count,)) for size in x.shape[:depth]], axis=-1)
    m.tensor(elements=places)
    m.tensor((count, *x.shape[depth:]))


def top_k(m: Making) -> None:
    """Of equal elements the lower index comes first."""
    x = m.tensor(m.shape(1))
    axis = m.axis() if m.flag("axis stated") else -1
    if axis != -1:
        m.set("axis", axis)
    m.leave("axis")
    k = m.pick("k", [1, 0, 2, 3])
    if k > x.shape[axis]:
        raise Outside
    if has_nan(x):
        raise Outside
    if m.has("sorted"):
        m.set("sorted", m.pick("sorted", [1, 0]) if k < 2 else 1)  # else in any order
    if m.has("k"):
        m.set("k", k)
    else:
        m.tensor(elements=[k])
    m.outputs = 2


def compress(m: Making) -> None:
    x = m.tensor(m.shape(1))
    m.leave("axis")
    size = x.size
    if m.flag("axis stated"):
        axis = m.axis()
        m.set("axis", axis)
        size = x.shape[axis]
    length = m.pick("length", range(min(size, 3), -1, -1))
    m.tensor(elements=np.array([m.flag("kept") for _ in range(length)], bool))


def reverse_sequence(m: Making) -> None:
    x = m.tensor(m.shape(2))
    batch = m.pick("batch_axis", [1, 0])
    m.set("batch_axis", batch)
    m.set("time_axis", 1 - batch)
    time = x.shape[1 - batch]
    if not time:
        raise Outside
    m.tensor(elements=np.array([m.pick("length", range(1, time + 1)) for _ in range(x.shape[batch])], np.int64))


def unique(m: Making) -> None:
    x = m.tensor(m.shape(1))
    m.leave("axis")
    if m.flag("axis stated"):
        m.set("axis", m.axis())
    if has_nan(x):
        raise Outside
    m.outputs = m.pick("outputs", [1, 4])


def grouped_mat_mul(m: Making) -> None:
    """Each row by the matrices of its own choice; the same one may be chosen several times."""
    rows, inner, columns, chosen = (m.pick(name, (2, 1, 0, 3)) for name in ("rows", "inner", "columns", "chosen"))
    groups = m.pick("groups", (3, 1))
    m.tensor((rows, inner))
    m.tensor((groups, inner, columns))
    step = m.pick("next index", [1, 0, 2])
    indices = np.arange(rows * chosen).reshape(rows, chosen) * step % groups
    m.tensor(elements=indices, dtype=m.pick("index dtype", m.dtypes(2)))
    if m.present("bias"):
        m.tensor((groups, columns))


def one_hot(m: Making) -> None:
    """Indices are whole numbers; those outside of the depth give rows of the off value."""
    shape = tuple(m.pick("index size", (2, 1, 0)) for _ in range(m.pick("index rank", [1, 2, 0])))
    count = int(np.prod(shape, dtype=np.int64))
    start = m.pick("first index", [0, 2, -1, -4, 9] if m.opset >= 11 else [0, 2, 9])
    step = m.pick("next index", [1, 0])
    kinds = [k for k in m.dtypes(0) if k[0] != "u" or start >= 0]
    kind = m.pick("index dtype", kinds, rare=True)
    m.tensor(elements=np.array([start + i * step for i in range(count)]).reshape(shape), dtype=kind)
    m.tensor(elements=np.array(3 if m.flag("scalar depth") else [3]))
    m.tensor((2,))
    m.leave("axis")
    if m.flag("axis stated"):
        m.set("axis", m.pick("axis", m.axes_of(len(shape) + 1)))


def non_max(m: Making) -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 1, 0, 0], [0, 10, 1, 11], [0, 10.1, 1, 11.1]], np.float32)
    batch, classes, count = m.pick("batch", (1, 2)), m.pick("classes", (1, 2, 0)), m.pick("boxes", (5, 1, 3, 0))
    m.tensor(elements=np.broadcast_to(boxes[:count], (batch, count, 4)), constant=False)
    scores = np.array([0.9, 0.75, 0.6, 0.95, 0.5], np.float32)[:count]
    m.tensor(elements=np.broadcast_to(scores, (batch, classes, count)), constant=False)
    if m.present("most"):
        m.tensor(elements=[m.pick("most", [3, 0, 1, 100])])
    if m.present("iou"):
        m.tensor(elements=[m.pick("iou", [0.5, 0.0, 1.0])])
    if m.present("score"):
        m.tensor(elements=[m.pick("score", [0.0, 0.6, 0.95])])


def label(m: Making) -> None:
    """Labels of classes in range, or the one that is ignored."""
    x = m.tensor((m.pick("batch", (2, 1, 3)), m.pick("classes", (3, 1, 2)), *m.shape(0, 2)))
    shape = (x.shape[0], *x.shape[2:])
    count = int(np.prod(shape, dtype=np.int64))
    step = m.pick("next label", [1, 0])
    labels = np.array([(i * step) % x.shape[1] for i in range(count)], np.int64)
    m.leave("ignore_index")
    m.set("reduction", m.pick("reduction", ["none", "sum", "mean"]))
    if m.flag("ignored"):
        ignored = m.pick("ignore_index", [0, -1, 7])
        m.set("ignore_index", ignored)
        if count and m.flag("some are"):
            labels[-1] = ignored
    counted = labels[labels != m.given.get("ignore_index", -1 - x.shape[1])]
    if m.given.get("reduction") == "mean" and not counted.size:
        raise Outside  # a mean of nothing
    m.tensor(elements=labels.reshape(shape), constant=False)
    if m.present("weights"):
        m.tensor((x.shape[1],))
    if m.operator == "SoftmaxCrossEntropyLoss":
        m.outputs = m.pick("outputs", [1, 2])


def tensor_scatter(m: Making) -> None:
    axis = m.pick("axis", [-2, 1, 2, -1])
    length = m.pick("length", (4, 3))
    shape = [m.pick("batch", (2, 1)), *m.sizes(2, (2, 1, 3))]
    shape[axis] = length
    m.tensor(tuple(shape))
    part = m.pick("part", (2, 1))
    update = list(shape)
    update[axis] = part
    m.tensor(tuple(update))
    m.set("axis", axis)
    mode = m.pick("mode", ["linear", "circular"])
    m.set("mode", mode)
    if m.present("write_indices"):
        first = m.pick("index", [0, 1, *([length - 1] if mode == "circular" else [])])
        m.tensor(elements=np.array([first, 0][: shape[0]], np.int64))


def ngrams(m: Making) -> None:
    words = m.flag("strings")
    m.tensor(m.shape(1, 2, (3, 5, 1)), dtype="string" if words else ["int64", "int32"], constant=False)
    grams = m.pick("grams", [[1, 2, 3, -1], [1, 0], [3, 3]])
    m.set("pool_strings" if words else "pool_int64s", ["a", "b", "ab", "c"][: len(grams)] if words else grams)
    two = len(grams) == 4 and m.flag("pairs")
    m.set("ngram_counts", [0, 2] if two else [0])
    m.set("ngram_indexes", list(range(3 if two else len(grams))))
    m.set("min_gram_length", m.pick("min", [1, 2] if two else [1]))
    m.set("max_gram_length", 2 if two else 1)
    m.set("max_skip_count", m.pick("skip", [0, 1, 3]))
    m.set("mode", m.pick("mode", ["TF", "IDF", "TFIDF"]))
    m.leave("pool_strings", "pool_int64s", "weights")
    if m.flag("weights"):
        m.set("weights", [0.5, 2.0, -1.0, 0.0][: 3 if two else len(grams)])


DOMAINS: dict[str, Domain] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    **dict.fromkeys(("Scatter", "ScatterElements"), scatter),
    "ScatterND": scatter_nd,
    "TopK": top_k,
    "Compress": compress,
    "ReverseSequence": reverse_sequence,
    "Unique": unique,
    "GroupedMatMul": grouped_mat_mul,
    "OneHot": one_hot,
    "NonMaxSuppression": non_max,
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), label),
    "TensorScatter": tensor_scatter,
    "TfIdfVectorizer": ngrams,
}
