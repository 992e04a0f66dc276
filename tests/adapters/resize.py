# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample: scales as attributes (7) and as an input (9), Resize (10) with ways to choose coordinates (11),
without tf_half_pixel_for_nn (13), with `axes`, `antialias` and a policy (18), half_pixel_symmetric (19)."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites

X, R, U = "1,2,4,6", "Resize", "Upsample"


def resize(
    attributes: str, y: str, scales: str = "", sizes: str = "", roi: str = "", x: str = X, empty: str = ""
) -> str:
    """Returns a graph with one Resize of opset 11 or later; `empty` is how an absent input is written: left out or a
    tensor."""
    given = [
        f"float[{_count(values)}] {name} = {{{values}}}"
        for name, values in (("r", roi), ("s", scales))
        if values or empty
    ]
    given += [f"int64[{_count(sizes)}] n = {{{sizes}}}"] if sizes else []
    inputs = ["x", "r" if roi or empty else '""', "s" if scales or empty else '""', *(["n"] if sizes else [])]
    written = f"<{attributes}>" if attributes else ""
    return f"(float[{x}] x) => (float[{y}] y) <{', '.join(given)}> {{ y = Resize{written}({', '.join(inputs)}) }}"


def _count(values: str) -> int:
    return len(values.split(",")) if values else 0


def at_run_time(attributes: str, x: str = X, kind: str = "float") -> str:
    """Returns a graph whose scales (or sizes) are a graph input; that there are four stands in the graph."""
    count = 2 if "axes" in attributes else 4
    inputs = 'x, "", w' if kind == "float" else 'x, "", "", w'
    head = f"(float[{x}] x, {kind}[{count}] v) => (float[?,?,?,?] y)"
    return f"{head} {{ k = Constant<value_ints=[{count}]>() w = Reshape(v, k) y = Resize<{attributes}>({inputs}) }}"


def old(operator: str, mode: str, scales: str, y: str, x: str = X) -> str:
    """Returns a graph with Resize-10, or Upsample-9."""
    head = f"(float[{x}] x) => (float[{y}] y) <float[{_count(scales)}] s = {{{scales}}}>"
    return f'{head} {{ y = {operator}<mode="{mode}">(x, s) }}'


def how(coordinates: str, mode: str = "nearest", nearest: str = "", more: str = "") -> str:
    """Returns the attributes of a Resize."""
    rounding = f'nearest_mode="{nearest}"' if nearest else ""
    named = [f'coordinate_transformation_mode="{coordinates}"', f'mode="{mode}"', rounding, more]
    return ",".join(filter(None, named))


# Scales and the sizes of what comes out.
FACTORS = {
    "twice": ("1,1,2,2", "1,2,8,12"),
    "mixed": ("1,1,2.5,0.6", "1,2,10,3"),
    "smaller": ("1,1,0.5,0.7", "1,2,2,4"),
}
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

# From opset 10 on back to it, and to opset 9, where nothing shrinks.
TO_10: list[Row] = [
    *(
        rewrites(f"{R} nearest {way} {rounding} {name}", 11, 10, resize(how(way, "nearest", rounding), y, s, empty="e"))
        for way in COORDINATES
        for rounding in ROUNDINGS
        for name, (s, y) in FACTORS.items()
    ),
    *(
        rewrites(f"{R} {mode} {way} {name}", 11, 10, resize(how(way, mode), y, s, empty="e"))
        for way in COORDINATES
        for mode in ("linear", "cubic")
        for name, (s, y) in FACTORS.items()
    ),
    *(
        rewrites(f"{R} {mode} {way} to sizes", 13, 10, resize(how(way, mode), "1,2,7,5", sizes="1,2,7,5"))
        for way in COORDINATES
        for mode in ("nearest", "linear", "cubic")
    ),
]

