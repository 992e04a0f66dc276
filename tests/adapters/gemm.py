# SPDX-License-Identifier: Apache-2.0
"""Gemm: `broadcast` goes (7), C may be missing (11)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites

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


ROWS = GEMM

test_rows = each_of(ROWS)
