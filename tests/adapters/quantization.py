# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear (13: a scale for each index of an axis, 19: one dtype, 21: blocks and 16 bits,
23: the dtypes are independent), QLinearMatMul (21: scales of float16)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites

# Whether there is one scale or several is known at run time only.
ROUND = {"dims": "Round", "ranks": "Round"}

# Halves of the scale, and what is beyond every range.
EDGES = [0.25, 0.75, 1.25, -0.25, -0.75, 1e9, -1e9, 3e4, -3e4, 7.0, 0.0, 40.0]
HALVES = {"x": [EDGES[:6], EDGES[6:]], "s": 0.5}
BY_ROW = {"x": [EDGES[:6], EDGES[6:]], "s": [0.5, 0.25]}
CUBE = {"x": [[[0.25, 0.75], [1.25, -0.25], [100.0, 7.0]]] * 2, "s": [0.5, 0.125, 2.0]}


def quantize(x: str, scale: str, zero: str, y: str, attributes: str = "", values: str = "") -> str:
    """Zero points are an input, a constant (if there are values), or left out (if `zero` is empty)."""
    given = f", {zero} z" if zero and not values else ""
    constant = f"<{zero} z = {{{values}}}> " if values else ""
    inputs = "x, s, z" if zero else "x, s"
    return f"({x} x, {scale} s{given}) => ({y} y) {constant}{{ y = QuantizeLinear{attributes}({inputs}) }}"


def dequantize(x: str, scale: str, zero: str, y: str, attributes: str = "", values: str = "") -> str:
    return quantize(x, scale, zero, y, attributes, values).replace("QuantizeLinear", "DequantizeLinear")


WHOLE = quantize("float[2,6]", "float", "uint8", "uint8[2,6]")
ROWS_OF = quantize("float[2,6]", "float[2]", "int8[2]", "int8[2,6]", "<axis=0>")
MIDDLE = quantize("float[2,3,2]", "float[3]", "uint8[3]", "uint8[2,3,2]")
FROM_END = quantize("float[2,3,2]", "float[3]", "uint8[3]", "uint8[2,3,2]", "<axis=-2>")
COMMON = quantize("float[2,3,2]", "float[3]", "int8[3]", "int8[2,3,2]", "", "0,0,0")
NO_ZERO = quantize("float[2,3,2]", "float[3]", "", "uint8[2,3,2]")
BLOCKS = quantize("float[2,6]", "float[2,2]", "{t}[2,2]", "{t}[2,6]", "<axis=1,block_size=3>")
PARTIAL = quantize("float[2,5]", "float[2,2]", "uint8[2,2]", "uint8[2,5]", "<axis=-1,block_size=3>")
ROW_BLOCKS = quantize("float[5,2]", "float[3,2]", "uint8[3,2]", "uint8[5,2]", "<axis=0,block_size=2>")
SCALES = {"s": [[0.5, 0.25], [2.0, 0.1]]}