ROI = "0,0,0.1,0.2,1,1,0.9,0.7"
CROP = "tf_crop_and_resize"
CROPPED = 'coordinate_transformation_mode="tf_crop_and_resize", antialias=1, extrapolation_value=9.0'
OUTSIDE = 'coordinate_transformation_mode="tf_crop_and_resize", mode="nearest", extrapolation_value'
BEYOND = "<float[6] r = {0,0,-0.5,1,1,1.5}, float[3] s = {1,1,2}>"
TO_10 += [
    refuses(f"{R} of {kind} beyond its ends, {value:g}", 11, 10, because="lies outside",
            graph=f"({kind}[1,1,4] x) => ({kind}[1,1,8] y) {BEYOND} {{ y = Resize<{OUTSIDE}={value}>(x, r, s) }}")
    for kind, value in (("string", 0.0), ("int32", 0.5), ("uint8", -1.0), ("int8", 200.0), ("bool", 2.0))
]  # fmt: skip
TO_10 += [
    *(
        rewrites(
            f"{R} {mode} crop {name}", 11, 10, resize(how(CROP, mode, more="extrapolation_value=7.0"), y, s, roi=roi)
        )
        for mode in ("nearest", "linear")
        for name, (s, y) in FACTORS.items()
        for roi in [ROI if name == "twice" else "0,0,-0.2,0.2,1,1,0.9,1.3"]
    ),
    rewrites(
        f"{R} cubic outside",
        11,
        10,
        resize(how("half_pixel", "cubic", more="exclude_outside=1"), "1,2,10,3", FACTORS["mixed"][0], empty="e"),
    ),
    rewrites(
        f"{R} cubic coefficient",
        11,
        10,
        resize(how("half_pixel", "cubic", more="cubic_coeff_a=-0.5"), "1,2,8,12", FACTORS["twice"][0], empty="e"),
    ),
    *(
        rewrites(
            f"{R} {mode}, all at once",
            11,
            10,
            resize(how("half_pixel", mode), "1,2,8,12", FACTORS["twice"][0], empty="e"),
            into=["Gather", "Mul", "ReduceSum"] * 2,
        )
        for mode in ("linear", "cubic")
    ),
    rewrites(
        f"{R} linear of unknown sizes",
        13,
        9,
        '(float[N,2,H,W] x) => (float[N,2,?,?] y) <float[4] s = {1,1,1.5,2}> { y = Resize<mode="linear">(x, "", s) }',
        nodes=54,
        dims={"N": 1, "H": 4, "W": 3},
    ),
    rewrites(
        f"{R} by old rules",
        11,
        10,
        resize(how("asymmetric", "nearest", "floor"), "1,2,8,12", "1,1,2,2", empty="e"),
        into=[R],
    ),
    rewrites(f"{R} repeated", 11, 10, resize(how("half_pixel"), "1,2,8,18", "1,1,2,3", empty="e"), into=[R]),
    rewrites(
        f"{R} shrunk by old rules",
        11,
        10,
        resize(how("asymmetric", "nearest", "ceil"), "1,2,2,3", "1,1,0.5,0.5", empty="e"),
        into=[R],
    ),
    rewrites(
        f"{R} to one element",
        11,
        10,
        resize(how("pytorch_half_pixel", "linear"), "1,2,1,1", sizes="1,2,1,1", empty="e"),
    ),
    rewrites(
        f"{R} one element cropped", 11, 10, resize(how(CROP, "linear"), "1,2,1,3", sizes="1,2,1,3", roi=ROI, empty="e")
    ),
    rewrites(
        f"{R} of integers",
        13,
        10,
        resize(how("half_pixel"), "1,2,10,3", FACTORS["mixed"][0]).replace("float[1,2", "int32[1,2"),
    ),
    refuses(
        f"{R} of integers, linear",
        13,
        10,
        resize(how("half_pixel", "linear"), "1,2,10,3", FACTORS["mixed"][0]).replace("float[1,2", "int32[1,2"),
        because="integers",
    ),
]
TO_10 += [
    rewrites(
        f"{R} {mode} {way} by scales at run time", 13, 10, at_run_time(how(way, mode)), feeds={"v": [1, 1, 2.5, 0.6]}
    )
    for way in COORDINATES
    for mode in ("nearest", "linear", "cubic")
] + [
    rewrites(
        f"{R} {mode} {way} to sizes at run time",
        13,
        10,
        at_run_time(how(way, mode), kind="int64"),
        feeds={"v": [1, 2, 1, 9]},
    )
    for way in COORDINATES
    for mode in ("nearest", "linear")
]

FROM_10: list[Row] = [
    rewrites(f"{R} {mode} {name}", 10, target, old(R, mode, s, y))
    for mode in ("nearest", "linear")
    for name, (s, y) in FACTORS.items()
    for target in (9, 11, 19)
] + [
    rewrites(
        f"{R} {mode} at run time",
        10,
        13,
        f'(float[1,2,4,6] x, float[4] s) => (float[?,?,?,?] y) {{ y = Resize<mode="{mode}">(x, s) }}',
        feeds={"s": [1, 1, 2.5, 0.6]},
    )
    for mode in ("nearest", "linear")
]

TF: list[Row] = [
    rewrites(
        f"{R} tf {rounding} {name}",
        11,
        13,
        resize(how("tf_half_pixel_for_nn", "nearest", rounding), y, s, empty="e"),
        into=[R] if rounding in ("floor", "round_prefer_floor") else ["Gather", "Gather"],
    )
    for rounding in ROUNDINGS
    for name, (s, y) in FACTORS.items()
]

