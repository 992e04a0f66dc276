# SPDX-License-Identifier: Apache-2.0
"""Domains of operators that work element by element, or along an axis."""

from __future__ import annotations

from exhaust.choices import Outside
from exhaust.making import Domain, Making
from exhaust.values import elem_type, has_nan, numpy_dtype

OVERLAPPING = {"Max": 8, "Min": 8, "Sum": 8, "Mean": 8}  # broadcast from there on; the rest from 7


def alike(m: Making) -> None:
    """All inputs have one shape."""
    shape = m.shape()
    for _ in m.schema.inputs:
        m.tensor(shape)


def random(m: Making) -> None:
    """What comes out hangs on luck."""
    m.loose = True
    m.tensor(m.shape())


def multinomial(m: Making) -> None:
    m.loose = True
    m.set("dtype", m.pick("dtype", [6, 7]))
    m.tensor(m.sizes(2, (2, 1, 3, 0)))


def binary(m: Making) -> None:
    """The second input is stretched to the first, and from 7 on also the other way."""
    shape = m.shape()
    m.tensor(shape)
    if not m.has("broadcast"):
        m.tensor(m.stretching(shape))
        return
    m.leave("broadcast", "axis")
    if not m.flag("broadcast"):
        m.tensor(shape)
        return
    m.set("broadcast", 1)
    if m.flag("one element"):
        m.tensor(m.pick("of rank", [(), (1,)]))
        return
    start = m.pick("start", range(len(shape) + 1))
    stop = m.pick("stop", range(len(shape), start - 1, -1))
    if stop < len(shape) or m.flag("axis"):
        m.set("axis", start)
    m.tensor(shape[start:stop])


