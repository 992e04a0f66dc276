# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators that the target does not have: activations, hyperbolic functions, comparisons, bits."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from boundaries.rows import Row, refuses, rewrites

# Few operators tell the shapes of what they make below opset 6, and then nothing can be stretched there.
NO_SHAPES = {"*": "repeated"}
NO_INTEGERS = {"function": "floats"}  # below 9 a Constant makes only those, and a function has no initializers
CONDITIONAL = {"allow": ["conditional"]}

SPECIAL = {"x": [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.5, 60000.0]}


def _typed(dtype: str, shape: str) -> str:
    """A tensor of these sizes, a scalar of none."""
    return f"{dtype}[{shape}]" if shape else dtype


def _unary(call: str, shape: str = "12", dtype: str = "float", result: str = "") -> str:
    return f"({_typed(dtype, shape)} x) => ({_typed(result or dtype, shape)} y) {{ y = {call} }}"


def lowest(target: int) -> dict[str, Any]:
    """What may be refused at a target."""
    return {"may_refuse": NO_SHAPES} if target < 6 else {}


def _down(name: str, call: str, source: int, *targets: int, **more: Any) -> list[Row]:
    rows = [rewrites(name, source, target, _unary(call), **lowest(target), **more) for target in targets]
    nothing = rewrites(
        f"{name} of no elements", source, min(targets), _unary(call, "2,N"), dims={"N": 0}, **lowest(min(targets))
    )
    return [*rows, nothing]


# ---- activations

SMALL = {"x": [x / 100 for x in range(-6, 6)]}  # the function of Gelu, which runs for double, has a constant in float

ACTIVATIONS: list[Row] = [
    *_down("SwiGLU with itself", "SwiGLU(x, x)", 28, 27, 24, 13, 6, 1),
    *_down("SwiGLU with alpha", "SwiGLU<alpha=1.5>(x, x)", 28, 27, 13, 6, 1),
    *_down("Swish", "Swish(x)", 24, 23, 13, 6, 1),
    *_down("Swish with alpha", "Swish<alpha=0.5>(x)", 24, 23, 13, 6, 1),
    *_down("HardSwish", "HardSwish(x)", 14, 13, 6, 1),
    *_down("HardSwish", "HardSwish(x)", 22, 12),
    *_down("Gelu", "Gelu(x)", 20, 19, 13, 9),
    *_down("Gelu by Tanh", 'Gelu<approximate="tanh">(x)', 20, 19, 13, 9, 6, 1, feeds=SMALL),
    refuses("Gelu", 20, 8, _unary("Gelu(x)"), because="error function"),
    *_down("Mish", "Mish(x)", 18, 17, 13, 6, 1),
    *_down("Celu", "Celu(x)", 12, 11, 6, 1),
    *_down("Celu with alpha", "Celu<alpha=0.5>(x)", 12, 11, 6, 1),
    *_down("Celu with a large alpha", "Celu<alpha=3.0>(x)", 12, 11),
    *_down("Celu", "Celu(x)", 28, 27, 12, 11),
    refuses("Celu with alpha below 0", 12, 11, _unary("Celu<alpha=-1.0>(x)"), because="alpha"),
    *_down("ThresholdedRelu", "ThresholdedRelu(x)", 10, 9, 8, 7, 6, feeds=SPECIAL, options={"exact": True}),
    *_down("ThresholdedRelu with alpha", "ThresholdedRelu<alpha=-0.5>(x)", 22, 9, 7, 1, feeds=SPECIAL),
    *_down("Shrink", "Shrink(x)", 9, 8, 7, 6, feeds=SPECIAL, options={"exact": True}),
    *_down("Shrink with bias", "Shrink<lambd=0.25,bias=0.75>(x)", 9, 8, 7, 6, 1, feeds=SPECIAL),
    *_down("Shrink beyond 0", "Shrink<lambd=-0.25,bias=0.75>(x)", 9, 8, 7, feeds=SPECIAL),
    *(
        rewrites(f"Shrink of {t}", 9, 8, _unary("Shrink<lambd=1.5,bias=1.5>(x)", "9", t), feeds={"x": range(9)})
        for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32")
    ),
    rewrites(
        "Shrink of int64",
        9,
        8,
        _unary("Shrink<lambd=1.5>(x)", "5", "int64"),
        options=CONDITIONAL,
        feeds={"x": range(5)},
    ),
    refuses("Erf", 13, 8, _unary("Erf(x)"), because="error function"),
]