QUANTIZE: list[Row] = [
    keeps("QuantizeLinear", 10, 13, WHOLE, feeds=HALVES),
    keeps("QuantizeLinear", 13, 25, WHOLE, feeds=HALVES),
    rewrites("QuantizeLinear", 25, 13, WHOLE, into=["QuantizeLinear"], feeds=HALVES),
    rewrites("QuantizeLinear", 25, 10, WHOLE, into=["QuantizeLinear"], feeds=HALVES, may_refuse=ROUND),
    rewrites(
        "QuantizeLinear by a vector of one",
        13,
        10,
        quantize("float[2,6]", "float[1]", "uint8[1]", "uint8[2,6]", "<axis=1>"),
        feeds={**HALVES, "s": [0.5]},
        may_refuse=ROUND,
    ),
    rewrites("QuantizeLinear of rows", 13, 11, ROWS_OF, feeds=BY_ROW),
    rewrites("QuantizeLinear of an axis", 13, 12, MIDDLE, feeds=CUBE),
    rewrites("QuantizeLinear of an axis", 25, 11, MIDDLE, feeds=CUBE),
    rewrites("QuantizeLinear of an axis from the end", 19, 11, FROM_END, feeds=CUBE),
    rewrites("QuantizeLinear of an axis with one zero point", 13, 10, COMMON, feeds=CUBE),
    rewrites("QuantizeLinear of an axis without zero point", 21, 10, NO_ZERO, feeds=CUBE),
    rewrites("QuantizeLinear of nothing", 13, 11, MIDDLE.replace("[2,3,2]", "[N,3,2]"), dims={"N": 0}),
    rewrites(
        "QuantizeLinear of a scalar",
        13,
        10,
        quantize("float", "float", "uint8", "uint8"),
        into=["QuantizeLinear"],
        may_refuse=ROUND,
    ),
    rewrites(
        "QuantizeLinear of int32",
        13,
        19,
        quantize("int32[2,6]", "float", "uint8", "uint8[2,6]"),
        feeds={"s": 0.5},
        into=["Cast", "QuantizeLinear"],
    ),
    rewrites("QuantizeLinear of int32", 18, 23, quantize("int32[2,6]", "float", "int8", "int8[2,6]"), feeds={"s": 0.5}),
    rewrites("QuantizeLinear of int32", 23, 22, quantize("int32[2,6]", "float", "int8", "int8[2,6]"), feeds={"s": 0.5}),
    rewrites(
        "QuantizeLinear of int32 by axis",
        13,
        11,
        quantize("int32[2,6]", "float[6]", "int8[6]", "int8[2,6]"),
        feeds={"s": [0.5, 0.25, 1.0, 2.0, 0.1, 3.0]},
    ),
    rewrites(
        "QuantizeLinear of float16",
        19,
        18,
        quantize("float16[2,6]", "float16", "uint8", "uint8[2,6]"),
        feeds={"s": 0.5},
    ),
    rewrites(
        "QuantizeLinear of float16 in blocks",
        21,
        18,
        BLOCKS.replace("{t}", "int8").replace("float[", "float16["),
        feeds=SCALES,
    ),
    rewrites(
        "QuantizeLinear of float16 by float",
        23,
        22,
        quantize("float16[2,6]", "float", "uint8", "uint8[2,6]"),
        feeds={"s": 0.5},
        into=["Cast", "QuantizeLinear"],
    ),
    rewrites(
        "QuantizeLinear in float",
        23,
        21,
        quantize("float16[2,6]", "float16", "uint8", "uint8[2,6]", "<precision=1>"),
        feeds={"s": 0.5},
        into=["Cast", "Cast", "QuantizeLinear"],
    ),
    keeps("QuantizeLinear of float by float", 23, 19, WHOLE, feeds=HALVES),
    *(
        rewrites(
            f"QuantizeLinear to {t}",
            21,
            20,
            quantize("float[2,6]", "float", t, f"{t}[2,6]"),
            into=["Div", "Round", "Cast", "Add", "Clip", "Cast"],
            feeds=HALVES,
        )
        for t in ("int16", "uint16")
    ),
    rewrites(
        "QuantizeLinear to uint16 as stated",
        21,
        13,
        quantize("float[2,6]", "float", "", "uint16[2,6]", "<output_dtype=4>"),
        feeds=HALVES,
    ),
    rewrites(
        "QuantizeLinear to int8 as stated",
        21,
        13,
        quantize("float[2,6]", "float", "", "int8[2,6]", "<output_dtype=3>"),
        into=["QuantizeLinear"],
        feeds=HALVES,
    ),
    rewrites(
        "QuantizeLinear to int8 by row as stated",
        21,
        19,
        quantize("float[2,6]", "float[2]", "", "int8[2,6]", "<axis=0,output_dtype=3>"),
        into=["QuantizeLinear"],
        feeds=BY_ROW,
    ),
    keeps(
        "QuantizeLinear to uint8 as stated",
        21,
        25,
        quantize("float[2,6]", "float", "", "uint8[2,6]", "<output_dtype=2>"),
        feeds=HALVES,
    ),
    rewrites("QuantizeLinear in blocks", 21, 20, BLOCKS.replace("{t}", "uint8"), feeds=SCALES),
    rewrites("QuantizeLinear in blocks to int16", 24, 13, BLOCKS.replace("{t}", "int16"), feeds=SCALES),
    rewrites("QuantizeLinear in partial blocks", 21, 13, PARTIAL, feeds=SCALES),
    rewrites(
        "QuantizeLinear in blocks of rows", 21, 11, ROW_BLOCKS, feeds={"s": [[0.5, 0.25], [2.0, 0.1], [1.0, 3.0]]}
    ),
    refuses("QuantizeLinear to int4", 21, 20, quantize("float[2,6]", "float", "int4", "int4[2,6]"), because="int4"),
    refuses(
        "QuantizeLinear to int4 as stated",
        21,
        20,
        quantize("float[2,6]", "float", "", "int4[2,6]", "<output_dtype=22>"),
        because="int4",
    ),
    refuses(
        "QuantizeLinear to float8",
        19,
        18,
        quantize("float[2,6]", "float", "float8e4m3fn", "float8e4m3fn[2,6]"),
        because="float8e4m3fn",
    ),
    rewrites(
        "QuantizeLinear to float8 as stated",
        21,
        19,
        quantize("float[2,6]", "float", "", "float8e4m3fn[2,6]", "<output_dtype=17>"),
        into=["QuantizeLinear"],
        feeds=HALVES,
    ),
]