def shifts(m: Making) -> None:
    """The shift is less than the width, for more than that nobody says what comes out."""
    shape = m.shape()
    x = m.tensor(shape)
    width = x.dtype.itemsize * 8
    m.tensor(elements=m.pick("by", [1, 0, width - 1, width // 2]))


def divisor(m: Making) -> None:
    """No integer is divided by 0, nor the lowest by -1."""
    shape = m.shape()
    x = m.tensor(shape)
    if "int" not in x.dtype.name:
        if m.operator == "Mod" and m.opset < 28:
            m.set("fmod", 1)
        m.tensor(m.stretching(shape))
        return
    by = [3, 2, 1, 127 if x.dtype.itemsize else 7, *([-2, -3, -128] if not x.dtype.name.startswith("u") else [])]
    other = m.tensor(elements=m.pick("by", [by[:1], by[1:2], by[2:]]), constant=m.flag("constant", rare=True))
    if len(other) > 1 and (not shape or shape[-1] not in (1, len(other))):
        raise Outside


def power(m: Making) -> None:
    """Integers have small powers that are not negative; below 7 there are none."""
    if m.has("broadcast"):
        binary(m)
        return
    shape = m.shape()
    x = m.tensor(shape)
    if "int" in x.dtype.name:
        m.tensor(elements=m.pick("power", [2, 0, 1, 3]))
    else:
        m.tensor(m.stretching(shape))


def variadic(m: Making) -> None:
    """One to three inputs."""
    shape = m.shape()
    m.tensor(shape)
    for _ in range(m.pick("more", [1, 0, 2])):
        m.tensor(m.stretching(shape) if m.opset >= OVERLAPPING[m.operator] else shape)


def where(m: Making) -> None:
    shape = m.shape()
    m.tensor(m.stretching(shape, larger=False), dtype="bool")
    m.tensor(shape)
    m.tensor(m.stretching(shape))


def along(m: Making) -> None:
    """An axis of at least one, and one element at least on it where the largest is asked for."""
    x = m.tensor(m.shape(1))
    if m.operator.startswith("Arg") and (0 in x.shape or has_nan(x)):
        raise Outside
    if m.opset < 13 and m.operator in ("Softmax", "LogSoftmax", "Hardmax") and x.ndim < 2:
        m.set("axis", 0)


def cast(m: Making) -> None:
    """What is out of the range of an integer has no meaning, nor have strings that are no numbers."""
    x = m.tensor(m.shape())
    names = [n for n in ("float int64 double float16 int32 bool uint8 int8 string bfloat16 uint16 int16 uint32 uint64"
                         " float8e4m3fn float8e5m2 float8e4m3fnuz float8e5m2fnuz int4 uint4 float4e2m1 float8e8m0 int2"
                         " uint2").split() if any(f"tensor({n})" in out.types for out in m.schema.outputs)]  # fmt: skip
    to = m.pick("to", names)
    if "int" in to and "float" in x.dtype.name:
        low = 0.0 if to[0] == "u" else -100.0
        if not all(low <= float(one) <= 100.0 for one in x.ravel()):
            raise Outside
    if to == "string" or x.dtype.kind == "O":
        raise Outside  # floats have many spellings
    m.set("to", to.upper() if m.opset < 6 else elem_type(to))


def cast_like(m: Making) -> None:
    x = m.tensor(m.shape())
    like = m.tensor(m.shape())
    if (like.dtype.kind != x.dtype.kind and like.dtype.kind in "iuOV") or "O" in (x.dtype.kind, like.dtype.kind):
        raise Outside
    if "int" in like.dtype.name and ("float" in x.dtype.name or x.dtype.itemsize >= like.dtype.itemsize):
        raise Outside


def bits(m: Making) -> None:
    x = m.tensor(m.shape())
    width = x.dtype.itemsize
    names = "float int64 double float16 int32 bool uint8 int8 bfloat16 uint16 int16 uint32 uint64 float8e4m3fn".split()
    m.set("to", elem_type(m.pick("to", [n for n in names if numpy_dtype(n).itemsize == width])))


def clip(m: Making) -> None:
    x = m.tensor(m.shape())
    lowest, highest = (0, 3) if x.dtype.name.startswith("u") else (-1, 2)
    m.leave("min", "max")
    bounds = [lowest, highest, 0, 1, *([float("inf"), float("-inf")] if x.dtype.kind == "f" else [])]
    for name in ("min", "max"):
        if m.flag(name):
            m.setting(name, m.pick(f"{name} is", bounds if name == "min" else [highest, *bounds]))
        elif not m.has(name):
            m.omit()


def dropout(m: Making) -> None:
    """Nothing is dropped: what falls out of it otherwise hangs on luck."""
    m.leave("ratio", "seed")
    m.set("is_test", 1)
    m.tensor(m.shape())
    if m.flag("ratio"):
        m.setting("ratio", m.pick("ratio is", [0.5, 0.0, 0.1]))
    if m.opset >= 12:
        m.outputs = m.pick("outputs", [1, 2])
        if m.flag("training_mode"):
            m.setting("training_mode", [False][0])


def prelu(m: Making) -> None:
    x = m.tensor(m.shape(1))
    if m.opset < 7:
        m.tensor(m.pick("slope", [(1,), x.shape[1:2] or (1,)]))
    else:
        m.tensor(m.stretching(x.shape, larger=False))


def normalised(m: Making) -> None:
    """Scale and bias of the shape from `axis` on."""
    x = m.tensor(m.shape(1))
    axis = m.pick("axis", [-1, *(a for a in m.axes_of(x.ndim) if a != -1)])
    if axis != -1 or m.flag("axis stated"):
        m.set("axis", axis)
    if 0 in x.shape[axis:]:
        raise Outside  # a mean of nothing
    m.set("stash_type", 1)
    m.tensor(m.stretching(x.shape[axis:], larger=False))
    if m.operator == "LayerNormalization":
        if m.present("bias"):
            m.tensor(m.stretching(x.shape[axis:], larger=False))
        m.outputs = m.pick("outputs", [1, 2, 3])


def swish_gate(m: Making) -> None:
    shape = m.shape()
    m.tensor(shape)
    m.tensor(shape)


def quantized_range(m: Making) -> None:
    m.tensor(m.shape())
    m.outputs = 3


def cumulative(m: Making) -> None:
    x = m.tensor(m.shape(1))
    axis = m.axis(x.ndim, "")
    m.tensor(elements=axis if m.flag("scalar") or m.operator == "CumProd" else [axis])


ALIKE = """
    Abs Acosh Asinh Atanh BitwiseNot Ceil Celu Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN
    LeakyRelu Log Mish Neg NonZero Reciprocal Relu Round Selu Shape Shrink Sigmoid Sign Sinh Sqrt Swish Tanh
    ThresholdedRelu
""".split()
BINARY = "Add Sub Mul And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual BitwiseAnd BitwiseOr BitwiseXor".split()

DOMAINS: dict[str, Domain] = {
    **dict.fromkeys(ALIKE, alike),
    **dict.fromkeys(BINARY, binary),
    "BitShift": shifts,
    "Pow": power,
    **dict.fromkeys(("Max", "Min", "Sum", "Mean"), variadic),
    **dict.fromkeys(("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax"), along),
    "Where": where,
    "Bernoulli": random,
    "Multinomial": multinomial,
    "Cast": cast,
    "CastLike": cast_like,
    "BitCast": bits,
    "Clip": clip,
    "Dropout": dropout,
    "PRelu": prelu,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), normalised),
    "SwiGLU": swish_gate,
    "DynamicQuantizeLinear": quantized_range,
    **dict.fromkeys(("CumSum", "CumProd"), cumulative),
}


def _division(m: Making) -> None:
    if m.has("broadcast"):
        binary(m)
    else:
        divisor(m)


DOMAINS |= dict.fromkeys(("Div", "Mod"), _division)
