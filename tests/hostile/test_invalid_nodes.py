# SPDX-License-Identifier: Apache-2.0
"""Nodes that are not valid, though onnx's own check finds no fault with most of them: each ends in one line that names
it, up and down; and odd ones that are valid, and come through."""

from __future__ import annotations

import re

import onnx
import pytest
from onnx import ModelProto, TensorProto

import onnx_convert
from onnx_convert import InvalidModelError

SOFTMAX = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"
ROWS = [
    ("(float[2,4,3,16] q, float[2,4,6,16] k) => (float[A,B,C,D] y) { y = Attention<q_num_heads=3>(q, k, k) }", 23,
     "q_num_heads is 3, and there are 4 heads"),
    ("(float[2,3,12] q, float[2,6,12] k) => (float[A,B,C] y) { y = Attention(q, k, k) }", 23, "q_num_heads is missing"),
    (("(float[2,3,12] q, float[2,6,12] k, float[2,4,5,3] p) => (float[A,B,C] y)"
      " { y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, k, , p, p) }"), 23, "inputs 1 and 4 do not go together"),
    (("(float[2,3,12] q, float[2,6,12] k, float[2,3,5,4] p, float[3,20] m) => (float[A,B,C] y)"
      " { y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, k, m, p, p) }"), 23, "for 11 keys"),
    (("(float[2,3,12] q, float[2,6,12] k, float[2,3,5,4] p, float[2,3,6,4] r) => (float[A,B,C] y)"
      " { y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, k, , p, r) }"), 23, "5 keys and 6 values of the past"),
    (("(float[2,4,3,16] q, float[2,4,6,16] k, float[2,4,5,16] p) => (float[A,B,C,D] y)"
      " { y = Attention(q, k, k, , p) }"), 23, "keys of the past alone"),
    (("(float[2,3,4,8] q, float[2,3,8,8] k, int64[3] n) => (float[2,3,4,8] y)"
      " { y = Attention<left_window_size=1000000000000>(q, k, k, , , , n) }"), 25, "for a batch of"),
    ("(float[2,4,3,16] x, float[2,3,8] c) => (float[A,B,C,D] y) { y = RotaryEmbedding<interleaved=7>(x, c, c) }", 23,
     "interleaved is 7"),
    (("(float[2,4,3,16] x, float[2,3,10] c) => (float[A,B,C,D] y)"
      " { y = RotaryEmbedding<rotary_embedding_dim=20>(x, c, c) }"), 23, "20 elements of heads of 16"),
    ("(float[2,4,3,15] x, float[2,3,7] c) => (float[A,B,C,D] y) { y = RotaryEmbedding(x, c, c) }", 23, "in pairs"),
    (("(float[2,3,16] x, float[10,4] c, int64[2,3] p) => (float[A,B,C] y)"
      " { y = RotaryEmbedding<num_heads=99>(x, c, c, p) }"), 23, "not those of 99 heads"),
    ("(float[2,4,3,16] x, float[7,8] c) => (float[A,B,C,D] y) { y = RotaryEmbedding(x, c, c, NO) }", 23,
     "without positions"),
    ("(float[2,6] x) => (float[A,B] a) <int64[1,2] s = {3,3}> { a, b = Split<axis=1>(x, s) }", 13, "rank 2, not 1"),
    ("(float[2,6] x) => (float[A,B] a) <int64[1,1] s = {1}> { a = Unsqueeze(x, s) }", 13, "rank 2, not 1"),
    ("(int32[2,3] x, int32 a, int32[7] b) => (int32[2,3] y) { y = Clip(x, a, b) }", 12, "input 2 is not a single"),
    (("(float[2,16,2] x, float[9] w) => (float[A,B,C,D] y) <int64 s = {3}, int64 n = {4}>"
      " { y = STFT<onesided=0>(x, s, w, n) }"), 17, "a window of 9 for frames of 4"),
    ("(float[3] x) => (float[3] y) { y = ThresholdedRelu(x, NO) }", 22, "2 inputs where opset 22 takes"),
    ("(float[3,4] x, int64[5] k) => (float[3,4] y) { y = Trilu(x, k) }", 14, "input 1 is not a single number"),
    ("(float[1,2,4,6] x) => (float[A,B,C,D] y) <float[0] r = {}> { y = Resize(x, r, x) }", 11, "input 2 has rank 4"),
    ("(float[2,6] x, float s, uint8 z) => (uint8[2,6] y) { y = QuantizeLinear<block_size=3>(x, s, z) }", 23,
     "there are blocks of a tensor of rank 2"),
    ("(float[2,12,4] x) => (float[A,B,C,D] y) <int64[2] i = {5,0}, int64[2] b = {2,2}> { y = Col2Im(x, i, b) }", 18,
     "a size is below 1"),
    ("(float[2,12,5] x) => (float[A,B,C,D] y) <int64[2] i = {5,5}, int64[2] b = {2,2}> { y = Col2Im(x, i, b) }", 18,
     "5 columns for 16 places"),
    ("(float[2,3,4,5] a, float[7] b) => (float[2,3,4,5] y) { y = Sub<broadcast=1, axis=0>(a, b) }", 6,
     "is no block of A's"),
    ("(float[2,3,4] x) => (float[A] y) { y = ReduceLogSum<axes=[0,1], keepdims=-1>(x) }", 17, "keepdims is -1"),
    (('(int64[6] x) => (float[A] y) { y = TfIdfVectorizer<mode="TF", min_gram_length=1, max_gram_length=2,'
      " max_skip_count=0, ngram_counts=[0,9], ngram_indexes=[0,1,2,3], pool_int64s=[2,3,5,4]>(x) }"), 9, "places"),
    (('(int64[6] x) => (float[A] y) { y = TfIdfVectorizer<mode="TF", min_gram_length=1, max_gram_length=2,'
      " max_skip_count=0, ngram_counts=[0,4], ngram_indexes=[0,1], pool_int64s=[2,3,5,4,5,6]>(x) }"), 9,
     "ngram_indexes has 2 entries for 5 grams"),
    (("(float[1,1,4,4] x, float[1,1,2,2] w, float[1,6,3,3] o) => (float[A,B,C,D] y) { y = DeformConv(x, w, o) }"), 19,
     r"offset has the shape \[1, 6, 3, 3\], not \[1, 8, 3, 3\]"),
    (("(float[1,1,4,4] x, float[1,1,2,2] w, float[1,8,3,3] o, float[1,3,3,3] m) => (float[A,B,C,D] y)"
      " { y = DeformConv(x, w, o, NO, m) }"), 19, r"mask has the shape \[1, 3, 3, 3\], not \[1, 4, 3, 3\]"),
    (("(float[1,1,4,4] x, float[1,1,2,2] w, float[1,8,3,3] o, float[1,4,3,2] m) => (float[A,B,C,D] y)"
      " { y = DeformConv(x, w, o, NO, m) }"), 19, r"mask has the shape \[1, 4, 3, 2\], not \[1, 4, 3, 3\]"),
    (("(float[1,1,4,4] x, float[1,1,2,2] w, float[1,8,3,3] o, float[2] b) => (float[A,B,C,D] y)"
      " { y = DeformConv(x, w, o, b) }"), 19, r"B has the shape \[2\], not \[1\]"),
    (("(float[1,3,4,4] x, float[1,3,2,2] w, float[1,16,3,3] o) => (float[A,B,C,D] y)"
      " { y = DeformConv<offset_group=2>(x, w, o) }"), 19, "3 channels cannot be divided into 2 groups of offsets"),
    ("(float[4,3] x, int64[2] l) => (float[4,3] y) { y = ReverseSequence(x, l) }", 10,
     r"sequence_lens has the shape \[2\], not \[3\]"),
    ("(float[4,3] x, int64[3] l) => (float[4,3] y) { y = ReverseSequence<batch_axis=0>(x, l) }", 10,
     "batch_axis is 0 and time_axis is 0"),
    (("(float[1,2,5,5] x, float[3,4] r, int64[2] i) => (float[A,B,C,D] y)"
      " { y = RoiAlign(x, r, i) }"), 16, r"batch_indices has the shape \[2\], not \[3\]"),
    ("(float[1,2,5,5] x, float[3,5] r, int64[3] i) => (float[A,B,C,D] y) { y = RoiAlign(x, r, i) }", 16,
     r"rois has the shape \[3, 5\], not \[\?, 4\]"),
    ("(float[1,2,5,5] x, float[3,4] r) => (float[A,B,C,D] y) { y = MaxRoiPool<pooled_shape=[1,1]>(x, r) }", 22,
     r"rois has the shape \[3, 4\], not \[\?, 5\]"),
    (("(float[1,5,4] b, float[1,2,6] s, int64 m) => (int64[A,3] y)"
      " { y = NonMaxSuppression(b, s, m) }"), 11, r"boxes has the shape \[1, 5, 4\], not \[1, 6, 4\]"),
    ("(float[9,5] x, int64[3] s, int64[2] e) => (float[A,B] y) { y = Slice(x, s, e, e, e) }", 13, "not equally long"),
    ("(float[2,3,4] a, float[1,3,4] b) => (float[A,B,C] y) { y = Concat<axis=1>(a, b) }", 12, "differ in axis 0"),
    ("(float[2,4,3,16] q, float[2,4,6,16] k, bool m) => (float[A,B,C,D] y) { y = Attention(q, k, k, m) }", 23,
     "a mask of rank 0"),
    (("(float[2,3,4,8] q, float[2,3,8,8] k, int64[2] n) => (float[2,3,4,8] y)"
      " { y = Attention(q, k, k, , k, k, n) }"), 25, "beside keys and values of the past"),
    (("(int8[2,4] a, float[1] s, int8[1] z, int8[4,3] b, int8[1,9] w) => (int8[2,3] y)"
      " { y = QLinearMatMul(a, s, z, b, s, z, s, w) }"), 21, "inputs 6 and 7 differ in shape"),
    (("(int8[2,4] a, float[3] s, int8[3] z, int8[4,3] b, float t, int8 w) => (int8[2,3] y)"
      " { y = QLinearMatMul(a, s, z, b, t, w, t, w) }"), 21, "input 1 has 3 elements for 2"),
    (("(uint8[1,1,5,5] x, uint8[2,1,3,3] w, float[2] s, uint8[2] z, float t, uint8 v) => (uint8[A,B,C,D] y)"
      " { y = QLinearConv(x, t, z, w, s, z, t, v) }"), 11, "input 2 is not a single number"),
    ("(uint8[2,4] a, uint8[4,3] b, uint8[2] z) => (int32[2,3] y) { y = MatMulInteger(a, b, , z) }", 11,
     "input 3 has 2 elements for 3"),
    (("(float h, float[5] x) => (float l, float[5] y) { l, y = Scan<num_scan_inputs=1, scan_input_directions=[0,1],"
      " body = b (float s, float e) => (float t, float v) { t = Add(s, e) v = Identity(t) }>(h, x) }"), 10,
     "scan_input_directions has 2 entries, not 1"),
    (("(float h, float[5] x) => (float l, float[5] y) { l, y = Scan<num_scan_inputs=1, scan_input_directions=[-1],"
      " body = b (float s, float e) => (float t, float v) { t = Add(s, e) v = Identity(t) }>(h, x) }"), 10,
     "neither 0 nor 1"),
    ("(float[1,2,7] x) => (float[A,B,C] y) { y = MaxPool<kernel_shape: ints = []>(x) }", 10, "kernel_shape is empty"),
    ("(float[1,1,3,4] x, float[1,2,3,3] w) => (float[A,B,C,D] y) { y = ConvTranspose<output_shape=[1]>(x, w) }", 22,
     "output_shape has 1 entries for 2 axes"),
    (('(float[1,1,2,2] x, int64[2] s) => (float[A,B,C,D] y) { y = Resize<axes=[2,3], keep_aspect_ratio_policy="">'
      "(x, , , s) }"), 19, "keep_aspect_ratio_policy is empty"),
    ("(float[2,6,2] x) => (float[A,B,C] y) { y = DFT<onesided=1>(x) }", 18, "the signal is complex"),
    ("(float[6] x) => (float[2] a) { a, b, c, d = Split<num_outputs=3>(x) }", 18, "4 outputs"),
    ("(float[6] x) => (float[2] a) <int64[3] s={1,1,1}> { a, b, c = Split(x, s) }", 13, "adds up to 3"),
    ("(float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization<axis=2147483648>(x, s) }", 17,
     "no tensor has so many axes"),
    ("(float[2,2] x, int64[2,2] i) => (float[2] y) { y = GatherND<batch_dims=-2147483648>(x, i) }", 12,
     "at least 0"),
    ("(int64[2147483648] s) => (float[A,B] y) { y = ConstantOfShape(s) }", 9, "lists 2147483648 axes"),
    ("(int64[4] x) => (int64[N] y) { y = Unique<axis=7>(x) }", 11, "axis 7 is none"),
    ("(float[2,3] x) => (float[6] y) <int64[2] s={-1,-1}> { y = Reshape(x, s) }", 13, "-1 twice"),
    ("(float[2,3] x) => (float[2,9] y) <int64[1] k={-2}> { y, i = TopK(x, k) }", 13, "k is -2"),
    ("(float[2] x, float[3] z) => (float[2] y) { y = Sum(x, z) }", 6, "do not go together"),
    ("(float[2] x) => (float[2] y) { y = Cast<to=99>(x) }", 13, "no dtype"),
    ("(float[2,3] x) => (float[2,3] y) { y = Softmax<axis=1.5>(x) }", 13, "of type FLOAT where"),
    ('(float[4,4] x) => (float[A,B] y) <int64[4] p={0,0,0,1}> { y = Pad<mode="x">(x, p) }', 13, "none of"),
    ("(float[4,2,3] x, float[1,5,3] w, float[1,4,4] r) => (float[A,B] y) { y = RNN<hidden_size=4>(x, w, r) }", 14,
     r"W has the shape \[1, 5, 3\], not \[1, 4, 3\]"),
    (("(float[4,2,3] x, float[1,16,3] w, float[1,16,4] r, float[1,16] b) => (float[A,B,C,D] y)"
     " { y = LSTM<hidden_size=4>(x, w, r, b) }"), 14, r"B has the shape \[1, 16\], not \[1, 32\]"),
    ("(float[1,1,4,4] x, float[1,2,2,3] g) => (float[A,B] y) { y = GridSample(x, g) }", 16, "grid has the shape"),
    ("(float[5,4] x, int64[3] s) => (float[A,B] y) { y = CenterCropPad(x, s) }", 18, "3 sizes for 2 axes"),
    ("(float[1,64,1] x) => (float[A,B,C,D] y) <int64 s = {0}, int64 l = {16}> { y = STFT(x, s, , l) }", 17,
     "frame_step is 0"),
    ("(float[1,2,4,6] x) => (float[A,B] y) <float[0] r = {}> { y = Resize(x, r, r) }", 11, "neither scales nor"),
    (("(float[2,6,5] x, float[6] s, float[6,6] b) => (float[A,B,C] y)"
     " { y = GroupNormalization<num_groups=2>(x, s, b) }"), 21, "bias has the shape"),
    ("(int8[2,3,2] x, float[3] s, int8[4] z) => (float[2,3,2] y) { y = DequantizeLinear<axis=1>(x, s, z) }", 13,
     "differ in shape"),
    ('(float[4] a, float[3] b) => (float y) { y = Einsum<equation="i,i->">(a, b) }', 12, "sizes 4 and 3"),
    ('(float[4,3] a) => (float[3] y) { y = Einsum<equation="../x">(a) }', 12, "is not letters"),
    ('(float[4] a) => (float[3] y) { y = Einsum<equation="i->j">(a) }', 12, "has 'j', which no input has"),
    ("(float[2,3] a, float[4,5] b) => (float[2,5] y) { y = Gemm(a, b) }", 13, "of 3 columns and of 4 rows"),
    ("(float[4,5] x) => (float[A] y) <int64 s = {1}, int64[1] e = {3}> { y = Slice(x, s, e) }", 13, "rank 0, not"),
    (("(float[2,4,3,16] q, float[2,4,6,16] k, float[3,1,3,6] m) => (float[A,B,C,D] y)"
     " { y = Attention(q, k, k, m) }"), 23, "a mask of shape"),
    ("(float[2,4,3,16] q, float[2,4,6,16] k) => (float[A,B,C,D] y) { y, p = Attention(q, k, k) }", 23,
     "none for the values"),
    (("(float[2,4,24] q, float[2,6,7] k) => (float[A,B,C] y)"
     " { y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, k) }"), 23, "not those of 3 heads"),
    ('(float[2] x) => (int32[2] y) { y = Cast<to="NOTSET">(x) }', 5, "no dtype"),
    ("(float[2,3] x) => (float[2,3] y) <int64[0] i = {}> { y = ReduceSum<noop_with_empty_axes=7>(x, i) }", 13,
     "too large"),
    ("(float[1,1,4,4] x) => (float[A,B,C,D] y) { y = MaxPool<kernel_shape=[2,9]>(x) }", 12, "does not fit"),
]  # fmt: skip


