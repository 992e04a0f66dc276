# SPDX-License-Identifier: Apache-2.0
"""The unary operators: `consumed_inputs` (6), the defaults of Selu (6), Erf of integers (13)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites

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


def _selu(operator: str, attributes: str = "", x: str = "2,3") -> str:
    return f"(float[{x}] x) => (float[{x}] y) {{ y = {operator}{attributes}(x) }}"


SELU: list[Row] = [
    rewrites("Selu", 1, 6, _selu("Selu"), into=["Selu"], options={"exact": True}),
    rewrites("Selu", 6, 1, _selu("Selu"), into=["Selu"], options={"exact": True}),
    rewrites("Selu with alpha", 1, 22, _selu("Selu", "<alpha=1.5, consumed_inputs=[0]>"), into=["Selu"]),
    keeps("Selu spelled out", 1, 6, _selu("Selu", "<alpha=1.5, gamma=1.1>")),
]


# ---- Erf

ERFS: list[Row] = [
    *(
        rewrites(
            f"Erf of {dtype}",
            12,
            13,
            f"({dtype}[5] x) => ({dtype}[5] y) {{ y = Erf(x) }}",
            into=["Cast", "Erf", "Cast"],
            feeds={"x": [0, 1, 3, 4, 9]},
        )
        for dtype in ("int8", "int32", "int64", "uint8")
    ),
    keeps("Erf of float", 9, 28, "(float[5] x) => (float[5] y) { y = Erf(x) }"),
    keeps("Erf of float", 28, 9, "(float[5] x) => (float[5] y) { y = Erf(x) }"),
]


ROWS = [*MEMORY, *SELU, *ERFS]

test_rows = each_of(ROWS)
