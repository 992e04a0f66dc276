# SPDX-License-Identifier: Apache-2.0
"""Sum, Mean, Max, Min (8: inputs are stretched to a common shape), PRelu (7: the slope is no longer by channel), Gemm
(7: `broadcast` goes, 11: C may be missing), and those that have only lost `consumed_inputs`."""

from __future__ import annotations

from boundaries.rows import Row, keeps, rewrites

# ---- variadic

VARIADIC = ("Sum", "Mean", "Max", "Min")
NO_TILE = {"dims": "shape", "ranks": "shape"}


def _three(op: str, a: str, b: str, c: str, y: str) -> str:
    return f"(float{a} a, float{b} b, float{c} c) => (float{y} y) {{ y = {op}(a, b, c) }}"


def _variadic(op: str) -> list[Row]:
    equal = _three(op, "[2,3]", "[2,3]", "[2,3]", "[2,3]")
    single = f"(float[2,3] a) => (float[2,3] y) {{ y = {op}(a) }}"
    hinted = f"(float[2] a, float[2] b) => (float[2] y) {{ y = {op}<consumed_inputs=[0,0]>(a, b) }}"
    return [
        keeps(f"{op} of equal shapes", 6, 8, equal),
        keeps(f"{op} of one", 6, 13, single),
        rewrites(f"{op} of equal shapes", 8, 6, equal, into=[op]),
        rewrites(f"{op} of equal shapes", 13, 1, equal, into=[op], may_refuse=NO_TILE),
        rewrites(f"{op} of one", 8, 6, single),
        rewrites(f"{op} of a row and a scalar", 8, 6, _three(op, "[2,3]", "[3]", "", "[2,3]")),
        rewrites(f"{op} of a row and a scalar", 13, 7, _three(op, "[2,3]", "[3]", "", "[2,3]")),
        rewrites(f"{op} stretched both ways", 8, 6, _three(op, "[2,1,3]", "[4,1]", "[1]", "[2,4,3]")),
        rewrites(f"{op} that grows", 8, 7, _three(op, "[3]", "[2,3]", "[4,1,1]", "[4,2,3]")),
        rewrites(
            f"{op} of unknown sizes",
            8,
            6,
            f"(float[M,N] a, float[M,1] b) => (float[M,N] y) {{ y = {op}(a, b) }}",
        ),
        rewrites(f"{op} with consumed_inputs", 1, 6, hinted, into=[op]),
        rewrites(f"{op} with consumed_inputs", 1, 13, hinted, into=[op]),
    ]


# ---- PRelu


def _prelu(x: str, slope: str, attributes: str = "") -> str:
    return f"(float[{x}] x, float{slope} s) => (float[{x}] y) {{ y = PRelu{attributes}(x, s) }}"


PRELU: list[Row] = [
    rewrites("PRelu by channel of an image", 6, 7, _prelu("2,3,4,5", "[3]")),
    rewrites("PRelu by channel of a cube of one size", 6, 7, _prelu("3,3,3", "[3]")),
    rewrites("PRelu by channel of a matrix", 6, 7, _prelu("2,3", "[3]"), into=["PRelu"]),
    rewrites("PRelu with one slope", 6, 7, _prelu("2,3,4", "[1]"), into=["PRelu"]),
    rewrites("PRelu with consumed_inputs", 1, 6, _prelu("2,3,4", "[3]", "<consumed_inputs=[0,0]>"), into=["PRelu"]),
    rewrites("PRelu with consumed_inputs", 1, 9, _prelu("2,3,4", "[3]", "<consumed_inputs=[0,0]>")),
    rewrites(
        "PRelu with constant slopes",
        6,
        16,
        "(float[N,2,H] x) => (float[N,2,H] y) <float[2] s = {0.5,-0.5}> { y = PRelu(x, s) }",
    ),
    rewrites("PRelu by channel of an image", 7, 6, _prelu("2,3,4,5", "[3,1,1]")),
    rewrites("PRelu by channel of a cube of one size", 7, 6, _prelu("3,3,3", "[3,1]")),
    rewrites("PRelu by column", 7, 6, _prelu("2,3,4,5", "[5]")),
    rewrites("PRelu by column of a cube of one size", 7, 6, _prelu("3,3,3", "[3]")),
    rewrites("PRelu by column of a matrix", 7, 6, _prelu("2,3", "[3]"), into=["PRelu"]),
    rewrites("PRelu by element", 7, 6, _prelu("2,3,4", "[2,3,4]")),
    rewrites("PRelu with one slope", 7, 6, _prelu("2,3,4", "[1]"), into=["PRelu"]),
    rewrites("PRelu with a scalar slope", 7, 6, _prelu("2,3,4", "")),
    rewrites("PRelu with a slope of three ones", 7, 6, _prelu("2,3,4", "[1,1,1]")),
    rewrites("PRelu by channel", 16, 1, _prelu("2,3,4", "[3,1]"), may_refuse=NO_TILE),
    keeps("PRelu", 6, 1, _prelu("2,3,4", "[3]")),
]

