# SPDX-License-Identifier: Apache-2.0
"""Domains of layers: normalisation, products of matrices, quantisation, recurrence, attention, waves."""

from __future__ import annotations

import numpy as np

from exhaust.making import Domain, Making
from exhaust.windows import image


def batch_normalization(m: Making) -> None:
    shape = image(m, channels=(2, 1, 3)) if not m.flag("two axes") else m.sizes(2, (2, 1, 3))
    m.leave("is_test", "spatial", "training_mode")
    m.set("is_test", 1)
    if m.has("spatial") and m.flag("spatial stated"):
        m.set("spatial", 1)
    m.tensor(shape)
    for _ in range(3):
        m.tensor(shape[1:2])
    m.tensor(elements=np.array([0.5, 1.0, 2.0])[: shape[1]])


def instance_normalization(m: Making) -> None:
    shape = image(m, channels=(2, 1, 3))
    m.tensor(shape)
    m.tensor(shape[1:2])
    m.tensor(shape[1:2])


def group_normalization(m: Making) -> None:
    shape = image(m, channels=(2, 4, 1))
    m.tensor(shape)
    groups = m.pick("num_groups", [g for g in (1, 2, 4) if shape[1] % g == 0])
    m.set("num_groups", groups)
    size = (groups,) if m.opset < 21 else shape[1:2]
    m.tensor(size)
    m.tensor(size)


def mean_variance(m: Making) -> None:
    m.leave("axes")
    x = m.tensor(image(m))
    if x.ndim != 4 or m.flag("axes"):
        m.set("axes", m.some_axes(x.ndim, least=1))


def gemm(m: Making) -> None:
    rows, inner, columns = m.sizes(3)
    across, along = m.flag("transA"), m.flag("transB")
    for name, there in (("transA", across), ("transB", along)):
        if there:
            m.set(name, 1)
        m.leave(name)
    m.leave("broadcast")
    m.tensor((inner, rows) if across else (rows, inner))
    m.tensor((columns, inner) if along else (inner, columns))
    if m.opset >= 11 and not m.present("C"):
        return
    if m.opset >= 7:
        m.tensor(m.pick("C is", [(rows, columns), (columns,), (1, columns), (rows, 1), (), (1,)]))
    elif m.flag("broadcast"):
        m.set("broadcast", 1)
        m.tensor(m.pick("C is", [(columns,), (1,), (rows, columns)]))
    else:
        m.tensor((rows, columns))


def matmul_integer(m: Making) -> None:
    rows, inner, columns = m.sizes(3)
    batch = m.shape(0, 1)
    m.tensor(m.pick("A is", [(rows, inner), (*batch, rows, inner), (inner,)]))
    m.tensor(m.pick("B is", [(inner, columns), (*batch, inner, columns), (inner,)]))
    for name in ("a_zero_point", "b_zero_point"):
        if m.present(name):
            a = name[0] == "a"
            m.tensor(m.pick("zero points", [(), (1,), (rows,) if a else (columns,)]))


def qlinear_matmul(m: Making) -> None:
    """Scales are exact, or such that no product lies halfway before single precision rounds it."""
    rows, inner, columns = m.sizes(3)
    for shape, per in (((rows, inner), (rows, 1)), ((inner, columns), (columns,))):
        size = m.pick("scales", [(), per])
        m.tensor(shape)
        m.tensor(elements=np.full(size, m.pick("scale", [0.5, 0.1037])))
        m.tensor(size)
    m.tensor(elements=np.array(m.pick("scale", [0.5, 0.2993])))
    m.tensor(())