def text(graph: str, opset: int) -> ModelProto:
    """Returns a model; a comma at the end of a list is none for the parser, so NO stands for an empty name."""
    graph = re.sub(r"\bNO\b", '""', graph)
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {graph}')


def assert_not_valid(source: ModelProto, target: int, says: str) -> None:
    """Checks that a model is found invalid, in one line that says why."""
    with pytest.raises(InvalidModelError, match=says) as caught:
        onnx_convert.convert(source, to=target)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("graph", "opset", "says"), ROWS)
def test_not_valid(graph: str, opset: int, says: str) -> None:
    for target in (opset - 1, opset + 1):
        assert_not_valid(text(graph, opset), target, says)


@pytest.mark.parametrize(
    ("graph", "opset", "target", "says"),
    [
        (('(float[2,4] x, float[5,5] z) => (float y) { a = Relu(x) y = Einsum<equation="ij,jk->">(a, z) }'), 12, 11,
         "j stands for"),
        ("(float[2,3] x) => (int32[2,3] z) { i = Cast<to=6>(x) a = Relu(i) z = Neg(a) }", 13, 12, "does not take"),
        ("(float[2,3,4] x, int64[2] l) => (float y) { a = Relu(x) y = NegativeLogLikelihoodLoss(a, l) }", 13, 11,
         "labels have the shape"),
        (("(bool c, float[2,3] x) => (float[A,B] y) { y = If(c) <"
          "then_branch = t () => (float[A,B] a) { r = Relu(x) s = Constant<value_ints=[9]>() q = Abs(r)"
          " a, i = TopK(q, s) }, else_branch = e () => (float[A,B] b) { b = Relu(x) }> }"), 12, 10, "k is 9"),
    ],
)  # fmt: skip
def test_what_inference_knows_of_a_node_that_is_rewritten(graph: str, opset: int, target: int, says: str) -> None:
    assert_not_valid(text(graph, opset), target, says)