# ---- Gemm


def _gemm(c: str, attributes: str = "") -> str:
    return f"(float[2,3] a, float[3,4] b, float{c} c) => (float[2,4] y) {{ y = Gemm{attributes}(a, b, c) }}"


def _no_c(attributes: str = "") -> str:
    return f"(float[2,3] a, float[3,4] b) => (float[2,4] y) {{ y = Gemm{attributes}(a, b) }}"


TRANSPOSED = (
    "(float[3,2] a, float[4,3] b, float{} c) => (float[2,4] y) "
    "{{ y = Gemm<transA=1,transB=1,alpha=0.5,beta=-2.0{}>(a, b, c) }}"
)

GEMM: list[Row] = [
    rewrites("Gemm without broadcast", 6, 7, _gemm("[2,4]", "<broadcast=0>"), into=["Gemm"]),
    keeps("Gemm with the default broadcast", 6, 7, _gemm("[2,4]")),
    rewrites("Gemm with a row", 6, 7, _gemm("[4]", "<broadcast=1>"), into=["Gemm"]),
    rewrites("Gemm with a scalar", 6, 7, _gemm("", "<broadcast=1>"), into=["Gemm"]),
    rewrites("Gemm with one element", 6, 7, _gemm("[1]", "<broadcast=1>"), into=["Gemm"]),
    rewrites("Gemm of everything", 6, 13, TRANSPOSED.format("[4]", ",broadcast=1"), into=["Gemm"]),
    rewrites("Gemm of everything", 1, 7, TRANSPOSED.format("[4]", ",broadcast=1"), into=["Gemm"]),
    keeps("Gemm", 6, 1, _gemm("[4]", "<broadcast=1>")),
    rewrites("Gemm with a matrix", 7, 6, _gemm("[2,4]"), into=["Gemm"]),
    rewrites("Gemm with a row", 7, 6, _gemm("[4]"), into=["Gemm"]),
    rewrites("Gemm with a row (1, N)", 7, 6, _gemm("[1,4]")),
    rewrites("Gemm with a column", 7, 6, _gemm("[2,1]")),
    rewrites("Gemm with a scalar", 7, 6, _gemm(""), into=["Gemm"]),
    rewrites("Gemm with one element (1, 1)", 7, 6, _gemm("[1,1]")),
    rewrites("Gemm of everything with a column", 7, 6, TRANSPOSED.format("[2,1]", "")),
    rewrites("Gemm of everything with a row", 13, 6, TRANSPOSED.format("[1,4]", "")),
    rewrites(
        "Gemm with a row of unknown length",
        7,
        6,
        "(float[M,K] a, float[K,N] b, float[N] c) => (float[M,N] y) { y = Gemm(a, b, c) }",
    ),
    rewrites("Gemm without C", 11, 10, _no_c()),
    rewrites("Gemm without C", 13, 9, _no_c("<alpha=0.5,beta=3.0>")),
    rewrites("Gemm without C", 13, 6, _no_c("<alpha=0.5>")),
    rewrites(
        "Gemm with an empty name for C", 11, 9, '(float[2,3] a, float[3,4] b) => (float[2,4] y) { y = Gemm(a, b, "") }'
    ),
    keeps("Gemm with C", 9, 11, _gemm("[4]")),
    keeps("Gemm with C", 11, 9, _gemm("[4]")),
]

# ---- consumed_inputs, over more than one boundary

# operator -> attributes that it may have beside consumed_inputs
UNARY = {
    "Abs": "",
    "Ceil": "",
    "Exp": "",
    "Floor": "",
    "Log": "",
    "Neg": "",
    "Reciprocal": "",
    "Relu": "",
    "Sigmoid": "",
    "Sqrt": "",
    "Tanh": "",
    "Elu": "alpha=0.5",
    "LeakyRelu": "alpha=0.3",
    "HardSigmoid": "alpha=0.3,beta=0.4",
    "Selu": "alpha=1.5,gamma=1.1",
}


def _unary(op: str, *attributes: str) -> str:
    written = ",".join(a for a in attributes if a)
    return f"(float[2,3] x) => (float[2,3] y) {{ y = {op}{f'<{written}>' if written else ''}(x) }}"


MEMORY: list[Row] = [
    row
    for op, attributes in UNARY.items()
    for row in (
        rewrites(f"{op} with consumed_inputs", 5, 13, _unary(op, "consumed_inputs=[1]", attributes), into=[op]),
        keeps(f"{op} without consumed_inputs", 1, 22, _unary(op, attributes)),
        keeps(f"{op} without consumed_inputs", 22, 1, _unary(op, attributes)),
    )
]

ROWS = [*(row for op in VARIADIC for row in _variadic(op)), *PRELU, *GEMM, *MEMORY]