# ---- functions of angles

AROUND_ONE = {"x": [1.0, 1.0001, 1.5, 2.0, 3.0, 10.0, 100.0, 1e4, 1e-3, 0.0, -3.0, inf]}
WITHIN_ONE = {"x": [0.0, 1e-6, -1e-4, 0.1, -0.3, 0.5, 0.9, -0.999, 1.0, -1.0, 2.0, nan]}
ANY_SIZE = {"x": [0.0, 1e-7, -1e-4, 0.1, -0.3, 1.0, 3.0, -9.0, 10.5, inf, -inf, nan]}

ANGLES: list[Row] = [
    *_down("Sinh", "Sinh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *_down("Cosh", "Cosh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *_down("Asinh", "Asinh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *_down("Acosh", "Acosh(x)", 9, 8, 7, 6, 1, feeds=AROUND_ONE),
    *_down("Atanh", "Atanh(x)", 22, 8, 7, 6, 1, feeds=WITHIN_ONE),
    *(refuses(op, 22, 6, _unary(f"{op}(x)"), because="7") for op in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan")),
]

# ---- comparing and choosing

PAIRS = {
    "a": [nan, inf, -inf, 0.0, -0.0, 1.0, 0.5, 3.0, nan, inf],
    "b": [nan, inf, inf, -0.0, 0, 1, 0.25, nan, 3, -inf],
}


def _pair(op: str, dtype: str = "float", a: str = "10", b: str = "10", y: str = "10") -> str:
    return f"({_typed(dtype, a)} a, {_typed(dtype, b)} b) => ({_typed('bool', y)} y) {{ y = {op}(a, b) }}"


COMPARISONS: list[Row] = [
    *(
        row
        for op in ("GreaterOrEqual", "LessOrEqual")
        for row in (
            *(
                rewrites(op, 12, target, _pair(op), feeds=PAIRS, options={"exact": True}, may_refuse=refused)
                for target, refused in ((11, {}), (10, {}), (9, {}), (7, {}), (6, {}), (1, NO_SHAPES))
            ),
            rewrites(f"{op} that chunks", 16, 7, _pair(op, "float", "2,1", "3", "2,3")),
            rewrites(f"{op} of scalars", 16, 7, _pair(op, "float", "", "", "")),
            *(
                rewrites(f"{op} of {t}", 12, 9, _pair(op, t), into=["Greater" if op[0] == "L" else "Less", "Not"])
                for t in ("int8", "uint8", "int32", "uint32", "int64", "uint64")
            ),
        )
    ),
    *(
        row
        for target in (8, 7, 6, 1)
        for row in (
            rewrites("IsNaN", 9, target, _unary("IsNaN(x)", result="bool"), feeds=SPECIAL, **lowest(target)),
            rewrites("IsNaN of a scalar", 13, target, _unary("IsNaN(x)", "", result="bool"), **lowest(target)),
        )
    ),
    *(
        rewrites(
            f"IsInf{sides}", 10, target, _unary(f"IsInf{sides}(x)", result="bool"), feeds=SPECIAL, **lowest(target)
        )
        for target in (9, 8, 7, 6, 1)
        for sides in (
            "",
            "<detect_positive=0>",
            "<detect_negative=0>",
            "<detect_positive=0,detect_negative=0>",
        )
    ),
    refuses("IsInf of bfloat16", 20, 9, _unary("IsInf(x)", "3", "bfloat16", "bool"), because="bfloat16"),
    rewrites("IsInf", 20, 9, _unary("IsInf(x)", result="bool"), feeds=SPECIAL),
    *_down("Sign", "Sign(x)", 9, 8, 7, 6, 1, feeds={"x": [7.0, *SPECIAL["x"][1:]]}),
    *(  # onnxruntime makes 0 of a float16 that is no number
        rewrites("Sign of NaN", 9, target, _unary("Sign(x)", "12", "double"), feeds=SPECIAL, **lowest(target))
        for target in (8, 7, 6, 1)
    ),
    *(
        rewrites(f"Sign of {t}", 9, target, _unary("Sign(x)", "2,3", t), **lowest(target))
        for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
        for target in (8, 6, 1)
    ),
    *_down("Round", "Round(x)", 11, 8, 7, 6, feeds=SPECIAL, options={"exact": True}),
    *_down("Round", "Round(x)", 22, 10, 9, 1, feeds=SPECIAL),  # the Where of onnxruntime makes 0 of -0
]


def _where(dtype: str, c: str, x: str, y: str, z: str) -> str:
    x, y, z = (_typed(dtype, shape) for shape in (x, y, z))
    return f"({_typed('bool', c)} c, {x} x, {y} y) => ({z} z) {{ z = Where(c, x, y) }}"


CHOSEN = {
    "c": [[True, False], [False, True]],
    "x": [[nan, 1.0], [inf, 7.0]],
    "y": [[5.0, inf], [-6.0, nan]],
}
ROWS_BY_DTYPE = {
    "float": ["Cast", "Not", "Cast", "Pow", "Pow", "Mul"],
    "bool": ["And", "Not", "And", "Or"],
    "int64": ["Cast", "Not", "Cast", "Mul", "Mul", "Add"],
}
TEXTS = {"x": [["a", "b"], ["", "ü"]], "y": [["c", ""], ["d", "e"]]}

CHOICES: list[Row] = [
    *(
        rewrites(
            "Where", source, target, _where("float", "2,2", "2,2", "2,2", "2,2"), feeds=CHOSEN, options={"exact": True}
        )
        for source, target in ((9, 8), (9, 7), (16, 7), (9, 6))
    ),
    rewrites("Where", 9, 1, _where("float", "2,2", "2,2", "2,2", "2,2"), feeds=CHOSEN, may_refuse=NO_SHAPES),
    *(
        rewrites(f"Where of {t}", 9, target, _where(t, "2,2", "2,2", "2,2", "2,2"), into=ROWS_BY_DTYPE.get(t))
        for t in ("float", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
        for target in (8, 7, 6)
    ),
    *(
        rewrites(f"Where of {t} that chunks", 9, target, _where(t, "2,1", "3", "4,1,1", "4,2,3"))
        for t in ("float", "bool", "int64", "int8")
        for target in (8, 7, 6)
    ),
    rewrites("Where of scalars", 9, 7, _where("float", "", "", "", "")),
    rewrites("Where of nothing", 9, 7, _where("float", "N", "1", "N", "N"), dims={"N": 0}),
    *(
        rewrites(
            f"Where with 0 for {name}",
            9,
            target,
            f"(bool[2,3] c, float[3] x) => (float[2,3] z) <float zero = {{0.0}}> {{ z = Where(c, {inputs}) }}",
            feeds={"x": [nan, inf, -2.0]},
            into=operators if target > 6 else None,
        )
        for name, inputs, operators in (
            ("x", "zero, x", ["Not", "Cast", "Pow", "Mul"]),
            ("y", "x, zero", ["Cast", "Pow", "Mul"]),
        )
        for target in (8, 7, 6)
    ),
    *(
        rewrites(f"Where of strings {name}", 9, 8, _where("string", *shapes), feeds=feeds, may_refuse=NO_INTEGERS)
        for name, shapes, feeds in (
            ("", ("2,2", "2,2", "2,2", "2,2"), TEXTS),
            ("that chunks", ("2,1", "2", "1", "2,2"), {"x": ["a", "b"], "y": ["c"]}),
            ("of unknown number", ("N,2", "2", "N,1", "N,2"), {"x": ["a", "b"], "y": [["c"], ["d"]]}),
            ("of rank 0", ("", "", "", ""), {"x": "a", "y": "b"}),
            ("of no size", ("0,2", "2", "0,1", "0,2"), {"x": ["a", "b"]}),
        )
    ),
]

# ---- bits

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def _limits(t: str) -> tuple[int, int]:
    width = int(t.removeprefix("u").removeprefix("int"))
    return (0, 2**width - 1) if t[0] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def _operands(t: str) -> dict[str, list[int]]:
    low, high = _limits(t)
    return {
        "a": [low, high, low, 0, 1, 5, 7, 100, high - 3, low + 77],
        "b": [high, high, low, 7, 3, low, 13, 85, 2, high // 3],
    }


def _binary(op: str, t: str, a: str = "10", b: str = "10", y: str = "10") -> str:
    return f"({_typed(t, a)} a, {_typed(t, b)} b) => ({_typed(t, y)} y) {{ y = {op}(a, b) }}"


def _mod(t: str) -> dict[str, list[int]]:
    low, high = _limits(t)
    signed, low = (-1, low + 1) if low else (1, low)  # the lowest of all has no magnitude
    return {
        "a": [low, high, low, 0, 7, signed * 7, 7, signed * 7, 6, high],
        "b": [high, 2, 3, 5, 3, 3, signed * 3, signed * 3, signed * 3, low + high or 1],
    }


FLOAT_MOD = {
    "a": [5.5, -5.5, 5.5, -5.5, 0.0, 6.0, inf, 3.0, -3.0, 2.0],
    "b": [2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 2.0, inf, inf, nan],
}

BITS: list[Row] = [
    *(
        rewrites(f"Mod of {t}{how}", source, target, _binary(f"Mod{how}", t), feeds=_mod(t))
        for t in INTEGERS
        for how in ("", "<fmod=1>")
        for source, target in ((10, 9), (10, 6))
    ),
    rewrites("Mod that chunks", 13, 9, _binary("Mod", "int64", "2,1", "3", "2,3")),
    rewrites("Mod that chunks", 13, 6, _binary("Mod", "int64", "2,1", "3", "2,3")),
    *(
        rewrites("Mod of floats", 13, target, _binary("Mod<fmod=1>", "float"), options=CONDITIONAL, feeds=FLOAT_MOD)
        for target in (9, 8, 7)
    ),
    refuses("Mod of double on sight", 13, 9, _binary("Mod<fmod=1>", "double"), because="exact in double"),
    rewrites("Mod of float16", 13, 9, _binary("Mod<fmod=1>", "float16"), feeds=FLOAT_MOD),
    *(
        rewrites(
            f"BitShift of {t} to the {way}",
            11,
            target,
            _binary(f'BitShift<direction="{way}">', t),
            feeds={"a": _operands(t)["a"], "b": [0, 1, 2, 3, 7, 1, 6, 5, int(t[4:]) - 1, 4]},
        )
        for t in ("uint8", "uint16", "uint32", "uint64")
        for way in ("LEFT", "RIGHT")
        for target in (10, 8, 7)
    ),
    *(
        rewrites(
            f"BitShift by a constant to the {way}",
            11,
            target,
            f'(uint8[2,3] a) => (uint8[2,3] y) <uint8[2,1] b = {{3,0}}> {{ y = BitShift<direction="{way}">(a, b) }}',
            may_refuse=NO_INTEGERS if target < 9 else {},
        )
        for way in ("LEFT", "RIGHT")
        for target in (10, 7)
    ),
    *(
        rewrites(f"{op} of {t}", 18, target, _binary(op, t), feeds=_operands(t))
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for t in INTEGERS
        for target in (17, 10, 9, 7)
    ),
    rewrites("BitwiseAnd that chunks", 18, 13, _binary("BitwiseAnd", "int32", "2,1", "3", "2,3")),
    rewrites("BitwiseAnd of scalars", 18, 9, _binary("BitwiseAnd", "int32", "", "", "")),
    rewrites("BitwiseAnd of nothing", 18, 11, _binary("BitwiseAnd", "int32", "N", "1", "N"), dims={"N": 0}),
    *(
        rewrites(f"BitwiseNot of {t}", 18, target, _unary("BitwiseNot(x)", "10", t), feeds={"x": _operands(t)["a"]})
        for t in INTEGERS
        for target in (17, 12, 7)
    ),
    *(
        rewrites(
            f"BitCast of {t} to {number}",
            26,
            25,
            _unary(f"BitCast<to={number}>(x)", "10", t, result),
            feeds={"x": _operands(t)["a"]},
            into=["Cast"],
        )
        for t, number, result in (
            ("int8", 2, "uint8"),
            ("uint8", 3, "int8"),
            ("int16", 4, "uint16"),
            ("uint32", 6, "int32"),
            ("int64", 13, "uint64"),
            ("uint64", 7, "int64"),
        )
    ),
    rewrites("BitCast to the same", 26, 25, _unary("BitCast<to=6>(x)", "3", "int32"), into=["Identity"]),
    rewrites("BitCast of booleans", 26, 9, _unary("BitCast<to=2>(x)", "3", "bool", "uint8"), into=["Cast"]),
    refuses("BitCast of floats", 26, 25, _unary("BitCast<to=7>(x)", "3", "double", "int64"), because="bits of double"),
    *(
        rewrites(f"BitCast to {result}", 26, target, _unary(f"BitCast<to={number}>(x)", "10", t, result))
        for t, number, result in (
            ("int64", 11, "double"),
            ("uint16", 10, "float16"),
        )
        for target in (25, 13, 9)
    ),
]

ROWS = [*ACTIVATIONS, *ANGLES, *COMPARISONS, *CHOICES, *BITS]
