# SPDX-License-Identifier: Apache-2.0
"""Attention (24: lengths, and masks that are too short; 25: windows)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites

Q, K = "float[2,4,3,8] q", "float[2,2,6,8] k, float[2,2,6,8] v"
FLAT = "float[2,3,32] q, float[2,6,16] k, float[2,6,16] v"
HEADS = ",q_num_heads=4,kv_num_heads=2"
MORE = {"n": [2, 6]}


def attention(
    attributes: str = "", mask: str = "", lengths: str = "", past: str = "", inputs: str = f"{Q}, {K}", y: str = ""
) -> str:
    """Attention of 4 heads over 2, 3 queries and 6 keys, two members."""
    given = [mask and f"{mask} m", past and f"float[2,2,{past},8] p, float[2,2,{past},8] r", lengths and "int64[2] n"]
    names = ["q", "k", "v", mask and "m", past and "p", past and "r", lengths and "n"]
    while not names[-1]:
        names.pop()
    actual = ", ".join(name or '""' for name in names)
    size = f"float[2,2,{int(past or 0) + 6},8]"
    outputs, results = (f", {size} pk, {size} pv", "y, pk, pv") if past else ("", "y")
    return (
        f"({', '.join([inputs, *filter(None, given)])}) => (float[{y or '2,4,3,8'}] y{outputs}) "
        f"{{ {results} = Attention{attributes and f'<{attributes}>'}({actual}) }}"
    )


LEFT, BOTH = "left_window_size=1", "left_window_size=2,right_window_size=1"

WINDOWS: list[Row] = [
    rewrites(
        "Attention without window", 25, 24, attention("left_window_size=-1,right_window_size=-1"), into=["Attention"]
    ),
    keeps("Attention", 23, 25, attention("is_causal=1")),
    rewrites("Attention", 25, 23, attention("is_causal=1"), into=["Attention"]),
    rewrites("Attention with a left window", 25, 24, attention(LEFT)),
    rewrites("Attention with a right window", 25, 24, attention("right_window_size=0")),
    rewrites("Attention with windows", 25, 24, attention(BOTH)),
    rewrites("Attention with windows", 25, 23, attention(BOTH)),
    rewrites("Attention with windows in three dimensions", 25, 23, attention(BOTH + HEADS, inputs=FLAT, y="2,3,32")),
    *(
        rewrites(f"Attention with {what}", 25, target, attention(attributes))
        for target in (24, 23)
        for what, attributes in (
            ("a left window without end", f"left_window_size={2**63 - 1}"),
            ("a right window without end", f"right_window_size={2**63 - 1},left_window_size=0"),
            ("a cap below 0", "softcap=-0.5"),
        )
    ),
    rewrites("Attention with windows that is causal", 25, 23, attention(BOTH + ",is_causal=1")),
    rewrites("Attention with windows and a mask", 25, 23, attention(BOTH, "bool[3,6]")),
    rewrites("Attention with windows and a mask of floats", 25, 23, attention(BOTH, "float[2,1,3,6]")),
    rewrites("Attention with windows and a vector as mask", 25, 23, attention(BOTH, "bool[6]")),
    rewrites("Attention with windows and a short mask of floats", 25, 23, attention(BOTH, "float[3,4]")),
    rewrites("Attention with windows and a short mask", 25, 23, attention(BOTH, "bool[2,4,3,4]")),
    rewrites("Attention with windows after a past", 25, 23, attention(BOTH, past="5")),
    rewrites(
        "Attention with windows after a past, causal, with a mask",
        25,
        23,
        attention(BOTH + ",is_causal=1", "bool[3,11]", past="5"),
    ),
    rewrites("Attention with windows and lengths", 25, 24, attention(BOTH, lengths="n"), feeds=MORE),
    rewrites("Attention with windows and lengths", 25, 23, attention(BOTH + ",is_causal=1", lengths="n"), feeds=MORE),
    rewrites("Attention with windows, lengths and a mask", 25, 23, attention(BOTH, "float[3,6]", "n"), feeds=MORE),
    refuses("Attention with windows and a mask of integers", 25, 24, attention(LEFT, "int32[3,6]"), because="integers"),
]

# onnxruntime has no short masks, and runs opset 24.
NONE = "left_window_size=-1"

PADDING: list[Row] = [
    rewrites(
        "Attention with lengths",
        24,
        23,
        attention(lengths="n"),
        into=["Reshape", "Less", "Expand", "Attention"],
        feeds=MORE,
    ),
    rewrites("Attention with lengths that is causal", 24, 23, attention("is_causal=1", lengths="n"), feeds=MORE),
    rewrites(
        "Attention with lengths in three dimensions",
        24,
        23,
        attention(HEADS[1:], lengths="n", inputs=FLAT, y="2,3,32"),
        feeds=MORE,
    ),
    rewrites("Attention with lengths and a mask", 24, 23, attention("is_causal=1", "bool[3,6]", "n"), feeds=MORE),
    rewrites("Attention with lengths and a mask of floats", 24, 23, attention("", "float[2,4,3,6]", "n"), feeds=MORE),
    rewrites(
        "Attention with lengths and a short mask", 25, 23, attention(NONE, "float[3,4]", "n"), feeds={"n": [2, 4]}
    ),
    rewrites("Attention with a short mask", 25, 23, attention(NONE, "bool[3,4]")),
    rewrites(
        "Attention with a short mask after a past", 25, 23, attention(NONE + ",is_causal=1", "float[3,10]", past="5")
    ),
    rewrites("Attention with a mask", 24, 23, attention("", "bool[3,6]"), into=["Attention"]),
    rewrites(
        "Attention with a mask after a past",
        24,
        23,
        attention("is_causal=1", "bool[3,11]", past="5"),
        into=["Attention"],
    ),
]


ROWS = [*WINDOWS, *PADDING]

test_rows = each_of(ROWS)
