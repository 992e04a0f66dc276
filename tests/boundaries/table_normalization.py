# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization (7: `is_test` goes, 9: `spatial`, 14: `training_mode` and three outputs, 15: more than one dtype)
and GroupNormalization downwards. Those that train, and GroupNormalization 18, which no legal model holds, have tests
of their own."""

from __future__ import annotations

from boundaries.rows import Row, keeps, refuses, rewrites


def batch(x: str, c: str, attributes: str = "", outputs: str = "y") -> str:
    """A graph with one BatchNormalization; x and c are the sizes of the data and of each parameter."""
    stated = "".join(f", float[{c}] {name}" for name in outputs.replace(",", " ").split()[1:])
    head = f"(float[{x}] x, float[{c}] s, float[{c}] b, float[{c}] m, float[{c}] v) => (float[{x}] y{stated})"
    return f"{head} {{ {outputs} = BatchNormalization{attributes}(x, s, b, m, v) }}"


def mixed(dtype: str, scale: str, mean: str) -> str:
    """One with a dtype each for data, scale and statistics."""
    head = f"({dtype}[2,3,4] x, {scale}[3] s, {scale}[3] b, {mean}[3] m, {mean}[3] v) => ({dtype}[2,3,4] y)"
    return f"{head} {{ y = BatchNormalization(x, s, b, m, v) }}"


ONE, TWO = {"v": [0.5, 1.0, 2.0]}, {"v": [[0.5, 1.0, 2.0, 1.5]] * 3}
BN = "BatchNormalization"

BATCH: list[Row] = [
    rewrites("BatchNormalization that infers", 6, 7, batch("2,3,4", "3", "<is_test=1>"), feeds=ONE, into=[BN]),
    rewrites("BatchNormalization that infers", 6, 25, batch("2,3,4,5", "3", "<is_test=1>"), feeds=ONE, into=[BN]),
    rewrites("BatchNormalization that infers", 7, 6, batch("2,3,4", "3"), feeds=ONE, into=[BN]),
    refuses("BatchNormalization in doubt", 6, 7, batch("2,3,4", "3"), because="inference"),
    refuses(
        "BatchNormalization in contradiction",
        6,
        7,
        batch("2,3", "3", "<is_test=1>", "y, m1, v1, sm, sv"),
        because="training",
    ),
    keeps("BatchNormalization", 7, 13, batch("2,3,4", "3", "<epsilon=0.1>"), feeds=ONE),
    rewrites("BatchNormalization by channel", 7, 9, batch("2,3,4", "3", "<spatial=1>"), feeds=ONE, into=[BN]),
    rewrites("BatchNormalization by feature", 7, 9, batch("2,3,4", "3,4", "<spatial=0>"), feeds=TWO),
    rewrites("BatchNormalization by feature", 7, 22, batch("2,3,4", "3,4", "<spatial=0>"), feeds=TWO),
    rewrites("BatchNormalization by feature", 7, 6, batch("2,3,4", "3,4", "<spatial=0>"), feeds=TWO),
    rewrites("BatchNormalization by feature of a row", 7, 9, batch("2,3", "3", "<spatial=0>"), feeds=ONE),
    keeps("BatchNormalization", 9, 7, batch("N,3,4", "3"), feeds=ONE),
    rewrites("BatchNormalization of a vector", 9, 7, batch("4", "1"), feeds={"v": [0.5]}),
    keeps("BatchNormalization", 9, 22, batch("2,3,4", "3"), feeds=ONE),
    keeps("BatchNormalization", 22, 9, batch("2,3,4", "3"), feeds=ONE),
    rewrites("BatchNormalization that says so", 14, 13, batch("2,3", "3", "<training_mode=0>"), feeds=ONE, into=[BN]),
    *(
        rewrites(f"BatchNormalization of float16 by {scale}", 15, to, mixed("float16", scale, "float"), feeds=ONE)
        for scale, to in (("float", 14), ("float", 13), ("float", 9), ("float16", 13), ("float16", 9))
    ),
    keeps(
        "BatchNormalization of float16 by float16 and float", 22, 14, mixed("float16", "float16", "float"), feeds=ONE
    ),
]


def group(x: str, c: int, attributes: str, dtype: str = "float") -> str:
    """A graph with one GroupNormalization of c channels."""
    head = f"({dtype}[{x}] x, {dtype}[{c}] s, {dtype}[{c}] b) => ({dtype}[{x}] y)"
    return f"{head} {{ y = GroupNormalization<{attributes}>(x, s, b) }}"


# The first stage in double, or the data in float16: what a float rounds away would show in the results.
DOUBLE = "num_groups={},stash_type=11"
GROUP: list[Row] = [
    rewrites("GroupNormalization of images", 21, 20, group("2,6,3,4", 6, DOUBLE.format(3), "double")),
    rewrites("GroupNormalization of images", 21, 11, group("2,6,3,4", 6, f"{DOUBLE.format(3)},epsilon=0.1", "double")),
    rewrites("GroupNormalization of images", 22, 6, group("2,6,3,4", 6, DOUBLE.format(2), "double")),
    rewrites("GroupNormalization of unknown sizes", 21, 13, group("N,6,H,W", 6, DOUBLE.format(2), "double")),
    rewrites("GroupNormalization of a row", 21, 20, group("2,6", 6, DOUBLE.format(2), "double")),
    rewrites("GroupNormalization of one group", 21, 20, group("2,6,5", 6, DOUBLE.format(1), "double")),
    rewrites("GroupNormalization of float16", 21, 20, group("2,6,5", 6, "num_groups=2", "float16")),
    rewrites("GroupNormalization in float16", 21, 20, group("2,6,5", 6, "num_groups=2,stash_type=10", "float16")),
]

ROWS = [*BATCH, *GROUP]
