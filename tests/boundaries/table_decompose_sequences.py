# SPDX-License-Identifier: Apache-2.0
"""Sequences (11), optionals (15) and SequenceMap (17) where they do not exist."""

from __future__ import annotations

from boundaries.rows import Row, refuses, rewrites

EXACT = {"exact": True}
FUNCTION = {"function": "there are no"}
SIZES = {"dims": "fixed", "ranks": "fixed", **FUNCTION}
SPLIT = "s = SplitToSequence<axis=1>(x, n)"

ROWS: list[Row] = [
    rewrites(
        "SequenceAt",
        11,
        10,
        "(float[2] a, float[3] b) => (float[3] y) <int64 p = {-1}>"
        " { s = SequenceConstruct(a, b) y = SequenceAt(s, p) }",
        into=["Identity"],
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "SequenceInsert and SequenceErase",
        13,
        7,
        "(double[2] a, double[2] b) => (double[2] y, int64 n) <int64 p = {0}>"
        " { s = SequenceEmpty<dtype=11>() t = SequenceInsert(s, a)"
        " u = SequenceInsert(t, b, p) v = SequenceErase(u) y = SequenceAt(v, p) n = SequenceLength(u) }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "SplitToSequence in parts",
        11,
        8,
        f"(float[2,5] x) => (float[2,3] y) <int64[2] n = {{2, 3}}, int64 p = {{1}}> {{ {SPLIT} y = SequenceAt(s, p) }}",
        may_refuse=SIZES,
        into=["Slice"],
    ),
    rewrites(
        "SplitToSequence evenly",
        13,
        9,
        f"(float[2,5] x) => (float[2,5] y) <int64 n = {{2}}> {{ {SPLIT} y = ConcatFromSequence<axis=-1>(s) }}",
        may_refuse=SIZES,
        options=EXACT,
    ),
    rewrites(
        "SplitToSequence into rows",
        11,
        10,
        "(float[3,2] x) => (float[2,3] y)"
        " { s = SplitToSequence<keepdims=0>(x) y = ConcatFromSequence<axis=-1, new_axis=1>(s) }",
        may_refuse=SIZES,
        options=EXACT,
    ),
    rewrites(
        "a sequence read in a branch",
        13,
        9,
        "(float[2] a, float[2] b, bool c) => (float[2] y) <int64 p = {1}> { s = SequenceConstruct(a, b) y = If(c)"
        " <then_branch = g () => (float[2] t) { t = SequenceAt(s, p) },"
        " else_branch = h () => (float[2] e) { e = Neg(a) }> }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "Optional",
        15,
        9,
        "(float[2] x) => (float[2] y, bool b) { o = Optional(x) y = OptionalGetElement(o) b = OptionalHasElement(o) }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "an optional sequence",
        18,
        10,
        "(float[2] a, float[3] b) => (float[3] y) <int64 p = {1}>"
        " { s = SequenceConstruct(a, b) o = Optional(s) t = OptionalGetElement(o) y = SequenceAt(t, p) }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    refuses(
        "a computed place",
        11,
        10,
        "(float[2] a, int64 p) => (float[2] y) { s = SequenceConstruct(a, a) y = SequenceAt(s, p) }",
        because=", and the",
    ),
]
