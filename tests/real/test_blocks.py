# SPDX-License-Identifier: Apache-2.0
"""What conversion costs in nodes on the pieces that most exports consist of, spelled as exporters spell them."""

from __future__ import annotations

import pytest
from texts import model

import onnx_convert
from boundaries import each_of, rewrites
from oracle import all_nodes, opset_of

# ---- self-attention with layer normalisation, as torch writes it at 13 for any batch and length


def _heads(x: str, y: str) -> str:
    """Cuts the last axis of (N, T, 16) in four heads, whose size is computed from that of x."""
    return f"""{y}s = Shape(x) {y}n = Gather<axis=0>({y}s, zero) {y}t = Gather<axis=0>({y}s, one)
        {y}a = Unsqueeze({y}n, first) {y}b = Unsqueeze({y}t, first) {y}c = Concat<axis=0>({y}a, {y}b, four, four)
        {y}r = Reshape({x}, {y}c) {y} = Transpose<perm=[0,2,1,3]>({y}r)"""


def _matrix(x: str, weight: str, y: str) -> str:
    return f"{y}m = MatMul({x}, {weight}) {y} = Add({y}m, bias)"


ATTENTION = f"""(float[N,T,16] x, float[16,16] wq, float[16,16] wk, float[16,16] wv, float[16,16] wo, float[16] bias,
     float[16] scale) => (float[N,T,16] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64[1] first = {{0}}, int64[1] four = {{4}}, int64[3] shape = {{0,0,16}},
     float two = {{2.0}}, float tiny = {{0.00001}}> {{
    {_matrix("x", "wq", "q")} {_matrix("x", "wk", "k")} {_matrix("x", "wv", "v")}
    {_heads("q", "hq")} {_heads("k", "hk")} {_heads("v", "hv")}
    kt = Transpose<perm=[0,1,3,2]>(hk) s = MatMul(hq, kt) d = Div(s, two) p = Softmax<axis=-1>(d) o = MatMul(p, hv)
    ot = Transpose<perm=[0,2,1,3]>(o) j = Reshape(ot, shape) {_matrix("j", "wo", "a")} z = Add(x, a)
    mean = ReduceMean<axes=[-1]>(z) c = Sub(z, mean) sq = Pow(c, two) var = ReduceMean<axes=[-1]>(sq)
    ve = Add(var, tiny) sd = Sqrt(ve) n = Div(c, sd) g = Mul(n, scale) y = Add(g, bias) }}"""

# ---- the head of a YOLO that takes three sizes of features, as torch writes it at 12


def _scale(x: str, weight: str, y: str) -> str:
    """Makes boxes from the features of one scale: (1, 14, h, w) to (1, 2 h w, 7)."""
    return f"""{y}c = Conv({x}, {weight}) {y}r = Reshape({y}c, cut{y}) {y}t = Transpose<perm=[0,1,3,4,2]>({y}r)
        {y}s = Sigmoid({y}t) {y}xy = Slice({y}s, i0, i2, last) {y}wh = Slice({y}s, i2, i4, last)
        {y}k = Slice({y}s, i4, end, last) {y}m = Mul({y}xy, two) {y}g = Add({y}m, half) {y}p = Mul({y}g, stride)
        {y}d = Mul({y}wh, two) {y}q = Pow({y}d, two) {y}a = Mul({y}q, stride) {y}b = Concat<axis=4>({y}p, {y}a, {y}k)
        {y} = Reshape({y}b, flat)"""


HEAD = f"""(float[1,4,8,8] a, float[1,4,4,4] b, float[1,4,2,2] c, float[14,8,1,1] ka, float[14,8,1,1] kb,
     float[14,4,1,1] kc) => (float[1,168,7] y)
    <int64[1] i0 = {{0}}, int64[1] i2 = {{2}},
     int64[1] i4 = {{4}}, int64[1] end = {{9223372036854775807}}, int64[1] last = {{4}}, int64[3] flat = {{1,-1,7}},
     int64[5] cutu = {{1,2,7,8,8}}, int64[5] cutv = {{1,2,7,4,4}}, int64[5] cutw = {{1,2,7,2,2}}, float two = {{2.0}},
     float half = {{-0.5}}, float stride = {{8.0}}, float[4] double = {{1.0,1.0,2.0,2.0}}, float[0] roi = {{}}> {{
    cu = Resize<coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor">(c, roi, double)
    bc = Concat<axis=1>(cu, b)
    bu = Resize<coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor">(b, roi, double)
    ab = Concat<axis=1>(bu, a)
    {_scale("ab", "ka", "u")} {_scale("bc", "kb", "v")} {_scale("c", "kc", "w")}
    y = Concat<axis=1>(u, v, w) }}"""

# ---- Softmax, over whole feature maps and over classes

MAPS = "(float[N,C,H,W] x) => (float[N,C,H,W] y) { y = Softmax(x) }"
FIXED = "(float[1,3,4,5] x) => (float[1,3,4,5] y) { y = Softmax(x) }"
CHANNELS = MAPS.replace("(x) }", "<axis=1>(x) }")
CLASSES = "(float[N,10] x) => (float[N,10] y) { y = Softmax(x) }"

COSTS = {
    # name: graph, source, target, how many nodes before and after
    "attention": (ATTENTION, 13, 12, 49, 49),
    "attention, far down": (ATTENTION, 13, 9, 49, 49),
    "attention, up": (ATTENTION, 13, 25, 49, 49),
    "YOLO head": (HEAD, 12, 9, 50, 50),
    "YOLO head, one step": (HEAD, 12, 11, 50, 50),
    "YOLO head, up": (HEAD, 12, 25, 50, 50),
    "Softmax of maps": (MAPS, 1, 27, 1, 4),
    "Softmax of maps of known sizes": (FIXED, 1, 27, 1, 3),
    "Softmax of classes": (CLASSES, 1, 27, 1, 1),
    "Softmax along channels": (CHANNELS, 27, 1, 1, 3),
}


@pytest.mark.parametrize("name", COSTS)
def test_how_many_nodes_a_block_becomes(name: str) -> None:
    graph, source, target, before, after = COSTS[name]
    given = model(graph, source)
    result = onnx_convert.convert(given, to=target).model
    assert opset_of(result) == target
    assert (len([*all_nodes(given)]), len([*all_nodes(result)])) == (before, after)


test_rows = each_of(
    [
        rewrites(name, source, target, graph, nodes=after, dims={"N": 2, "T": 5, "C": 3, "H": 4, "W": 5})
        for name, (graph, source, target, _, after) in COSTS.items()
    ]
)