@pytest.mark.parametrize(
    ("graph", "opset", "target"),
    [
        ("(float[6,2] x) => (seq(float[2]) y) { y = SplitToSequence<keepdims=0>(x, NO) }", 17, 11),
        ("(float[6,2] x) => (float[A,B] y) { s = SplitToSequence<keepdims=0>(x, NO) y = Softmax<axis=0>(x) }", 13,
         12),
        ("(float[2,4,3,16] x, float[2,3,8] c) => (float[A,B,C,D] y) { y = RotaryEmbedding(x, c, c, NO) }", 23, 22),
        ("(float[3] x, float l) => (float[3] y) { y = Clip(x, l, NO) }", 11, 10),
        ("(float[3,4] x) => (float[A,B] y) <int64[1] s = {0}, int64[1] e = {2}> { y = Slice(x, s, e, , NO) }", 10, 9),
        (("(float[1,2,3] x, float[2] s) => (float[1,2,3] y) { y, NO = BatchNormalization(x, s, s, s, s) }"), 13,
         15),
        ("(float[0,5,2] x, int64[0,2] l) => (float y) { y = SoftmaxCrossEntropyLoss(x, l) }", 13, 9),
        ("(float[2,3,4] x) => (float[A,B,C] y) { y = ReduceSum<axes=[1,1]>(x) }", 11, 13),
        ("(float[2,3] x) => (float[A,B,C] y) <int64 a = {-1}> { y = Unsqueeze(x, a) }", 13, 12),
        ("(float[2,3] x) => (float[A,B] y) <int64 a = {-1}> { y = ReduceMax(x, a) }", 18, 17),
        ("(float[2,3] x) => (float[A,B] y) <int64 a = {-1}> { y = ReduceMax(x, a) }", 18, 20),
    ],
)  # fmt: skip
def test_odd_and_valid(graph: str, opset: int, target: int) -> None:
    """A part that is left out at the end means what an end before it means, a number that is axes a list of one."""
    onnx_convert.convert(text(graph, opset), to=target)