EMPTY: list[Row] = [
    rewrites(f"{R} without empty inputs", 11, 13, resize("", "1,2,8,12", "1,1,2,2", empty="e"), into=[R]),
    rewrites(f"{R} without empty inputs", 11, 25, resize("", "1,2,8,12", sizes="1,2,8,12", empty="e"), into=[R]),
    rewrites(f"{R} with empty inputs", 13, 11, resize("", "1,2,8,12", "1,1,2,2"), into=[R]),
    rewrites(f"{R} with empty inputs, to sizes", 13, 11, resize("", "1,2,8,12", sizes="1,2,8,12"), into=[R]),
]

AXES = "axes=[2,3]"
TO_17: list[Row] = [
    rewrites(f"{R} axes", 18, 17, resize(AXES, "1,2,8,3", "2,0.5"), into=[R]),
    rewrites(f"{R} negative axes", 18, 17, resize("axes=[-1,-2]", "1,2,8,3", "0.5,2"), into=[R]),
    rewrites(f"{R} axes to sizes", 18, 17, resize(AXES, "1,2,7,5", sizes="7,5"), into=[R]),
    rewrites(f"{R} negative axes to sizes", 18, 13, resize("axes=[-2,-1]", "1,2,7,5", sizes="7,5"), into=[R]),
    rewrites(f"{R} turned axes to sizes", 18, 13, resize("axes=[3,2]", "1,2,7,5", sizes="5,7"), into=[R]),
    rewrites(f"{R} axes of an unknown batch", 18, 13, resize(AXES, "N,2,7,5", sizes="7,5", x="N,2,4,6")),
    rewrites(
        f"{R} axes cropped",
        18,
        17,
        resize(how(CROP, "linear", more=AXES), "1,2,7,5", sizes="7,5", roi="0.1,0.2,0.9,0.8"),
        into=[R],
    ),
    rewrites(
        f"{R} axes at run time",
        18,
        17,
        at_run_time("axes=[2,3]", kind="int64"),
        feeds={"v": [7, 5]},
    ),
    rewrites(
        f"{R} axes by scales at run time",
        18,
        17,
        at_run_time("axes=[-1,2]"),
        feeds={"v": [1.5, 2]},
    ),
    rewrites(
        f"{R} no filter",
        18,
        17,
        resize('mode="linear",antialias=1', "1,2,8,12", "1,1,2,2"),
        into=[R],
    ),
    *(
        rewrites(
            f"{R} {mode} filter {name} {more[-1]}",
            18,
            17,
            resize(f'mode="{mode}",antialias=1,{more}', y, s),
        )
        for mode in ("linear", "cubic")
        for more in ("exclude_outside=0", *(["exclude_outside=1"] if mode == "cubic" else []))
        for name, (s, y) in list(FACTORS.items())[1:]
    ),
    *(
        rewrites(
            f"{R} {mode} {policy} {sizes}",
            18,
            17,
            resize(f'mode="{mode}",axes=[2,3],keep_aspect_ratio_policy="{policy}"', y, sizes=sizes),
        )
        for mode in ("nearest", "linear")
        for policy, sizes, y in [
            ("not_larger", "7,5", "1,2,3,5"),
            ("not_smaller", "7,5", "1,2,7,11"),
            ("not_larger", "8,18", "1,2,8,12"),
        ]
    ),
    *(  # at an unknown rank, what is before the named axes or behind them becomes one
        rewrites(
            f"{R} {policy} of {axes}",
            18,
            target,
            resize(f'axes=[{axes}],keep_aspect_ratio_policy="{policy}"', y, sizes=sizes, x=x),
        )
        for target in (17, 10)
        for policy, axes, sizes, x, y in (
            ("not_larger", "3,1", "7,5", "1,3,2,4", "1,5,2,7"),
            ("not_larger", "1,0", "3,7", "3,2,4", "5,3,4"),
            ("not_smaller", "0", "1", "3", "1"),
        )
    ),
    *(
        rewrites(
            f"{R} {mode} filter of {axes} by {scales} of {x}",
            18,
            target,
            resize(f'mode="{mode}",antialias=1,axes=[{axes}]', y, scales, x=x),
        )
        for target in (17, 10)
        for mode, axes, scales, x, y in (
            ("linear", "-2,-1", "0.5,0.4", "1,2,6,5", "1,2,3,2"),
            ("cubic", "-2,-1", "0.5,1.5", "1,1,6,4", "1,1,3,6"),
            ("linear", "-1", "0.4", "2,5", "2,2"),
        )
    ),
    *(
        rewrites(
            f"{R} {mode} filter at run time",
            18,
            17,
            at_run_time(f'mode="{mode}",antialias=1'),
            feeds={"v": [1, 1, 0.4, 1.5]},
        )
        for mode in ("linear", "cubic")
    ),
    rewrites(
        f"{R} not_larger at run time",
        18,
        17,
        at_run_time('axes=[2,3],keep_aspect_ratio_policy="not_larger"', kind="int64"),
        feeds={"v": [7, 5]},
    ),
]

