# SPDX-License-Identifier: Apache-2.0
"""Says which words and numbers attributes may hold, as the texts of the operators list them."""

from __future__ import annotations

from typing import Final

_PADS = "NOTSET SAME_UPPER SAME_LOWER VALID"
_POST = "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"
_SCALES = "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn"
_MODES = "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF"
_KERNELS = "LINEAR POLY RBF SIGMOID"

_LISTED: Final = f"""
AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv: auto_pad: {_PADS}
BitShift: direction: LEFT RIGHT
Cast CastLike: round_mode: up down nearest
CausalConvWithState: activation: none silu swish
DepthToSpace SpaceToDepth: mode: DCR CRD
GRU LSTM RNN: direction: forward foward reverse bidirectional
Gelu: approximate: none tanh
GridSample: mode: bilinear nearest bicubic linear cubic
GridSample: padding_mode: zeros border reflection
ImageDecoder: pixel_format: RGB BGR Grayscale
LinearAttention: update_rule: linear gated delta gated_delta
NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss: reduction: none mean sum
Pad: mode: constant reflect edge wrap
Resize: coordinate_transformation_mode: {_SCALES} tf_crop_and_resize
Resize: keep_aspect_ratio_policy: stretch not_larger not_smaller
Resize: nearest_mode: round_prefer_floor round_prefer_ceil floor ceil simple
Resize Upsample: mode: nearest linear bilinear cubic
RoiAlign: coordinate_transformation_mode: half_pixel output_half_pixel
RoiAlign: mode: avg max
ScatterElements ScatterND: reduction: none add mul max min
StringNormalizer: case_change_action: LOWER UPPER NONE
TensorScatter: mode: linear circular
TfIdfVectorizer: mode: TF IDF TFIDF
CastMap: cast_to: TO_FLOAT TO_STRING TO_INT64
CastMap: map_form: DENSE SPARSE
LinearClassifier LinearRegressor SVMClassifier SVMRegressor: post_transform: {_POST}
TreeEnsembleClassifier TreeEnsembleRegressor: post_transform: {_POST}
SVMClassifier SVMRegressor: kernel_type: {_KERNELS}
Normalizer: norm: MAX L1 L2
TreeEnsembleRegressor: aggregate_function: AVERAGE SUM MIN MAX
TreeEnsembleClassifier TreeEnsembleRegressor: nodes_modes: {_MODES}
"""

WORDS: Final[dict[tuple[str, str], frozenset[bytes]]] = {
    (operator, attribute.strip()): frozenset(word.encode() for word in words.split())
    for line in _LISTED.strip().splitlines()
    for operators, attribute, words in [line.split(":")]
    for operator in operators.split()
}
"""The words that a string, or each of a list of strings, may be, by operator and attribute; "" is taken for a default
that is written out."""

DTYPES: Final = frozenset("to dtype output_datatype stash_type".split())
"""Attributes that are the number of a dtype, whatever the operator."""

DTYPES_OR_NONE: Final = frozenset("output_dtype precision softmax_precision".split())
"""Those of which 0 says that none is asked for."""

AT_LEAST: Final[dict[str, int]] = (
    dict.fromkeys("kernel_shape strides dilations group blocksize num_outputs hidden_size sample_size".split(), 1)
    | dict.fromkeys(
        "q_num_heads kv_num_heads offset_group num_groups n_targets num_scan_inputs pooled_shape".split(), 1
    )
    | dict.fromkeys("min_gram_length max_gram_length chunk_size output_height output_width".split(), 1)
    | dict.fromkeys(
        "max_skip_count block_size rotary_embedding_dim num_heads batch_dims batch_axis time_axis".split(), 0
    )
    | dict.fromkeys("tree_roots nodes_featureids nodes_treeids nodes_nodeids class_ids target_ids".split(), 0)
    | dict.fromkeys("leaf_targetids nodes_truenodeids nodes_falsenodeids inputdimensions ngram_counts".split(), 0)
    | dict.fromkeys(
        "ngram_indexes qk_matmul_output_mode noop_with_empty_axes allowzero keepdims interleaved".split(), 0
    )
    | dict.fromkeys("left_window_size right_window_size".split(), -1)
)
"""The least that an integer, or each of a list, may be, by the name of the attribute, whatever the operator."""

AXES: Final = frozenset("axis axes perm batch_dims batch_axis time_axis scan_input_axes scan_output_axes".split())
"""Attributes that count axes."""

MOST_AXES: Final = 1000
"""More axes than any tensor has; beyond it onnx's own code loops, or dies."""

MOST: Final[dict[str, int]] = dict.fromkeys(
    "kernel_shape strides dilations pads paddings output_padding group blocksize num_outputs hidden_size size"
    " sample_size"
    " q_num_heads kv_num_heads offset_group num_groups pooled_shape output_height output_width max_gram_length".split(),
    2**31 - 1,
) | {"qk_matmul_output_mode": 3, "noop_with_empty_axes": 1, "allowzero": 1, "keepdims": 1, "interleaved": 1}
"""The most that an integer, or each of a list, may be: what runtimes hold in 32 bits."""

EQUALLY_LONG: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "TreeEnsembleClassifier": (
        tuple(
            "nodes_treeids nodes_nodeids nodes_featureids nodes_values nodes_modes nodes_truenodeids nodes_falsenodeids"
            " nodes_hitrates nodes_missing_value_tracks_true nodes_values_as_tensor nodes_hitrates_as_tensor".split()
        ),
        tuple("class_treeids class_nodeids class_ids class_weights class_weights_as_tensor".split()),
    ),
    "TreeEnsembleRegressor": (
        tuple(
            "nodes_treeids nodes_nodeids nodes_featureids nodes_values nodes_modes nodes_truenodeids nodes_falsenodeids"
            " nodes_hitrates nodes_missing_value_tracks_true nodes_values_as_tensor nodes_hitrates_as_tensor".split()
        ),
        tuple("target_treeids target_nodeids target_ids target_weights target_weights_as_tensor".split()),
    ),
    "TreeEnsemble": (
        tuple(
            "nodes_featureids nodes_splits nodes_modes nodes_truenodeids nodes_trueleafs nodes_falsenodeids"
            " nodes_falseleafs nodes_hitrates nodes_missing_value_tracks_true".split()
        ),
        tuple("leaf_targetids leaf_weights".split()),
    ),
    "LabelEncoder": (
        (
            *("keys_strings", "keys_int64s", "keys_floats", "keys_tensor"),
            *("values_strings", "values_int64s", "values_floats", "values_tensor"),
        ),
    ),
    "CategoryMapper": (tuple("cats_int64s cats_strings".split()),),
    "Scan": (
        tuple("scan_input_axes scan_input_directions".split()),
        tuple("scan_output_axes scan_output_directions".split()),
    ),
}
"""Lists that have one length, group by group, by operator; lists that are left out or empty do not count."""
