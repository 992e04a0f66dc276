# SPDX-License-Identifier: Apache-2.0
"""Einsum (12) where it does not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run, validate

EXACT = {"exact": True}
RANKS = {"ranks": "rank"}


def einsum(equation: str, y: str, *inputs: str, dtype: str = "float") -> str:
    names = "abc"[: len(inputs)]
    formals = ", ".join(
        f"{dtype}[{shape}] {name}" if shape else f"{dtype} {name}" for name, shape in zip(names, inputs, strict=True)
    )
    result = f"{dtype}[{y}] y" if y else f"{dtype} y"
    return f'({formals}) => ({result}) {{ y = Einsum<equation="{equation}">({", ".join(names)}) }}'


def row(equation: str, y: str, *inputs: str, target: int = 11, **more: object) -> Row:
    return rewrites(f"Einsum {equation} of {inputs}", 12, target, einsum(equation, y, *inputs), **more)


ROWS: list[Row] = [
    row("ij,jk->ik", "2,4", "2,3", "3,4", into=["MatMul"], target=7),
    row("bij,bkj->bik", "2,3,5", "2,3,4", "2,5,4", into=["Transpose", "MatMul"], target=7),
    row("bhid,bhjd->bhij", "2,3,4,6", "2,3,4,5", "2,3,6,5", into=["Transpose", "MatMul"]),
    row("ij,jk", "2,4", "2,3", "3,4", into=["MatMul"]),
    row("ij->ji", "3,2", "2,3", into=["Transpose"], options=EXACT),
    row("ij->", "", "2,3", into=["ReduceSum"]),
    row("ij->j", "3", "2,3"),
    row("ii->i", "3", "3,3", options=EXACT, target=9),
    row("iji->j", "2", "3,2,3"),
    row("i,i->", "", "4", "4"),
    row("i,j->ij", "2,3", "2", "3", target=7),
    row("ij,ij->ij", "2,3", "2,3", "2,3", into=["Mul"]),
    row(",ij->ij", "2,3", "", "2,3", into=["Mul"]),
    row("abcd,cdef->abef", "2,3,6,2", "2,3,4,5", "4,5,6,2"),
    row("abc,cde,ef->abdf", "2,3,5,7", "2,3,4", "4,5,6", "6,7"),
    row("ab,cd->", "", "2,3", "4,5"),
    row("...ij,...jk->...ik", "2,3,4,6", "2,3,4,5", "1,3,5,6", may_refuse=RANKS),
    row("...ij->...ji", "2,4,3", "2,3,4", may_refuse=RANKS),
    row("...ii ->...i", "2,3", "2,3,3", may_refuse=RANKS, target=10),
    rewrites("Einsum of nothing", 12, 9, einsum("ij,jk->ik", "2,4", "2,0", "0,4")),
    rewrites("Einsum of integers", 12, 9, einsum("ij,jk->ik", "2,4", "2,3", "3,4", dtype="int32")),
    refuses("Einsum, inexact", 12, 11, einsum("ij,jk->ik", "2,4", "2,3", "3,4"), because="equivalent", options=EXACT),
]


test_rows = each_of(ROWS)


NAN, INF = float("nan"), float("inf")


def converted(graph: str, source: int, target: int, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target, **options).model
    validate(result)
    return result


# ---- Einsum

EQUATIONS = {
    "ab,bc->ac": [(2, 3), (3, 4)],
    "ab,cb->ac": [(2, 3), (4, 3)],
    "ba,bc->ca": [(3, 2), (3, 4)],
    "abc,abd->acd": [(2, 3, 4), (2, 3, 5)],
    "abc,cd,de->abe": [(2, 3, 4), (4, 5), (5, 2)],
    "abcd,ebcd->ae": [(2, 3, 4, 5), (6, 3, 4, 5)],
    "aab->ab": [(3, 3, 2)],
    "abab->": [(2, 3, 2, 3)],
    "ab,ab->": [(2, 3), (2, 3)],
    "ab->ba": [(2, 3)],
    "ab,c->cab": [(2, 3), (4,)],
    "a,b,c->cba": [(2,), (3,), (4,)],
    "...a,a->...": [(2, 3, 4), (4,)],
    "a...,...b->ab...": [(2, 3), (3, 4)],
    "...ab->...ba": [(2, 3, 4)],
    "b...,ba->...a": [(2, 3), (2, 4)],
    "ca,bc": [(3, 2), (4, 3)],
    "abc,ac->b": [(2, 3, 4), (2, 4)],
}


@pytest.mark.parametrize("known", [True, False], ids=["sizes", "ranks"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str, known: bool) -> None:
    shapes = EQUATIONS[equation]
    random = np.random.default_rng(0)
    feeds = {f"x{i}": random.standard_normal(shape).astype(np.float32) for i, shape in enumerate(shapes)}
    wanted = np.einsum(equation, *feeds.values())
    formals = ", ".join(
        f"float[{','.join(map(str, shape) if known else '?' * len(shape))}] x{i}" for i, shape in enumerate(shapes)
    )
    result = f"float[{','.join('?' * wanted.ndim)}] y" if wanted.ndim else "float y"
    graph = f'({formals}) => ({result}) {{ y = Einsum<equation="{equation}">({", ".join(feeds)}) }}'
    (y,) = run(converted(graph, 12, 9), feeds)
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_einsum_stretches_axes_of_length_one() -> None:
    graph = '(float[2,1] a, float[2,3] b) => (float[2] y) { y = Einsum<equation="ij,ij->i">(a, b) }'
    feeds = {"a": np.array([[2], [3]], np.float32), "b": np.arange(6, dtype=np.float32).reshape(2, 3)}
    np.testing.assert_array_equal(run(converted(graph, 12, 11), feeds)[0], [6, 36])


def test_a_diagonal_is_taken_and_not_multiplied_out() -> None:
    graph = '(float[2,2] x) => (float[2] y) { y = Einsum<equation="ii->i">(x) }'
    x = np.array([[1, INF], [NAN, 2]], np.float32)
    np.testing.assert_array_equal(run(converted(graph, 12, 9), {"x": x})[0], [1, 2])