SYMMETRIC = "half_pixel_symmetric"
TO_18: list[Row] = [
    rewrites(
        f"{R} symmetric {mode} {name}",
        19,
        18,
        resize(how(SYMMETRIC, mode), y, s),
        into=[R] if name == "twice" else None,
    )
    for mode in ("nearest", "linear", "cubic")
    for name, (s, y) in FACTORS.items()
] + [
    rewrites(f"{R} symmetric to sizes", 19, 18, resize(how(SYMMETRIC, "linear"), "1,2,7,5", sizes="1,2,7,5"), into=[R]),
    rewrites(
        f"{R} symmetric at run time", 19, 18, at_run_time(how(SYMMETRIC, "linear")), feeds={"v": [1, 1, 2.3, 0.6]}
    ),
]

UPSAMPLE: list[Row] = [
    *(
        rewrites(f"{U} {mode}", 9, target, old(U, mode, "1,1,2,3", "1,2,8,18"), into=[U if target < 10 else R])
        for mode in ("nearest", "linear")
        for target in (7, 10, 11, 19)
    ),
    rewrites(
        f"{U} attribute",
        7,
        9,
        "(int32[1,2,4,6] x) => (int32[1,2,8,18] y) { y = Upsample<scales=[1.0,1.0,2.0,3.0]>(x) }",
        into=[U],
    ),
    rewrites(
        f"{U} at run time",
        9,
        8,
        "(float[1,2,4,6] x, float[4] s) => (float[?,?,?,?] y) { y = Upsample(x, s) }",
        feeds={"s": [1, 1, 2, 3]},
        may_refuse={"*": "exists only from", "ranks": "rank"},
    ),
    rewrites(
        f"{U} at run time",
        9,
        10,
        "(float[1,2,4,6] x, float[4] s) => (float[?,?,?,?] y) { y = Upsample(x, s) }",
        feeds={"s": [1, 1, 2, 3]},
        into=[R],
    ),
    *(
        rewrites(
            f"{U} of all axes {mode}",
            9,
            6,
            old(U, mode, "2,1,3", "4,3,12", "2,3,4"),
            may_refuse={"*": "exists only from"},
        )
        for mode in ("nearest", "linear")
    ),
]


TO_17 += [
    rewrites(f"{R} with a filter beyond its ends, {mode} by {factor:g}", 18, opset,
             "(float[1,1,4,5] x) => (float[1,1,4,?] y) <float[8] r = {0,0,0,-0.5,1,1,1,1.4}, "
             f'float[4] s = {{1,1,1,{factor}}}> {{ y = Resize<mode="{mode}", {CROPPED}>(x, r, s) }}')
    for mode, factor, opset in (("linear", 0.6, 17), ("cubic", 0.6, 17), ("linear", 0.4, 9))
]  # fmt: skip
ROWS = [*TO_10, *FROM_10, *TF, *EMPTY, *TO_17, *TO_18, *UPSAMPLE]

test_rows = each_of(ROWS)


def _model(graph: str, opset: int) -> ModelProto:
    made = onnx.parser.parse_graph(f"g {graph}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(made, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


# ---- Resize of infinities


@pytest.mark.parametrize("antialias", [0, 1])
def test_the_report_says_where_infinities_spread(antialias: int) -> None:
    """A filter is a matrix, most of whose weights are 0."""
    graph = (
        f"(float[1,1,8,8] x) => (float[A,B,C,D] y) <float[4] s = {{1,1,0.5,0.5}}> {{ y = Resize<antialias={antialias}, "
        'mode="linear", coordinate_transformation_mode="half_pixel_symmetric">(x, , s) }'
    )
    steps = onnx_convert.convert(_model(graph, 19), to=9).report.steps
    said = " ".join(step.condition for step in steps)
    assert ("infinities" in said) == bool(antialias)


# ---- Resize where float rounding hides that a length times its scale is no whole number


def test_a_symmetric_resize_is_not_taken_for_another_because_of_rounding() -> None:
    """0.6 in single precision is a little more, and so is 5 times that, before it is rounded to 3. The middle of the
    output lies in the middle of the input then, and just before it without the symmetry."""
    how = 'coordinate_transformation_mode="half_pixel_symmetric", mode="nearest", nearest_mode="floor"'
    graph = f"(float[1,1,5,1] x) => (float[1,1,3,1] y) <float[4] s = {{1,1,0.6,1}}> {{ y = Resize<{how}>(x, , s) }}"
    source = _model(graph, 19)
    feeds = {"x": np.arange(5, dtype=np.float32).reshape(1, 1, 5, 1)}
    converted = onnx_convert.convert(source, to=18, exact=True).model
    assert "Resize" not in {node.op_type for node in converted.graph.node}
    for made in (source, converted):
        (y,) = ReferenceEvaluator(made).run(None, feeds)
        assert y.ravel().tolist() == [0, 2, 3]