def quantize(m: Making) -> None:
    """Blocks of two, or a scale for each index of an axis, or one for all."""
    m.leave("axis", "block_size", "saturate", "precision", "output_dtype")
    x = m.tensor(m.shape(0, 3, (2, 4, 1, 0)))
    shape: tuple[int, ...] = m.pick("scale of rank", [(), (1,)] if m.opset >= 13 and x.ndim else [()])
    if m.has("axis") and x.ndim and m.flag("axis stated"):
        axis = m.axis()
        m.set("axis", axis)
        shape = (x.shape[axis],)
        if m.has("block_size") and m.flag("blocks"):
            m.set("block_size", 2)
            shape = tuple(-(-size // 2) if i == axis % x.ndim else size for i, size in enumerate(x.shape))
    count = int(np.prod(shape, dtype=np.int64))
    scales = m.pick("scale", [[0.5], [0.1], [2.0, 0.25], [1e-3]])
    m.tensor(elements=np.resize(np.array(scales), count).reshape(shape), constant=m.flag("constant", rare=True))
    if m.operator == "QuantizeLinear":
        if m.has("saturate") and m.flag("saturate"):
            m.set("saturate", m.pick("saturate is", [1, 0]))
        if m.has("precision") and m.flag("precision"):
            m.set("precision", m.pick("precision is", [0, 1, 10]))
    if m.present("zero_point"):
        constant = m.flag("constant", rare=True)
        without = m.operator == "DequantizeLinear" and x.dtype == np.int32  # which has none, or 0
        m.tensor(shape, elements=np.zeros(shape) if without else None, constant=constant)
    elif m.operator == "QuantizeLinear" and m.has("output_dtype") and m.flag("output_dtype"):
        m.set("output_dtype", m.pick("output_dtype is", [2, 3, 4, 5, 21, 22, 17, 18, 19, 20, 23]))


def dequantize(m: Making) -> None:
    quantize(m)


def recurrent(m: Making) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[m.operator]
    length, batch, width, hidden = (
        m.pick("length", (3, 1, 2)),
        m.pick("batch", (2, 1, 3)),
        2,
        m.pick("hidden", (2, 1, 3)),
    )
    m.leave(*m.schema.attributes)
    m.set("hidden_size", hidden)
    way = m.pick("direction", ["forward", "reverse", "bidirectional"])
    if way != "forward" or m.flag("direction stated"):
        m.set("direction", way)
    directions = 1 + (way == "bidirectional")
    m.set("output_sequence", 1)
    for name, options in {"linear_before_reset": [0, 1], "input_forget": [0, 1], "clip": [0.5]}.items():
        if m.has(name) and m.flag(name):
            m.set(name, m.pick(f"{name} is", options))
    layout = int(m.has("layout") and m.flag("layout"))
    if layout:
        m.set("layout", layout)
    m.tensor((batch, length, width) if layout else (length, batch, width))
    m.tensor((directions, gates * hidden, width))
    m.tensor((directions, gates * hidden, hidden))
    if m.present("B"):
        m.tensor((directions, 2 * gates * hidden))
    if m.present("sequence_lens"):
        m.tensor(elements=np.array([m.pick("length of", range(length, -1, -1)) for _ in range(batch)], np.int32))
    state = (batch, directions, hidden) if layout else (directions, batch, hidden)
    if m.present("initial_h"):
        m.tensor(state)
    if m.operator == "LSTM":
        if m.present("initial_c"):
            m.tensor(state)
        if m.present("P"):
            m.tensor((directions, 3 * hidden))
    m.outputs = m.pick("outputs", [2, 1, 3] if m.operator == "LSTM" else [2, 1])


def dft(m: Making) -> None:
    shape = (m.pick("batch", (1, 2)), *m.sizes(m.pick("axes", (1, 2)), (4, 3, 1)))
    parts = m.pick("parts", (1, 2))
    m.tensor((*shape, parts), constant=False)
    m.leave("axis", "onesided", "inverse")
    m.set("inverse", m.pick("inverse", [0, 1]))
    if parts == 1 and m.flag("onesided"):  # of complex numbers evaluators know no inverse that is one-sided
        m.set("onesided", m.pick("onesided is", [1, 0]))
    places = [*range(1, len(shape)), *([-2] if m.opset >= 17 else [])]
    axis = m.pick("axis", places)
    if m.present("dft_length"):
        m.tensor(elements=np.array(m.pick("length", [3, 5, 1, 4])))
    if m.has("axis"):
        m.set("axis", axis)
    elif axis != -2 or m.flag("axis stated"):
        m.tensor(elements=np.array(axis))


def stft(m: Making) -> None:
    length, frame = m.pick("length", (8, 5)), m.pick("frame", (4, 3, 2))
    m.tensor((m.pick("batch", (1, 2)), length, m.pick("parts", (1, 2))), constant=False)
    m.tensor(elements=np.array(m.pick("step", [2, 1, 3])))
    both = m.pick("window", ["length", "window", "both"])
    if both == "length":
        m.omit()
    else:
        m.tensor((frame,))
    if both != "window":
        m.tensor(elements=np.array(frame))


def attention(m: Making) -> None:
    m.leave(*m.schema.attributes)
    batch, kv, times, depth, wide = (
        m.pick("batch", (1, 2)),
        m.pick("kv heads", (1, 2)),
        m.pick("times", (1, 2)),
        2,
        m.pick("v depth", (2, 3)),
    )
    asked, known, past = m.pick("q length", (2, 3, 1)), m.pick("kv length", (3, 2, 1)), 0
    heads = kv * times
    flat = m.flag("three axes")
    if flat:
        m.set("q_num_heads", heads)
        m.set("kv_num_heads", kv)
    m.tensor((batch, asked, heads * depth) if flat else (batch, heads, asked, depth), constant=False)
    m.tensor((batch, known, kv * depth) if flat else (batch, kv, known, depth), constant=False)
    if m.feeds["x0"].dtype == np.float64:  # values in less are rounded as each likes
        m.bound["T2"] = "double"
    m.tensor((batch, known, kv * wide) if flat else (batch, kv, known, wide), constant=False)
    masks = ["no", "(q, k)", "(b, 1, q, k)", *(["short"] if m.opset == 24 else [])]
    masks += ["(1, k)"] if asked == 1 else []  # one row for all queries is allowed, but no runtime takes it
    mask = m.pick("mask", masks)
    pasts = m.flag("past")
    past = 2 if pasts else 0
    total = known + past
    if mask == "no":
        m.omit()
    else:
        kinds = ["float", "double", "float16", "bfloat16", "bool"]  # integers are neither of the two kinds of the text
        m.tensor({"(q, k)": (asked, total), "(b, 1, q, k)": (batch, 1, asked, total), "(1, k)": (1, total),
                  "short": (asked, max(total - 1, 1))}[mask], dtype=kinds)  # fmt: skip
    if pasts:
        m.tensor((batch, kv, past, depth), constant=False)
        m.tensor((batch, kv, past, wide), constant=False)
    elif m.opset >= 24 and m.flag("nonpad"):
        m.omit()
        m.omit()
        m.tensor(elements=np.array([m.pick("nonpad is", range(known, 0, -1)) for _ in range(batch)]))
    options: dict[str, list[float]] = {
        "is_causal": [1, 0],
        "scale": [0.5, 1.0],
        "softcap": [2.0, 0.0],
        "qk_matmul_output_mode": [0, 3],  # between the steps, what is masked is as each likes
        "left_window_size": [1, 0, -1, 5],
        "right_window_size": [1, 0, -1, 5],
        "softmax_precision": [1, 11],
    }
    for name, sizes in options.items():
        if m.has(name) and m.flag(name):
            m.set(name, m.pick(f"{name} is", sizes))
    m.outputs = m.pick("outputs", [3, 4] if pasts else [1])


def rotary(m: Making) -> None:
    m.leave("num_heads", "rotary_embedding_dim")
    batch, heads, length, size = m.pick("batch", (1, 2)), m.pick("heads", (2, 1)), m.pick("length", (2, 3, 1)), 4
    flat = m.flag("three axes")
    if flat:
        m.set("num_heads", heads)
    turned = m.pick("rotary_embedding_dim", [0, 2, 4])
    if turned:
        m.set("rotary_embedding_dim", turned)
    m.tensor((batch, length, heads * size) if flat else (batch, heads, length, size), constant=False)
    half = (turned or size) // 2
    by = m.flag("position_ids")
    for _ in range(2):
        m.tensor((5, half) if by else (batch, length, half))
    if by:
        m.tensor(elements=np.resize(np.array([1, 0, 4]), batch * length).reshape(batch, length))


def causal_conv(m: Making) -> None:
    batch, channels, length, k = (
        m.pick("batch", (1, 2)),
        m.pick("channels", (2, 1)),
        m.pick("length", (3, 1, 2)),
        m.pick("k", (2, 3, 1)),
    )
    m.set("activation", m.pick("activation", ["none", "silu", "swish"]))
    m.tensor((batch, channels, length), constant=False)
    m.tensor((channels, 1, k))
    if m.present("bias"):
        m.tensor((channels,))
    if m.present("past"):
        m.tensor((batch, channels, k - 1), constant=False)
    m.outputs = 2


def linear_attention(m: Making) -> None:
    rule = m.pick("update_rule", ["linear", "gated", "delta", "gated_delta"])
    m.set("update_rule", rule)
    batch, length, kv, times = (
        m.pick("batch", (1, 2)),
        m.pick("length", (2, 1, 3)),
        m.pick("kv heads", (1, 2)),
        m.pick("times", (1, 2)),
    )
    k, v = m.pick("k", (2, 1)), m.pick("v", (2, 3))
    m.set("q_num_heads", kv * times)
    m.set("kv_num_heads", kv)
    m.leave("scale", "chunk_size")
    if m.flag("scale"):
        m.set("scale", 0.5)
    m.tensor((batch, length, kv * times * k), constant=False)
    m.tensor((batch, length, kv * k), constant=False)
    m.tensor((batch, length, kv * v), constant=False)
    if m.present("past"):
        m.tensor((batch, kv, k, v), constant=False)
    if "gated" in rule:
        m.tensor((batch, length, m.pick("decay", [kv, kv * k])), constant=False)
    elif "delta" in rule:
        m.omit()
    if "delta" in rule:
        m.tensor((batch, length, m.pick("beta", [kv, 1])), constant=False)
    m.outputs = 2


EQUATIONS = """
    ij,jk->ik|ij->ji|ij->i|ij->|ii->i|ii->|i,i->|i,j->ij|ij,jk|ij,ij->ij|...i,...i->...|...ij,...jk->...ik|bij,bjk->bik
    |i->i|i->|ij,j|ji|i...->...i|ij,jk,kl->il|,->|,i->i|ijj->i|aB,Bc->ac
"""


def einsum(m: Making) -> None:
    equation = m.pick("equation", EQUATIONS.replace("\n", "").replace(" ", "").split("|"))
    if m.flag("spaces"):
        equation = equation.replace(",", " , ").replace("->", " -> ")
    m.set("equation", equation)
    sizes: dict[str, int] = {}
    dots = (m.pick("size", (2, 3)),) if "..." in equation and m.flag("dots") else ()
    for term in equation.split("->")[0].replace(" ", "").split(","):
        shape: list[int] = []
        for part in term.replace("...", "."):
            if part == ".":
                shape += dots
            else:
                if part not in sizes:
                    sizes[part] = m.pick("size", (2, 3, 1, 0))
                shape.append(sizes[part])
        m.tensor(tuple(shape))


DOMAINS: dict[str, Domain] = {
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
    "MeanVarianceNormalization": mean_variance,
    "Gemm": gemm,
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    **dict.fromkeys(("RNN", "GRU", "LSTM"), recurrent),
    "DFT": dft,
    "STFT": stft,
    "Attention": attention,
    "RotaryEmbedding": rotary,
    "CausalConvWithState": causal_conv,
    "LinearAttention": linear_attention,
    "Einsum": einsum,
}
