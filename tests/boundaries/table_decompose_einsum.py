# SPDX-License-Identifier: Apache-2.0
"""Einsum (12) where it does not exist."""

from __future__ import annotations

from boundaries.rows import Row, refuses, rewrites

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