def test_elements_in_the_field_of_another_dtype() -> None:
    source = text(SOFTMAX, 13)
    source.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[0], int64_data=[1])
    assert_not_valid(source, 9, "in another field")


def test_a_function_without_a_name() -> None:
    source = text(SOFTMAX, 13)
    source.functions.add(domain="f")
    assert_not_valid(source, 9, "a function has no name")


@pytest.mark.parametrize(
    ("dtype", "field", "entries", "dims", "says"),
    [
        (TensorProto.INT4, "int32_data", 6, 6, "it has 6 entries in int32_data where its dimensions demand 3$"),
        (TensorProto.UINT2, "int32_data", 6, 6, "it has 6 entries in int32_data where its dimensions demand 2$"),
        (TensorProto.COMPLEX64, "float_data", 3, 3, "it has 3 entries in float_data where its dimensions demand 6$"),
        (TensorProto.INT4, "int32_data", 2, 1, "it has 2 elements where its dimensions demand 1$"),
        (TensorProto.FLOAT, "float_data", 3, 2, "it has 3 elements where its dimensions demand 2$"),
    ],
)
def test_as_many_entries_as_dimensions_demand(dtype: int, field: str, entries: int, dims: int, says: str) -> None:
    """Entries that hold several elements, or half of one, are not counted as elements."""
    source = text(SOFTMAX, 21)
    getattr(source.graph.initializer.add(name="w", data_type=dtype, dims=[dims]), field).extend([1] * entries)
    assert_not_valid(source, 20, says)