PLAIN = dequantize("uint8[2,6]", "float", "uint8", "float[2,6]")
D_MIDDLE = dequantize("int8[2,3,2]", "float[3]", "int8[3]", "float[2,3,2]")
D_END = dequantize("int8[2,3,2]", "float[3]", "int8[3]", "float[2,3,2]", "<axis=-2>")
D_BLOCKS = dequantize("{t}[2,6]", "float[2,2]", "{t}[2,2]", "float[2,6]", "<axis=1,block_size=3>")
D_PARTIAL = dequantize("int8[2,5]", "float[2,2]", "", "float[2,5]", "<axis=-1,block_size=3>")

TO_FLOAT = """(int8[2,6] x, float16 s, int8 z) => (double[2,6] y) {
    d = DequantizeLinear<output_dtype=1>(x, s, z) y = Cast<to=11>(d) }"""

DEQUANTIZE: list[Row] = [
    keeps("DequantizeLinear", 10, 13, PLAIN),
    rewrites("DequantizeLinear", 25, 13, PLAIN, into=["DequantizeLinear"]),
    keeps("DequantizeLinear", 13, 25, PLAIN),
    rewrites("DequantizeLinear", 25, 10, PLAIN, into=["DequantizeLinear"]),
    rewrites("DequantizeLinear by axis", 13, 12, D_MIDDLE),
    rewrites("DequantizeLinear by axis", 23, 10, D_MIDDLE),
    rewrites("DequantizeLinear by axis from the end", 13, 10, D_END),
    rewrites(
        "DequantizeLinear by axis with one zero point",
        13,
        10,
        dequantize("uint8[2,3,2]", "float[3]", "uint8[3]", "float[2,3,2]", "", "7,7,7"),
    ),
    rewrites("DequantizeLinear of int32 by axis", 13, 10, dequantize("int32[2,3,2]", "float[3]", "", "float[2,3,2]")),
    rewrites(
        "DequantizeLinear of float16",
        19,
        18,
        dequantize("uint8[2,6]", "float16", "uint8", "float16[2,6]"),
        into=["Cast", "DequantizeLinear", "Cast"],
    ),
    rewrites(
        "DequantizeLinear of float16 by axis",
        21,
        11,
        dequantize("uint8[2,6]", "float16[6]", "uint8[6]", "float16[2,6]"),
    ),
    *(
        rewrites(f"DequantizeLinear of {t}", 21, 20, dequantize(f"{t}[2,6]", "float", t, "float[2,6]"))
        for t in ("int16", "uint16")
    ),
    *(rewrites(f"DequantizeLinear of {t} in blocks", 21, 13, D_BLOCKS.replace("{t}", t)) for t in ("int16", "uint8")),
    rewrites(
        "DequantizeLinear in blocks of float16", 21, 13, D_BLOCKS.replace("{t}", "int8").replace("float[", "float16[")
    ),
    rewrites("DequantizeLinear in partial blocks", 25, 19, D_PARTIAL),
    rewrites(
        "DequantizeLinear to float",
        23,
        21,
        TO_FLOAT,
        into=["Cast", "DequantizeLinear", "Cast"],
    ),
    rewrites(
        "DequantizeLinear to float16",
        23,
        21,
        dequantize("int8[2,6]", "float", "int8", "float16[2,6]", "<output_dtype=10>"),
        into=["DequantizeLinear", "Cast"],
    ),
    refuses("DequantizeLinear of int4", 21, 20, dequantize("int4[2,6]", "float", "int4", "float[2,6]"), because="int4"),
    refuses("DequantizeLinear of int4 in blocks", 21, 20, D_BLOCKS.replace("{t}", "int4"), because="int4"),
]


def matmul(scale: str) -> str:
    inputs = f"uint8[2,3] a, {scale} p, uint8 k, int8[3,4] b, {scale} q, int8 l, {scale} r, uint8 m"
    return f"({inputs}) => (uint8[2,4] y) {{ y = QLinearMatMul(a, p, k, b, q, l, r, m) }}"


SIZES = {"p": 0.5, "q": 0.25, "r": 1.0}

MATMUL: list[Row] = [
    keeps("QLinearMatMul", 10, 21, matmul("float"), feeds=SIZES),
    rewrites("QLinearMatMul", 21, 10, matmul("float"), into=["QLinearMatMul"], feeds=SIZES),
    rewrites("QLinearMatMul of float16", 21, 20, matmul("float16"), into=["Cast"] * 3 + ["QLinearMatMul"], feeds=SIZES),
]


ROWS = [*QUANTIZE, *DEQUANTIZE, *MATMUL]

test_rows = each_of(ROWS)
