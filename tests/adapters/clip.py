# SPDX-License-Identifier: Apache-2.0
"""Clip: bounds as attributes (below 11) and as inputs, their defaults (6), and integers (12)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites


def _unary(operator: str, attributes: str = "", x: str = "2,3") -> str:
    return f"(float[{x}] x) => (float[{x}] y) {{ y = {operator}{attributes}(x) }}"


EDGES = {"x": [float("inf"), float("-inf"), 2.0, 0.5]}

DEFAULTS: list[Row] = [
    rewrites("Clip to nothing", 1, 6, _unary("Clip", x="4"), into=["Identity"], feeds=EDGES),
    rewrites("Clip from below", 1, 6, _unary("Clip", "<min=0.0>", "4"), into=["Clip"], feeds=EDGES),
    rewrites(
        "Clip from above", 1, 10, _unary("Clip", "<max=1.0, consumed_inputs=[1]>", "4"), into=["Clip"], feeds=EDGES
    ),
    keeps("Clip", 1, 6, _unary("Clip", "<min=0.0, max=1.0>")),
    keeps("Clip", 6, 1, _unary("Clip", "<min=0.0, max=1.0>")),
    rewrites("Clip to finite numbers", 6, 1, _unary("Clip", x="4"), into=["Clip"], feeds=EDGES),
    rewrites("Clip from below", 6, 5, _unary("Clip", "<min=0.0>", "4"), into=["Clip"], feeds=EDGES),
]


HALF = {"x": [[float("-inf"), -2.0, 0.5], [1.0, 65504.0, float("inf")]]}
INF = {"x": [[float("-inf"), -2.0, 0.5], [1.0, 70000.0, float("inf")]]}


def attribute(attributes: str, dtype: str = "float") -> str:
    written = f"<{attributes}>" if attributes else ""
    return f"({dtype}[2,3] x) => ({dtype}[2,3] y) {{ y = Clip{written}(x) }}"


def constant(bounds: dict[str, str], dtype: str = "float") -> str:
    made = ", ".join(f"{dtype} {name} = {{{value}}}" for name, value in bounds.items())
    made = f"<{made}>" if made else ""
    return f"({dtype}[2,3] x) => ({dtype}[2,3] y) {made} {{ y = Clip({_inputs(set(bounds))}) }}"


def run_time(*bounds: str, dtype: str = "float") -> str:
    more = "".join(f", {dtype} {name}" for name in bounds)
    return f"({dtype}[2,3] x{more}) => ({dtype}[2,3] y) {{ y = Clip({_inputs(set(bounds))}) }}"


def _inputs(bounds: set[str]) -> str:
    low, high = ("a" if "a" in bounds else ""), (", b" if "b" in bounds else "")
    return f"x, {low}{high}" if bounds else "x"


BOTH, LOW, HIGH = {"a": "-0.5", "b": "0.75"}, {"a": "-0.5"}, {"b": "0.75"}
SMALL, WIDE = ("int8", "uint8", "int16", "uint16"), ("int32", "int64", "uint32", "uint64")
NUMBERS = {"x": [[0, 1, 100], [7, 50, 127]]}
WHOLE = {"a": "3", "b": "60"}

UP: list[Row] = [
    rewrites("Clip", 10, 11, attribute("min=-0.5,max=0.75"), into=["Clip"]),
    rewrites("Clip from the beginning", 1, 25, attribute("min=-0.5,max=0.75"), into=["Clip"]),
    rewrites("Clip from below", 10, 11, attribute("min=-0.5"), into=["Clip"]),
    rewrites("Clip from above", 6, 13, attribute("max=0.75"), into=["Clip"]),
    rewrites("Clip by default", 10, 11, attribute(""), feeds=INF, into=["Clip"]),
    rewrites(
        "Clip of double by default",
        10,
        11,
        attribute("", "double"),
        feeds={"x": [[-1e300, 0.0, 1e300], [1e39, 1.0, -1e38]]},
        into=["Clip"],
    ),
    rewrites("Clip to the largest float", 10, 11, attribute("min=0.0,max=3.4028235e38"), into=["Clip"]),
    rewrites("Clip to the impossible", 10, 11, attribute("min=1.0,max=-1.0"), into=["Clip"]),
    *(
        rewrites(f"Clip of float16 with {bounds or 'no bounds'}", 6, 13, attribute(bounds, "float16"), feeds=HALF)
        for bounds in ("", "min=-1.0", "max=1.0", "max=65519.5", "max=65520.0")
    ),
    keeps("Clip of integers", 12, 13, constant(WHOLE, "int32"), feeds=NUMBERS),
]

DOWN: list[Row] = [
    rewrites("Clip", 11, 10, constant(BOTH), into=["Clip"]),
    rewrites("Clip", 25, 1, constant(BOTH), into=["Clip"]),
    rewrites("Clip from below", 11, 10, constant(LOW), into=["Clip"]),
    rewrites("Clip from above", 13, 6, constant(HIGH), into=["Clip"]),
    rewrites("Clip by default", 13, 10, constant({}), into=["Clip"]),
    rewrites("Clip to the impossible", 13, 10, constant({"a": "1", "b": "-1"}), into=["Clip"]),
    *(
        rewrites(f"Clip to the {end}", 13, target, constant({name: number}), feeds=INF, into=["Clip"])
        for target in (10, 6)
        for end, name, number in (
            ("lowest from above", "b", "-3.4028234663852886e38"),
            ("largest from below", "a", "3.4028234663852886e38"),
        )
    ),
    rewrites("Clip at run time", 11, 10, run_time("a", "b"), into=["Max", "Min"]),
    rewrites("Clip at run time", 13, 7, run_time("a", "b"), may_refuse={"ranks": "rank"}),
    rewrites("Clip at run time to the impossible", 11, 10, run_time("a", "b"), feeds={"a": 0.5, "b": -0.5}),
    rewrites("Clip at run time from below", 11, 9, run_time("a"), into=["Max", "Min"]),
    rewrites("Clip at run time from above", 11, 8, run_time("b"), into=["Max", "Min"]),
    rewrites(
        "Clip between a constant and a computed bound",
        11,
        10,
        "(float[2,3] x, float b) => (float[2,3] y) <float a = {-0.5}> { y = Clip(x, a, b) }",
        into=["Max", "Min"],
    ),
    rewrites(
        "Clip of double to what float32 does not hold",
        11,
        10,
        constant({"a": "0.1", "b": "0.7"}, "double"),
        into=["Max", "Min"],
        options={"exact": True},
    ),
    rewrites("Clip of double to what float32 holds", 11, 10, constant({"a": "0.5", "b": "1"}, "double"), into=["Clip"]),
    rewrites(
        "Clip of double by default",
        11,
        10,
        constant({}, "double"),
        feeds={"x": [[-1e300, 0.0, 1e300], [1e39, 1.0, -1e38]]},
    ),
    rewrites("Clip of a scalar", 11, 10, "(float x) => (float y) <float a = {0}> { y = Clip(x, a) }", into=["Clip"]),
    *(
        rewrites(
            f"Clip of {d}",
            12,
            11,
            constant(WHOLE, d),
            feeds=NUMBERS,
            into=["Cast", "Greater", "Where", "Less", "Where", "Cast"],
        )
        for d in SMALL
    ),
    *(
        rewrites(f"Clip of {d}", 13, 9, constant(WHOLE, d), feeds=NUMBERS, into=["Greater", "Where", "Less", "Where"])
        for d in WIDE
    ),
    rewrites("Clip of int32 to the impossible", 12, 11, constant({"a": "60", "b": "3"}, "int32"), feeds=NUMBERS),
    rewrites(
        "Clip of int32 at run time", 12, 11, run_time("a", "b", dtype="int32"), feeds={**NUMBERS, "a": 3, "b": 60}
    ),
    rewrites(
        "Clip of int64 from below", 13, 11, constant({"a": "3"}, "int64"), feeds=NUMBERS, into=["Greater", "Where"]
    ),
    rewrites("Clip of int64 by default", 13, 11, constant({}, "int64"), into=["Identity"]),
    keeps("Clip", 12, 11, constant(BOTH)),
    refuses("Clip of bfloat16", 13, 12, run_time("a", "b", dtype="bfloat16"), because="bfloat16"),
    rewrites(
        "a bound beyond float",
        11,
        10,
        "(double[3] x) => (double[3] y) <double low = {-1e300}, double high = {0.5}> { y = Clip(x, low, high) }",
        into=["Max", "Min"],
    ),
]


ROWS = [*DEFAULTS, *UP, *DOWN]

test_rows = each_of(ROWS)