def test_sizes_that_are_computed() -> None:
    """What onnx's inference does not see in the source it sees in the result, where sizes are written down."""
    source = text(
        "(float[3,1000,2,2] x, float[4] s) => (float[A,B,C,D] y) <int64[1] k = {2}, int64[1] e = {-1}> {"
        " n = Shape<start=0, end=1>(x) c = Shape<start=1, end=2>(x) d = Div(c, k) p = Concat<axis=0>(n, k, d, e)"
        " r = Reshape(x, p) u = Shape(x) q = Reshape(r, u) z = Mul(q, s) y = Relu(z) }",
        15,
    )
    assert_not_valid(source, 9, "own check")


@pytest.mark.parametrize("target", [7, 10, 16])
def test_wrong_sizes_of_branches_are_left_out(target: int) -> None:
    source = text(
        "(bool c, float[1,64,1] x) => (float[A,B,C,D] y) <int64 s = {8}, int64 l = {16}> { y = If(c) <"
        " then_branch = t () => (float[1,9,9,2] a) { a = STFT(x, s, , l) },"
        " else_branch = e () => (float[1,9,9,2] b) { b = STFT(x, s, , l) }> }",
        17,
    )
    assert any("left out" in warning for warning in onnx_convert.convert(source, to=target).report.warnings)


def test_an_operator_whose_inference_dies_without_a_type() -> None:
    """Below IR version 4 onnx does not look at the types of initializers."""
    source = text("() => (int64[] y) <int64 x = {2}> { y = Relu(x) }", 13)
    source.ir_version = 3
    source.graph.node[0].op_type, source.graph.node[0].domain = "LabelEncoder", "ai.onnx.ml"
    source.opset_import.add(domain="ai.onnx.ml", version=1)
    assert_not_valid(source, 6, "own check")
