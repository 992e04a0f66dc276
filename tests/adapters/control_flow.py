# SPDX-License-Identifier: Apache-2.0
"""If (11: branches of different shapes), Loop (11: nothing need be carried), Scan (9: no batch any more, 11: negative
axes), and what they make of sequences (13)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites

# ---- If


FLAT = "float[?]"


def branches(y: str, then: str, other: str, condition: str = "bool") -> str:
    """An If whose branches take the outer x (2, 3), each "type: expression"; what comes out is flat if it says so."""
    (a_type, a), (b_type, b) = then.split(": "), other.split(": ")
    constant = f"<int64[1] k = {{{-1 if y == FLAT else 0}}}> " if "k)" in other else ""
    result, after = ("f", "y = Reshape(f, k) ") if y == FLAT else ("y", "")
    return (
        f"({condition} c, float[2,3] x) => ({y} y) {constant}{{ {result} = If(c) <"
        f"then_branch = t () => ({a_type} a) {{ a = {a} }}, else_branch = e () => ({b_type} b) {{ b = {b} }}> {after}}}"
    )


TWICE = "float[2,3]: Add(x, x)"
ALIKE = branches("float[2,3]", TWICE, "float[2,3]: Mul(x, x)")
RANKS = branches(FLAT, TWICE, "float[6]: Reshape(x, k)")
SCALAR = branches(FLAT, "float: ReduceSum<keepdims=0>(x)", "float[6]: Reshape(x, k)")
SIZES = branches("float[M,3]", TWICE, "float[4,3]: Concat<axis=0>(x, x)")
EMPTY = branches("float[M,3]", TWICE, "float[0,3]: Slice(x, k, k)")
ONE_ELEMENT = branches("float[M,3]", TWICE, "float[4,3]: Concat<axis=0>(x, x)", "bool[1]")

IFS: list[Row] = [
    keeps("If of one shape", 10, 13, ALIKE),
    keeps("If of one shape", 13, 9, ALIKE),
    keeps("If of one shape", 25, 7, ALIKE),
    keeps(
        "If of unknown shapes",
        11,
        10,
        """(bool c, float[2,3] x, int64[?] s, int64[?] k) => (float[?] y) { f = If(c) <
            then_branch = t () => (float[] a) { a = Reshape(x, k) },
            else_branch = e () => (float[] b) { b = Reshape(x, s) }> y = Reshape(f, k) }""",
        feeds={"s": [3, 2], "k": [-1]},
    ),
    *(
        rewrites(f"If of two {what}, {condition}", 11, low, graph, feeds={"c": condition})
        for what, graph in {"ranks": RANKS, "sizes": SIZES, "counts": EMPTY, "scalars": SCALAR}.items()
        for condition in (True, False)
        for low in (10, 7)
    ),
    rewrites(
        "If of a known and an unknown shape",
        11,
        9,
        """(bool c, float[2,3] x, int64[2] s) => (float[?,?] y) { y = If(c) <
            then_branch = t () => (float[?,?] a) { a = Reshape(x, s) },
            else_branch = e () => (float[2,3] b) { b = Add(x, x) }> }""",
        feeds={"s": [3, 2], "c": True},
    ),
    rewrites("If of two sizes", 12, 10, SIZES, nodes=10),
    rewrites(
        "If of two sizes that nobody states",
        12,
        9,
        """(bool c, float[4,3] x) => (float[?,?] y) <int64[1] a = {0}, int64[1] b = {2}> { y = If(c) <
            then_branch = t () => (float[?,?] p) { p = Identity(x) },
            else_branch = e () => (float[?,?] q) { q = Slice(x, a, b, a) }> }""",
        nodes=10,
    ),
    rewrites("If of two sizes by one element", 11, 9, ONE_ELEMENT, feeds={"c": [True]}),
    rewrites(
        "If of two results of which one differs",
        11,
        10,
        """(bool c, float[2,3] x) => (float[2] y, float[?,3] z) { y, z = If(c) <
            then_branch = t () => (float[2] a, float[2,3] b) { a = ReduceSum<axes=[1],keepdims=0>(x) b = Add(x, x) },
            else_branch = e () => (float[2] f, float[4,3] g) { f = ReduceMax<axes=[1],keepdims=0>(x)
                g = Concat<axis=0>(x, x) }> }""",
    ),
    refuses(
        "If of sequences",
        13,
        12,
        """(bool c, double[2] x) => (double[2] y) <int64 k = {0}> { s = If(c) <
            then_branch = t () => (seq(double[2]) a) { a = SequenceConstruct(x) },
            else_branch = e () => (seq(double[2]) b) { b = SequenceConstruct(x, x) }> y = SequenceAt(s, k) }""",
        because="seq(tensor(double))",
    ),
]

# ---- Loop

COUNTED = """(int64 m, float[2] x) => (int64[?] y, float[?,2] z) { y, z = Loop(m, "") <body = b (int64 i, bool going) =>
    (bool on, int64 w, float[2] v) { on = Identity(going) w = Add(i, i) v = Add(x, x) }> }"""
CONDITIONAL = """(bool c, float[2] x, int64 m) => (float[?,2] y, int64[?] z) { y, z = Loop(m, c) <body = b
    (int64 i, bool going) => (bool on, float[2] v, int64 w) { on = Not(going) v = Mul(x, x) w = Identity(i) }> }"""
CARRYING = """(int64 m, float[2] x) => (float[2] l, float[?,2] y) { l, y = Loop(m, "", x) <body = b
    (int64 i, bool going, float[2] s) => (bool on, float[2] t, float[2] v) { on = Identity(going) t = Add(s, x)
        v = Mul(s, s) }> }"""

LOOPS: list[Row] = [
    rewrites("Loop that carries nothing", 11, 10, COUNTED, into=["Loop"], feeds={"m": 3}),
    rewrites("Loop that carries nothing", 13, 7, COUNTED, into=["Loop"], feeds={"m": 3}),
    rewrites("Loop that carries nothing and has no step", 11, 9, COUNTED, into=["Loop"], feeds={"m": 0}),
    rewrites("Loop that carries nothing under a condition", 11, 9, CONDITIONAL, into=["Loop"], feeds={"m": 3}),
    rewrites("Loop that carries nothing under a condition", 21, 7, CONDITIONAL, into=["Loop"], feeds={"m": 3}),
    keeps("Loop that carries a value", 11, 7, CARRYING, feeds={"m": 3}),
    keeps("Loop that carries a value", 7, 25, CARRYING, feeds={"m": 3}),
    keeps("Loop that carries a value", 25, 9, CARRYING, feeds={"m": 0}),
    refuses(
        "Loop that carries a sequence",
        13,
        11,
        """(int64 m, double[2] x) => (double[?] y) { e = SequenceEmpty<dtype=11>() s = Loop(m, "", e) <body = b
            (int64 i, bool going, seq(double[2]) t) => (bool on, seq(double[2]) u) { on = Identity(going)
                u = SequenceInsert(t, x) }> y = ConcatFromSequence<axis=0>(s) }""",
        because="seq(tensor(double))",
        feeds={"m": 3},
    ),
]

# ---- Scan

SUM = "(float[3] s, float[3] e) => (float[3] t, float[3] v) { t = Add(s, e) v = Mul(t, e) }"


def scan(attributes: str, x: str, y: str) -> str:
    """Running sums along an axis."""
    return (
        f"(float[3] h, float[{x}] x) => (float[3] l, float[{y}] y) "
        f"{{ l, y = Scan(h, x) <num_scan_inputs=1{attributes}, body = b {SUM}> }}"
    )


def batch(attributes: str, first: str = '""', more: str = "") -> str:
    """Running sums in a batch, as Scan has it below 9."""
    return (
        f"(float[2,3] h, float[2,4,3] x{more}) => (float[2,3] l, float[2,4,3] y) "
        f"{{ l, y = Scan({first}, h, x) <num_scan_inputs=1{attributes}, body = b {SUM}> }}"
    )


PAIR = """(int64 n, float[4,3] x, int64[4] k) => (int64 m, float[4,3] y, float[4] z, int64[4] w) {
    m, y, z, w = Scan(n, x, k) <num_scan_inputs=2, scan_input_directions=[0,1], scan_output_directions=[1,0,1], body = b
        (int64 o, float[3] e, int64 f) => (int64 p, float[3] v, float g, int64 q) { p = Add(o, f) v = Mul(e, e)
            g = ReduceSum<axes=[0],keepdims=0>(e) q = Sub(o, f) }> }"""
NO_STATE = """(float[4,3] x) => (float[4,3] y) { y = Scan(x) <num_scan_inputs=1, body = b
    (float[3] e) => (float[3] v) { v = Mul(e, e) }> }"""
NO_STACK = """(float[3] h, float[4,3] x) => (float[3] l) { l = Scan(h, x) <num_scan_inputs=1, body = b
    (float[3] s, float[3] e) => (float[3] t) { t = Add(s, e) }> }"""
CUBE = """(float[3,4,2] x) => (float[3,2,4] y) { y = Scan(x) <num_scan_inputs=1, scan_input_axes=[A],
    scan_output_axes=[B], scan_output_directions=[D], body = b (float[3,2] e) => (float[3,2] v) { v = Mul(e, e) }> }"""


def cube(axis: int, to: int, reverse: int = 0) -> str:
    """A middle axis is scanned and becomes the last."""
    return CUBE.replace("[A]", f"[{axis}]").replace("[B]", f"[{to}]").replace("[D]", f"[{reverse}]")


LENGTHS = ", int64[2] n"

SCANS: list[Row] = [
    rewrites("Scan", 9, 8, scan("", "4,3", "4,3"), into=["Unsqueeze", "Unsqueeze", "Scan", "Squeeze", "Squeeze"]),
    rewrites("Scan", 23, 8, scan("", "4,3", "4,3")),
    rewrites("Scan in reverse", 9, 8, scan(", scan_input_directions=[1]", "4,3", "4,3")),
    rewrites("Scan stacked in reverse", 11, 8, scan(", scan_output_directions=[1]", "4,3", "4,3")),
    rewrites("Scan of two inputs", 9, 8, PAIR),
    rewrites("Scan without state", 9, 8, NO_STATE),
    rewrites("Scan that stacks nothing", 9, 8, NO_STACK),
    rewrites("Scan of another axis", 9, 8, cube(1, 2)),
    rewrites("Scan of another axis stacked in reverse", 9, 8, cube(1, 2, 1)),
    rewrites("Scan of a negative axis", 11, 8, cube(-2, -1)),
    rewrites("Scan of a negative axis", 11, 9, cube(-2, -1)),
    rewrites("Scan of a negative axis stacked in reverse", 16, 9, cube(-2, -1, 1)),
    rewrites("Scan of the last axis", 11, 9, scan(", scan_input_axes=[-1], scan_output_axes=[-1]", "3,4", "3,4")),
    rewrites("Scan stacked in between", 11, 9, cube(-2, -2).replace("float[3,2,4] y", "float[3,4,2] y")),
    keeps("Scan of axis 1", 11, 9, cube(1, 2)),
    keeps("Scan of axis 1", 9, 25, cube(1, 2)),
    rewrites("Scan of a batch", 8, 9, batch(""), into=["Scan"]),
    rewrites("Scan of a batch", 8, 21, batch("")),
    rewrites("Scan of a batch in reverse", 8, 11, batch(", directions=[1]")),
    rewrites("Scan of lengths", 8, 9, batch("", "n", LENGTHS), into=["Scan"], feeds={"n": [4, 2]}),
    rewrites("Scan of lengths", 8, 18, batch(", directions=[0]", "n", LENGTHS), feeds={"n": [1, 3]}),
    refuses(
        "Scan of lengths in reverse",
        8,
        9,
        batch(", directions=[1]", "n", LENGTHS),
        because="in reverse",
        feeds={"n": [4, 2]},
    ),
    rewrites(
        "Scan of a batch without state",
        8,
        9,
        NO_STATE.replace("[4,3]", "[2,4,3]").replace("(x)", '("", x)'),
    ),
    rewrites(
        "Scan of a batch that stacks nothing",
        8,
        10,
        NO_STACK.replace("[4,3]", "[2,4,3]")
        .replace("float[3] h", "float[2,3] h")
        .replace("float[3] l", "float[2,3] l")
        .replace("(h, x)", '("", h, x)'),
    ),
    rewrites(
        "Scan of strings with a length",
        8,
        9,
        "(int64[1] n, string[1,3,2] x) => (string[1,3,2] z)"
        " { z = Scan<num_scan_inputs=1, body = b (string[2] u) => (string[2] w) { w = Identity(u) }>(n, x) }",
        feeds={"n": [3]},
    ),
]


ROWS = [*IFS, *LOOPS, *SCANS]

test_rows = each_of(ROWS)
