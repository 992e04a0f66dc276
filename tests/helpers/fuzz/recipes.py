# SPDX-License-Identifier: Apache-2.0
"""What operators demand. Most are made from their schemas alone: one shape, dtypes by type constraint, attributes by
name. Where shapes and attributes have to agree, a recipe of a few lines says how; `RECIPES` is the table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx

from fuzz import recipes_of_shapes, recipes_of_windows
from fuzz.growing import Shape, Step, Unfit, dtype_of, elem_type

Recipe = Callable[[Step], None]

BROADCASTING = {
    *"Add Sub Mul Div Pow And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual BitShift".split(),
    *"BitwiseAnd BitwiseOr BitwiseXor Max Min Sum Mean Where".split(),
}
OVERLAPPING = {"Max": 8, "Min": 8, "Sum": 8, "Mean": 8}  # broadcast from there on; the rest from 7

# Attributes by name, for operators without a recipe and for what a recipe leaves open.
FLAG = (0, 1)
CHOICES: dict[str, Sequence[Any]] = {
    "alpha": [0.1, 0.5, 1.0, 1.5],
    "beta": [0.1, 0.5, 1.0],
    "gamma": [0.5, 1.0, 1.25],
    "lambd": [0.25, 0.5],
    "bias": [0.0, 0.25],
    "epsilon": [1e-5, 1e-3, 0.5],
    "approximate": ["none", "tanh"],
    "direction": ["LEFT", "RIGHT"],
    "p": [1, 2],
    **dict.fromkeys("keepdims select_last_index detect_negative detect_positive".split(), FLAG),
}


def pointwise(step: Step) -> None:
    """Whatever the schema says, with one shape for all inputs; where operators broadcast, with shapes that do."""
    name, opset = step.schema.name, step.opset
    legacy = step.has("broadcast")
    chunks = name in BROADCASTING and not legacy and opset >= OVERLAPPING.get(name, 7)
    shape: Shape | None = None
    for formal in step.schema.inputs:
        times = 1
        if formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic:
            times = max(formal.min_arity, step.random.randint(1, 3))
        elif formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional and step.chance():
            step.omit()
            continue
        for _ in range(times):
            if shape is not None and not legacy and step.chance(0.1):
                step.again()
                continue
            wanted = shape
            if shape is not None and legacy:
                wanted = block(step, shape)
            elif shape is not None and chunks:
                wanted = stretching(step, shape)
            array = step.input(wanted, fits=FITTING.get(name, _anything), fresh=FRESH.get(name, _same))
            shape = shape if shape is not None else array.shape
    if step.has("axis") and not legacy:
        if step.schema.attributes["axis"].required or step.chance(0.7):
            step.set("axis", step.axis(len(shape or ())))
        elif len(shape or ()) < 2:
            raise Unfit  # the default may be 1
    for attribute in step.schema.attributes:
        if attribute in CHOICES:
            step.maybe(attribute, CHOICES[attribute])


def modulo(step: Step) -> None:
    a = step.input()
    step.input(stretching(step, a.shape), fits=_without_zero, fresh=_positive)
    if "float" in a.dtype.name and step.opset < 28:
        step.set("fmod", 1)
    else:
        step.maybe("fmod", [0, 1])


def stretching(step: Step, shape: Shape) -> Shape:
    """Returns a shape that broadcasts with this one to this one or to something larger."""
    kept = shape[step.random.randint(0, len(shape)) if step.chance() else 0 :]
    made = tuple(1 if step.chance(0.25) else size for size in kept)
    return (step.random.randint(1, 3), *made) if step.chance(0.1) and len(made) == len(shape) else made


def block(step: Step, shape: Shape) -> Shape:
    """Returns the shape of a second operand as opset 6 broadcasts it, and the attributes that say so."""
    if step.chance(0.3):
        return shape
    step.set("broadcast", 1)
    if step.chance(0.2):
        return step.random.choice([(), (1,)])
    start = step.random.randint(0, len(shape))
    stop = step.random.randint(start, len(shape))
    if stop < len(shape) or step.chance():
        step.set("axis", start)
    return shape[start:stop]


def _anything(_: np.ndarray) -> bool:
    return True


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _positive(array: np.ndarray) -> np.ndarray:
    return np.asarray(abs(array) + 1).astype(array.dtype)


def _without_zero(array: np.ndarray) -> bool:
    return bool(np.all(array != 0))


def _shiftable(array: np.ndarray) -> bool:
    return bool(np.all(array < 8) and np.all(array >= 0))


# Operators that not every number suits; the same for all their inputs.
FITTING: dict[str, Callable[[np.ndarray], bool]] = {
    **dict.fromkeys(("Div", "Reciprocal"), _without_zero),
    **dict.fromkeys(("Log", "Sqrt", "Pow", "Acosh"), lambda a: bool(np.all(a > 0)) and bool(np.all(a < 8))),
    **dict.fromkeys(("Asin", "Acos", "Atanh"), lambda a: bool(np.all(abs(a) < 1))),
    "BitShift": _shiftable,
    "Shrink": lambda a: bool(a.dtype != np.float64),  # which onnxruntime computes in float32
}
FRESH: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **dict.fromkeys(("Div", "Reciprocal", "Log", "Sqrt", "Pow", "Acosh"), _positive),
    **dict.fromkeys(("Asin", "Acos", "Atanh"), lambda a: np.asarray(np.tanh(a.astype(np.float64))).astype(a.dtype)),
}


def prelu(step: Step) -> None:
    x = step.input(least=1)
    if step.opset < 7:
        step.input((1,) if x.ndim < 2 or step.chance(0.3) else x.shape[1:2])
    else:
        kept = x.shape[step.random.randint(0, x.ndim) :]
        step.input(tuple(1 if step.chance(0.3) else size for size in kept))


def clip(step: Step) -> None:
    step.input()
    lower, upper = step.random.choice([(-1, 1), (0, 6), (0.25, 0.5), (0, 1)])
    if step.chance(0.8):
        step.setting("min", lower)
    if step.chance(0.8):
        step.setting("max", upper)


def cast(step: Step) -> None:
    x = step.input(fits=lambda a: bool(dtype_of(a) != "string"))
    names = [n for n in ("float", "int64", "int32", "double", "float16", "bool", "bfloat16", "int8", "uint8") if
             any(f"tensor({n})" in formal.types for formal in step.schema.outputs)]  # fmt: skip
    target = step.random.choice([n for n in names if n != "bfloat16" or step.growth.exotic])
    if target[0] == "u" and x.size and x.min() < 0:
        raise Unfit  # out of range: nobody says what comes out
    if target == "int8" and x.size and abs(x.astype(np.float64)).max() > 127:
        raise Unfit
    step.set("to", target.upper() if step.opset < 6 else elem_type(target))


def cast_like(step: Step) -> None:
    step.input(fits=lambda a: a.dtype.kind == "f")
    step.input(fits=lambda a: a.dtype.kind == "f")


def dropout(step: Step) -> None:
    step.input()
    step.set("is_test", 1)
    if step.chance():
        step.setting("ratio", 0.5 if step.has("ratio") else np.float32(0.25))
    if step.opset >= 12 and step.chance(0.3):  # before, nobody says what the mask is when nothing is dropped
        step.outputs = 2


def matmul(step: Step) -> None:
    a = step.input(least=1)
    inner = a.shape[-1]
    if a.ndim == 1 or step.chance(0.3):
        step.input(step.random.choice([(inner,), (inner, 3)]))
    else:
        step.input((*stretching(step, a.shape[:-2]), inner, step.random.randint(1, 3)))


def gemm(step: Step) -> None:
    a = step.input(rank=2)
    for name in ("transA", "transB"):
        step.maybe(name, [0, 1])
    rows, inner = a.shape[::-1] if step._attributes.get("transA") else a.shape
    columns = step.random.randint(1, 4)
    step.input((columns, inner) if step._attributes.get("transB") else (inner, columns))
    step.maybe("alpha", [0.5, 2.0])
    step.maybe("beta", [0.5, 0.0])
    if step.opset >= 11 and step.chance(0.3):
        return
    if step.opset >= 7:
        step.input(step.random.choice([(rows, columns), (columns,), (1, columns), (rows, 1), (), (1,)]))
    elif step.chance():
        step.input((rows, columns))
    else:
        step.set("broadcast", 1)
        step.input(step.random.choice([(columns,), (1,)]))


def quantize(step: Step) -> None:
    x = step.input(least=1, fits=lambda a: bool(np.all(abs(a.astype(np.float64)) < 20)))
    shape: Shape = ()
    if step.has("axis") and step.chance():
        axis = step.axis(x.ndim)
        step.set("axis", axis)
        shape = (x.shape[axis],)
    step.give(
        step.random.choice([0.25, 0.1, 1.0]) * np.ones(shape),
        dtype_of(x) if step.opset >= 19 and x.dtype.kind == "f" else "float",
    )
    if step.chance(0.7):
        step.give(step.random.choice([0, 3]) * np.ones(shape), step.random.choice(["uint8", "int8"]))


def dequantize(step: Step) -> None:
    x = step.input(least=1, dtype=step.random.choice(["uint8", "int8", "int32"]))
    shape: Shape = ()
    if step.has("axis") and step.chance():
        axis = step.axis(x.ndim)
        step.set("axis", axis)
        shape = (x.shape[axis],)
    step.give(step.random.choice([0.25, 0.1, 1.0]) * np.ones(shape), "float")
    if x.dtype != np.int32 and step.chance(0.7):
        step.give(step.random.choice([0, 3]) * np.ones(shape), dtype_of(x))


def one_hot(step: Step) -> None:
    kind = step.random.choice(["int64", "int32"])
    indices = step.input(least=1, dtype=kind, fits=lambda a: bool(np.all(a >= 0)), fresh=abs)
    step.give(step.random.choice([3, [5]]), "int64")
    step.give([0, 1], step.random.choice(["float", "int64", "int32"]))
    if step.chance():
        step.set("axis", step.axis(indices.ndim + 1))


def cumulative(step: Step) -> None:
    x = step.input(least=1)
    step.give(step.axis(x.ndim, ""), step.random.choice(["int64", "int32"]))
    step.maybe("exclusive", [0, 1])
    step.maybe("reverse", [0, 1])


def trilu(step: Step) -> None:
    step.input(least=2)
    if step.chance():
        step.give(step.random.randint(-2, 2), "int64")
    step.maybe("upper", [0, 1])


def eye_like(step: Step) -> None:
    step.input(rank=2)
    step.maybe("k", [-1, 0, 1])
    step.maybe("dtype", [elem_type(t) for t in ("float", "int64", "bool", "double")])


def einsum(step: Step) -> None:
    x = step.input(rank=2, fits=lambda a: a.size > 0)  # onnxruntime divides by the length of a sum, and dies of 0
    equation = step.random.choice(["ij,jk->ik", "ij,kj->ik", "ij->ji", "ij->i"])
    step.set("equation", equation)
    if "," in equation:
        step.input((x.shape[1], 2) if "jk" in equation else (2, x.shape[1]))


OWN: dict[str, Recipe] = {
    "Mod": modulo,
    "PRelu": prelu,
    "Clip": clip,
    "Cast": cast,
    "CastLike": cast_like,
    "Dropout": dropout,
    "MatMul": matmul,
    "Gemm": gemm,
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "OneHot": one_hot,
    "CumSum": cumulative,
    "CumProd": cumulative,
    "Trilu": trilu,
    "EyeLike": eye_like,
    "Einsum": einsum,
}

# What `pointwise` makes of the schema alone.
POINTWISE = """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil
    Celu Cos Cosh Div DynamicQuantizeLinear Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish
    Hardmax Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization Max Mean Min Mish Mul Neg
    NonZero Not Or Pow Reciprocal Relu Round Selu Shape Shrink Sigmoid Sign Sin Sinh Size Softmax Softplus Softsign Sqrt
    Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor
""".split()

RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(POINTWISE, pointwise),
    **OWN,
    **recipes_of_shapes.RECIPES,
    **recipes_of_windows.RECIPES,
}


@cache
def history(operator: str) -> tuple[int, ...]:
    """Returns the opsets at which an operator changed, in order; none if the installed onnx does not have it."""
    found = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if not s.domain and s.name == operator}
    return tuple(sorted(found))


def available(opset: int) -> Iterable[str]:
    """Returns the operators that can be made at an opset."""
    for operator in sorted(RECIPES):
        since = history(operator)
        if since and since[0] <= opset and not onnx.defs.get_schema(operator, opset, "").deprecated:
            yield operator
