# SPDX-License-Identifier: Apache-2.0
"""Inputs that say how large, how many, where or in which order: they are made so that the model runs on them."""

from __future__ import annotations

import pytest
from texts import model

import onnx_convert

ROWS = [
    (
        "col2im",
        18,
        """(float[1,12,4] x, int64[2] image, int64[2] block)
        => (float[?,?,?,?] y)
        { y = Col2Im (x, image, block) }""",
    ),
    (
        "col2im sizes open",
        18,
        """(float[N,C,L] x, int64[2] image, int64[2] block)
        => (float[?,?,?,?] y)
        { y = Col2Im (x, image, block) }""",
    ),
    (
        "col2im computed",
        18,
        """(float[1,12,4] x, float[1,3,H,W] img)
        => (float[?,?,?,?] y)
        <int64[2] block={2,2}, int64[1] a={2}, int64[1] b={4}>
        { s = Shape (img) i = Slice (s, a, b) y = Col2Im (x, i, block) }""",
    ),
    ("resize sizes", 13, "(float[1,2,4,4] x, int64[4] sizes) => (float[?,?,?,?] y) { y = Resize (x, , , sizes) }"),
    ("resize scales", 13, "(float[1,2,4,4] x, float[4] scales) => (float[?,?,?,?] y) { y = Resize (x, , scales) }"),
    (
        "resize roi scales",
        13,
        """(float[1,2,4,4] x, float[8] roi, float[4] scales)
        => (float[?,?,?,?] y)
        { y = Resize <coordinate_transformation_mode="tf_crop_and_resize"> (x, roi, scales) }""",
    ),
    (
        "resize both",
        13,
        """(float[1,2,4,4] x, float[S] scales, int64[Z] sizes)
        => (float[?,?,?,?] y)
        { y = Resize (x, , scales, sizes) }""",
    ),
    (
        "resize axes",
        18,
        """(float[1,2,4,4] x, float[2] scales)
        => (float[?,?,?,?] y)
        { y = Resize <axes=[2,3]> (x, , scales) }""",
    ),
    (
        "resize axes sizes",
        18,
        """(float[1,2,4,4] x, int64[2] sizes)
        => (float[?,?,?,?] y)
        { y = Resize <axes=[2,3], keep_aspect_ratio_policy="not_larger"> (x, , , sizes) }""",
    ),
    ("resize open", 13, "(float[N,C,H,W] x, int64[4] sizes) => (float[?,?,?,?] y) { y = Resize (x, , , sizes) }"),
    (
        "resize length open",
        13,
        "(float[N,C,H,W] x, int64[K] sizes) => (float[?,?,?,?] y) { y = Resize (x, , , sizes) }",
    ),
    ("upsample", 9, "(float[N,C,H,W] x, float[4] s) => (float[?,?,?,?] y) { y = Upsample (x, s) }"),
    ("pad", 13, "(float[N,3] x, int64[4] p, float v) => (float[?,?] y) { y = Pad (x, p, v) }"),
    ("pad open", 13, "(float[N,3] x, int64[K] p) => (float[?,?] y) { y = Pad (x, p) }"),
    (
        "pad reflect axes",
        18,
        """(float[N,3] x, int64[2] p, int64[1] a)
        => (float[?,?] y)
        { y = Pad <mode="reflect"> (x, p, , a) }""",
    ),
    ("expand", 13, "(float[N,3] x, int64[2] s) => (float[?,?] y) { y = Expand (x, s) }"),
    ("expand open", 13, "(float[N,3] x, int64[K] s) => (float[?,?] y) { y = Expand (x, s) }"),
    ("tile", 13, "(float[N,3] x, int64[2] s) => (float[?,?] y) { y = Tile (x, s) }"),
    ("tile open", 13, "(float[N,3] x, int64[K] s) => (float[?,?] y) { y = Tile (x, s) }"),
    ("topk", 11, "(float[N,3] x, int64[1] k) => (float[?,?] y, int64[?,?] i) { y,i = TopK (x, k) }"),
    (
        "slice",
        13,
        """(float[N,3] x, int64[2] s, int64[2] e, int64[2] a, int64[2] t)
        => (float[?,?] y)
        { y = Slice (x, s, e, a, t) }""",
    ),
    ("slice open", 13, "(float[N,3] x, int64[K] s, int64[K] e) => (float[?,?] y) { y = Slice (x, s, e) }"),
    ("reshape", 13, "(float[N,3] x, int64[2] s) => (float[?,?] y) { y = Reshape (x, s) }"),
    ("reshape open", 13, "(float[N,3] x, int64[K] s) => (float[?,?] y) { y = Reshape (x, s) }"),
    ("cos", 13, "(int64[K] s) => (float[?,?] y) { y = ConstantOfShape (s) }"),
    ("unsqueeze", 13, "(float[N,3] x, int64[2] a) => (float[?,?,?,?] y) { y = Unsqueeze (x, a) }"),
    ("squeeze", 13, "(float[N,1,3,1] x, int64[2] a) => (float[?,?] y) { y = Squeeze (x, a) }"),
    ("split", 13, "(float[6,3] x, int64[2] a) => (float[?,?] y, float[?,?] z) { y,z = Split (x, a) }"),
    (
        "split axis",
        13,
        """(float[N,6] x, int64[3] a)
        => (float[?,?] y, float[?,?] z, float[?,?] w)
        { y,z,w = Split <axis=1> (x, a) }""",
    ),
    (
        "split uneven",
        13,
        """(float[N,7] x, int64[3] a)
        => (float[?,?] y, float[?,?] z, float[?,?] w)
        { y,z,w = Split <axis=1> (x, a) }""",
    ),
    (
        "centercrop",
        18,
        """(float[N,6,7] x, int64[2] s)
        => (float[?,?,?] y)
        { y = CenterCropPad <axes=[1,2]> (x, s) }""",
    ),
    ("affinegrid", 20, "(float[N,2,3] x, int64[4] s) => (float[?,?,?,?] y) { y = AffineGrid (x, s) }"),
    ("affinegrid 3d", 20, "(float[2,3,4] x, int64[5] s) => (float[?,?,?,?,?] y) { y = AffineGrid (x, s) }"),
    (
        "maxunpool",
        11,
        """(float[1,1,2,2] x, int64[1,1,2,2] i, int64[4] s)
        => (float[?,?,?,?] y)
        { y = MaxUnpool <kernel_shape=[2,2], strides=[2,2]> (x, i, s) }""",
    ),
    ("dft", 20, "(float[1,8,1] x, int64 l, int64 a) => (float[?,?,?] y) { y = DFT (x, l, a) }"),
    (
        "stft",
        17,
        """(float[1,32,1] x, int64 step, float[8] w, int64 l)
        => (float[?,?,?,?] y)
        { y = STFT (x, step, w, l) }""",
    ),
    ("stft2", 17, "(float[1,32,1] x, int64 step, int64 l) => (float[?,?,?,?] y) { y = STFT (x, step, , l) }"),
    ("onehot", 11, "(int64[N] i, int64[1] d, float[2] v) => (float[?,?] y) { y = OneHot (i, d, v) }"),
    ("range", 11, "(int64 a, int64 b, int64 c) => (int64[?] y) { y = Range (a, b, c) }"),
    ("gathernd", 13, "(float[3,4,5] x, int64[N,2] i) => (float[?,?] y) { y = GatherND (x, i) }"),
    (
        "nms",
        11,
        """(float[1,6,4] b, float[1,2,6] s, int64[1] m, float[1] t, float[1] c)
        => (int64[?,3] y)
        { y = NonMaxSuppression (b, s, m, t, c) }""",
    ),
    ("trilu", 14, "(float[N,3] x, int64 k) => (float[?,?] y) { y = Trilu (x, k) }"),
    ("cumsum", 14, "(float[N,3] x, int64 k) => (float[?,?] y) { y = CumSum (x, k) }"),
    ("reduce", 13, "(float[N,3] x, int64[1] k) => (float[?,?] y) { y = ReduceSum (x, k) }"),
    ("reduce open", 13, "(float[N,3] x, int64[K] k) => (float[?,?] y) { y = ReduceSum (x, k) }"),
    ("reduce18", 18, "(float[N,3] x, int64[2] k) => (float[?,?] y) { y = ReduceMax (x, k) }"),
    ("casts shape", 13, "(float[N,3] x, int32[2] s) => (float[?,?] y) { t = Cast <to=7> (s) y = Reshape (x, t) }"),
    (
        "concat shape",
        13,
        """(float[N,4] x, int64[1] s)
        => (float[?,?,?] y)
        <int64[2] c = {-1,2}>
        { t = Concat <axis=0> (s, c) y = Reshape (x, t) }""",
    ),
    (
        "mul shape",
        13,
        """(float[N,C,H,W] x, int64[2] hw)
        => (float[?,?,?,?] y)
        <int64[1] z={0}, int64[1] t={2}>
        { s = Shape (x) nc = Slice (s, z, t) sz = Concat <axis=0> (nc, hw) y = Resize (x, , , sz) }""",
    ),
    (
        "loop",
        13,
        """(int64 n, bool c, float[3] x)
        => (float[3] y)
        { y = Loop (n, c, x)
        <body = b (int64 i, bool ci, float[3] a)
        => (bool co, float[3] o) { co = Identity (ci) o = Add (a, a) }> }""",
    ),
    (
        "melweight",
        17,
        """(int64 a, int64 b, int64 c, float d, float e)
        => (float[?,?] y)
        { y = MelWeightMatrix (a,b,c,d,e) }""",
    ),
    ("hann", 17, "(int64 a) => (float[?] y) { y = HannWindow (a) }"),
    ("bitshift", 11, '(uint8[N] a, uint8[N] b) => (uint8[?] y) { y = BitShift <direction="LEFT"> (a, b) }'),
    ("seqat", 11, "(seq(float[2]) s, int64 i) => (float[2] y) { y = SequenceAt (s, i) }"),
    ("splitseq", 11, "(float[6,3] x, int64[2] a) => (seq(float[?,?]) y) { y = SplitToSequence (x, a) }"),
    (
        "roialign",
        16,
        """(float[1,2,8,8] x, float[3,4] r, int64[3] b)
        => (float[?,?,?,?] y)
        { y = RoiAlign <output_height=2, output_width=2> (x, r, b) }""",
    ),
    (
        "tensorscatter",
        24,
        """(float[2,3,8,4] p, float[2,3,2,4] u, int64[2] w)
        => (float[2,3,8,4] y)
        { y = TensorScatter (p, u, w) }""",
    ),
    ("scatternd", 13, "(float[4,5] x, int64[3,1] i, float[3,5] u) => (float[4,5] y) { y = ScatterND (x, i, u) }"),
    (
        "scatterelements",
        13,
        """(float[4,5] x, int64[2,5] i, float[2,5] u)
        => (float[4,5] y)
        { y = ScatterElements (x, i, u) }""",
    ),
    (
        "hardmax",
        13,
        """(float[4,5] x, float r, bool t)
        => (float[?,?] y, bool[?,?] m)
        { y, m = Dropout (x, r, t) }""",
    ),
    ("conv2 dyn", 13, "(float[N,2,8,8] x, float[M,2,3,3] w) => (float[?,?,?,?] y) { y = Conv (x, w) }"),
    ("gridsample", 16, "(float[N,C,H,W] x, float[N,A,B,2] g) => (float[?,?,?,?] y) { y = GridSample (x, g) }"),
    (
        "affine theta",
        20,
        """(float[N,2,3] t, float[N,C,H,W] x, int64[4] s)
        => (float[?,?,?,?] y)
        { g = AffineGrid (t, s) y = GridSample (x, g) }""",
    ),
]


@pytest.mark.parametrize(("name", "opset", "text"), ROWS, ids=[row[0] for row in ROWS])
def test_inputs_that_hang_together(name: str, opset: int, text: str) -> None:
    source = model(text, opset)
    found = onnx_convert.verify(source, source)
    assert found.verdict == "same", found.reason
    assert "random 0" in [run.inputs for run in found.runs]
