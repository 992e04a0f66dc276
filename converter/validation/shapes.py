# SPDX-License-Identifier: Apache-2.0
"""Checks ranks and lengths of one node, as far as they are certain without inference: of graph inputs, initializers
and constants. What is not known is taken to be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.model.tensor_validation import MOST_AXES, dims_fault
from onnx_convert.spec import opsets
from onnx_convert.validation import bodies, heads, layouts, lists, pairs, quantised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx_convert.validation.uses import Use


_DOMAINS: Final = (opsets.AI_ONNX, "ai.onnx.preview")


def has_rules(operator: str, domain: str) -> bool:
    """Returns whether anything is checked of the nodes of an operator."""
    return operator in RULES and domain in _DOMAINS


def fault(use: Use) -> str:
    """Returns what is wrong with the ranks and lengths of a node, "" if nothing is known to be."""
    for rule in RULES.get(use.operator, ()):
        if found := rule(use):
            return found
    return ""


def _axis(use: Use) -> str:
    dims, axis = use.dims(0), use.given.get("axis")
    if dims is None or not isinstance(axis, int):
        return ""
    low, high = _AXIS_RANGE.get(use.operator, (0, -1))
    if use.operator in ("QuantizeLinear", "DequantizeLinear") and len(use.dims(1) or ()) == 0:
        return ""  # one scale for all
    rank = len(dims)
    return "" if -rank + low <= axis <= rank + high else f"axis {axis} is none of a tensor of rank {rank}"


_AXIS_RANGE: Final = {"Flatten": (0, 0), "OneHot": (-1, 0), "Softmax": (0, 0), "LogSoftmax": (0, 0), "Hardmax": (0, 0)}
"""How far the axis may go, from minus the rank and from the rank."""


def _axes(index: int) -> Callable[[Use], str]:
    def rule(use: Use) -> str:
        dims, axes = use.dims(0), use.integers("axes", index)
        if axes is None or any(abs(axis) > MOST_AXES for axis in axes):
            return f"axes {[*axes][:8]}: no tensor has so many" if axes is not None else ""
        if dims is None:
            return ""
        rank = len(dims) + (len(axes) if use.operator == "Unsqueeze" else 0)
        if any(not -rank <= axis < rank for axis in axes):
            return f"axes {[*axes][:8]} are none of a tensor of rank {rank}"
        if use.operator in ("Unsqueeze", "Squeeze") and len({axis % rank for axis in axes}) < len(axes):
            return f"axes {[*axes][:8]} are named twice"
        if use.operator == "Squeeze":
            wide = next((axis for axis in axes if (dims[axis] or 1) != 1), None)
            return "" if wide is None else f"axis {wide} has size {dims[wide]}, not 1"
        return ""

    return rule


def _shape_list(index: int) -> Callable[[Use], str]:
    """Checks that no list of sizes is longer than tensors have axes."""

    def rule(use: Use) -> str:
        length = use.length(index)
        return f"input {index} lists {length} axes" if length is not None and length > MOST_AXES else ""

    return rule


def _split(use: Use) -> str:
    dims, axis = use.dims(0), use.given.get("axis", 0)
    parts = use.given.get("num_outputs")
    if isinstance(parts, int) and use.outputs > parts:
        return f"it has {use.outputs} outputs, and num_outputs is {parts}"
    sizes = use.integers("split", 1)
    size = dims[axis] if dims is not None and isinstance(axis, int) and -len(dims) <= axis < len(dims) else None
    if sizes is None:
        given = len(use.inputs) > 1 and use.inputs[1] is not None
        if size is not None and use.opset < 18 and use.opset > 1 and not given and _has_one(use) and size % use.outputs:
            return f"an axis of size {size} cannot be split into {use.outputs} equal parts"
        return ""
    if min(sizes, default=0) < 0:
        return f"split is {[*sizes][:8]}, and has a size below 0"
    if len(sizes) != use.outputs:
        return f"it has {use.outputs} outputs, and split {len(sizes)} sizes"
    if size is not None and sum(sizes) != size:
        return f"split is {[*sizes][:8]}, which adds up to {sum(sizes)}, not to {size}"
    return ""


def _has_one(use: Use) -> bool:
    return len(use.inputs) == 1


def _reshape(use: Use) -> str:
    shape, dims = use.integers("shape", 1), use.dims(0)
    if shape is None:
        return ""
    if min(shape, default=0) < -1:
        return f"shape is {[*shape][:8]}, and has a size below -1"
    if shape.count(-1) > 1:
        return f"shape is {[*shape][:8]}, and -1 twice"
    zeros = bool(use.given.get("allowzero", 0))
    if zeros and 0 in shape and -1 in shape:
        return f"shape is {[*shape][:8]}, with 0 and -1, and allowzero is 1"
    if dims is None:
        return _sizes(shape)
    if not zeros and any(size == 0 and place >= len(dims) for place, size in enumerate(shape)):
        return f"shape is {[*shape][:8]}, with a 0 beyond the {len(dims)} axes of the input"
    wanted = [dims[place] if size == 0 and not zeros else size for place, size in enumerate(shape)]
    known = [size for size in wanted if size is not None and size != -1]
    if None in wanted or None in dims:
        return _sizes(known)
    before, after = _product(dims), _product(known)
    if -1 in wanted:
        return "" if after == 0 or before % after == 0 else f"{before} elements cannot take the shape {[*shape][:8]}"
    return "" if before == after else f"{before} elements cannot take the shape {[*shape][:8]}"


def _product(dims: Sequence[int | None]) -> int:
    product = 1
    for size in dims:
        product *= size if size is not None else 1
    return product


def _sizes(sizes: Sequence[int]) -> str:
    wrong = dims_fault(sizes, 8)
    return f"a tensor of shape {[*sizes][:8]} {wrong}" if wrong else ""


def _made(index: int) -> Callable[[Use], str]:
    """Checks that the sizes of what is made are not negative, and can be."""

    def rule(use: Use) -> str:
        sizes = use.elements(index)
        if sizes is None:
            return ""
        if min(sizes, default=0) < (-1 if use.operator == "Expand" else 0):
            return f"a size is below 0: {[*sizes][:8]}"
        return _sizes(sizes)

    return rule


def _tile(use: Use) -> str:
    dims, repeats = use.dims(0), use.elements(1)
    if use.opset < 6 or dims is None or repeats is None:
        return ""
    if len(repeats) != len(dims):
        return f"repeats has {len(repeats)} entries for a tensor of rank {len(dims)}"
    return _sizes([size * count for size, count in zip(dims, repeats, strict=True) if size is not None])


def _top_k(use: Use) -> str:
    dims, axis = use.dims(0), use.given.get("axis", -1)
    k = use.given.get("k") if isinstance(use.given.get("k"), int) else next(iter(use.elements(1) or ()), None)
    if k is None:
        return ""
    if k < 0:
        return f"k is {k}"
    if dims is None or not isinstance(axis, int) or not -len(dims) <= axis < len(dims):
        return ""
    size = dims[axis]
    return f"k is {k}, and the axis has {size} elements" if size is not None and k > size else ""


def _pad(use: Use) -> str:
    dims = use.dims(0)
    pads = use.integers("pads", 1) if "paddings" not in use.given else tuple(use.given["paddings"])
    if pads is None or dims is None:
        return ""
    axes = use.elements(3)
    if len(use.inputs) > 3 and axes is None:
        return ""  # they may be computed
    count = len(axes) if axes is not None else len(dims)
    if len(pads) != 2 * count:
        return f"pads has {len(pads)} entries for {count} axes"
    for place in range(count):
        axis = axes[place] if axes is not None else place
        size = dims[axis] if -len(dims) <= axis < len(dims) else None
        if size is not None and size + pads[place] + pads[place + count] < 0:
            return f"axis {axis} has size {size}, of which pads takes more"
    return ""


def _slice(use: Use) -> str:
    dims = use.dims(0)
    lists = [use.integers(name, index) for index, name in ((1, "starts"), (2, "ends"), (3, "axes"))]
    lists.append(use.elements(4))
    lengths = {len(one) for one in lists if one is not None}
    lengths.update(count for index in range(1, 5) if (count := use.length(index)) is not None)
    if len(lengths) > 1:
        return "starts, ends, axes and steps are not equally long"
    if lists[3] is not None and 0 in lists[3]:
        return "a step is 0"
    if dims is not None and lists[2] is not None:
        rank = len(dims)
        if any(not -rank <= axis < rank for axis in lists[2]):
            return f"axes {[*lists[2]][:8]} are none of a tensor of rank {rank}"
    return f"{max(lengths)} axes" if lengths and max(lengths) > MOST_AXES else ""


def _transpose(use: Use) -> str:
    dims, perm = use.dims(0), use.given.get("perm")
    if dims is None or not perm or len(perm) == len(dims):
        return ""
    return f"perm has {len(perm)} entries for a tensor of rank {len(dims)}"


def _broadcast(use: Use) -> str:
    """Checks shapes that broadcast: from opset 7 (or 8) on shapes are matched from the last axis; below they are the
    same, or told by attributes."""
    if use.opset < 7 and use.operator in _BY_ATTRIBUTES and use.given.get("broadcast"):
        return _along(use)
    if use.operator == "PRelu" and use.opset < 7:
        return ""
    wanted: list[int | None] = []
    for index in range(len(use.inputs)):
        dims = use.dims(index)
        if dims is None:
            continue
        for place, size in enumerate(reversed(dims)):
            if place == len(wanted):
                wanted.append(size)
            elif wanted[place] in (None, 1):
                wanted[place] = size if size != 1 or wanted[place] is None else 1
            elif size not in (None, 1, wanted[place]):
                return f"sizes {wanted[place]} and {size} do not go together"
    return ""


_BY_ATTRIBUTES: Final = frozenset("Add Sub Mul Div Pow And Or Xor Equal Greater Less".split())


def _along(use: Use) -> str:
    """Checks a B that is repeated, below opset 7: it has the sizes of axes of A next to each other. In the wild an axis
    of -1 says what no axis says."""
    a, b, axis = use.dims(0), use.dims(1), use.given.get("axis", -1)
    if a is None or b is None or axis < -1 or all(size in (1, None) for size in b):
        return ""
    first = len(a) - len(b) if axis == -1 else axis
    block = a[first : first + len(b)] if first >= 0 else ()
    if len(block) == len(b) and not any(
        size != 1 and pairs.differ(size, wide) for size, wide in zip(b, block, strict=True)
    ):
        return ""
    place = "at its end" if axis == -1 else f"at axis {axis}"
    return f"B of shape {pairs.shown(b)} is no block of A's {pairs.shown(a)} {place}"


def _space(use: Use) -> str:
    dims, block = use.dims(0), use.given.get("blocksize", 1)
    if dims is None or len(dims) != 4 or not isinstance(block, int) or block < 1:
        return f"the input has rank {len(dims)}, not 4" if dims is not None and len(dims) != 4 else ""
    sizes = dims[1:2] if use.operator == "DepthToSpace" else dims[2:]
    parts = block * block if use.operator == "DepthToSpace" else block
    wrong = next((size for size in sizes if size is not None and size % parts), None)
    return "" if wrong is None else f"an axis of size {wrong} has no blocks of {parts}"


def _window(use: Use) -> str:
    """Checks that a window lies in the padded input."""
    dims, kernel = use.dims(0), use.given.get("kernel_shape")
    if kernel is not None and not kernel:
        return "kernel_shape is empty"
    if kernel is None and use.operator == "Conv":
        weights = use.dims(1)
        kernel = [*weights[2:]] if weights is not None else None
    if dims is None or not kernel:
        return ""
    if len(kernel) != len(dims) - 2:
        return f"kernel_shape has {len(kernel)} entries for {max(len(dims) - 2, 0)} spatial axes"
    if use.given.get("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID"):
        return ""
    pads = use.given.get("pads") or [0] * (2 * len(kernel))
    if use.given.get("auto_pad") == "VALID":
        pads = [0] * (2 * len(kernel))
    dilations = use.given.get("dilations") or [1] * len(kernel)
    if len(pads) != 2 * len(kernel) or len(dilations) != len(kernel):
        return "kernel_shape, pads and dilations are not for one number of axes"
    for place, width in enumerate(kernel):
        size = dims[place + 2]
        if size is None or not width or not size:
            continue
        room = size + pads[place] + pads[place + len(kernel)]
        if use.given.get("ceil_mode"):
            room += max((use.given.get("strides") or [1] * len(kernel))[place : place + 1], default=1)
        if (width - 1) * dilations[place] + 1 > room:
            return f"a window of {(width - 1) * dilations[place] + 1} does not fit into {room}"
    return ""


def _gather_nd(use: Use) -> str:
    data, indices, batch = use.dims(0), use.dims(1), use.given.get("batch_dims", 0)
    if not isinstance(batch, int):
        return ""
    for dims in (data, indices):
        if dims is not None and batch >= max(len(dims), 1):
            return f"batch_dims is {batch}, and a tensor has rank {len(dims)}"
    if data is None or not indices or indices[-1] is None:
        return ""
    last, rank = indices[-1], len(data) - batch
    return "" if last <= rank else f"indices of {last} numbers for {rank} axes"


def _rank(index: int, *ranks: int) -> Callable[[Use], str]:
    def rule(use: Use) -> str:
        dims = use.dims(index)
        if dims is None or len(dims) in ranks:
            return ""
        return f"input {index} has rank {len(dims)}, not {' or '.join(map(str, ranks))}"

    return rule


def _depth(use: Use) -> str:
    values, depth = use.dims(2), use.elements(1)
    if values is not None and tuple(values) not in ((2,), (None,)):
        return "the values are not two, off and on"
    return f"depth is {depth[0]}" if depth and depth[0] < 0 else ""


def _rules() -> dict[str, tuple[Callable[[Use], str], ...]]:
    rules: dict[str, list[Callable[[Use], str]]] = {}

    def add(operators: str, *more: Callable[[Use], str]) -> None:
        for operator in operators.split():
            rules.setdefault(operator, []).extend(more)

    add("Softmax LogSoftmax Hardmax ArgMax ArgMin Gather GatherElements Scatter ScatterElements TopK Unique", _axis)
    add("LayerNormalization RMSNormalization LpNormalization Split SplitToSequence Concat Compress OneHot", _axis)
    add("Flatten QuantizeLinear DequantizeLinear", _axis)
    reductions = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
    add(f"{reductions} ReduceSumSquare Squeeze Unsqueeze", _axes(1), _shape_list(1))
    add("MeanVarianceNormalization", _axes(9))
    add("CenterCropPad Resize", _axes(9))
    add("Split", _split)
    add("Reshape", _reshape, _shape_list(1))
    add("Expand Tile", _shape_list(1))
    add("ConstantOfShape", _shape_list(0), _made(0))
    add("Expand", _made(1))
    add("RandomNormal RandomUniform", _made(9))
    add("Tile", _tile)
    add("TopK", _top_k)
    add("Pad", _pad)
    add("Slice", _slice, *map(_shape_list, (1, 2, 3, 4)))
    add("Transpose", _transpose)
    add("Add Sub Mul Div Pow And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual Mod BitShift", _broadcast)
    add("BitwiseAnd BitwiseOr BitwiseXor Where Sum Max Min Mean PRelu", _broadcast)
    add("DepthToSpace SpaceToDepth", _space)
    add("MaxPool AveragePool LpPool Conv", _window)
    add("GatherND", _gather_nd)
    add("EyeLike", _rank(0, 2))
    add("OneHot", _depth)
    for listed in (lists, pairs, layouts, heads, quantised, bodies):
        for operators, more in listed.BY_OPERATOR:
            add(operators, *more)
    return {operator: tuple(found) for operator, found in rules.items()}


RULES: Final = _rules()
