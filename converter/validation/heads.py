# SPDX-License-Identifier: Apache-2.0
"""Checks the inputs of attention and of rotary embeddings: heads, side by side in one axis or in one of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.validation.pairs import differ, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx_convert.validation.uses import Use

    Rule = Callable[[Use], str]
    Dims = Sequence[int | None]

_NAMES: Final = ("Q", "K", "V")
_HEADS: Final = ("q_num_heads", "kv_num_heads", "kv_num_heads")


def attention(use: Use) -> str:
    """Returns what is wrong with queries, keys and values, their past, and the mask."""
    given = [use.dims(index) for index in range(3)]
    for name, dims in zip(_NAMES, given, strict=True):
        if dims is not None and len(dims) not in (3, 4):
            return f"{name} has rank {len(dims)}, not 3 or 4"
    known = [dims for dims in given if dims is not None]
    if len({len(dims) for dims in known}) > 1:
        return f"Q, K and V do not go together: {', '.join(map(shown, known))}"
    heads = [use.given.get(name) or None for name in _HEADS]
    for dims, name, count in zip(given, _HEADS, heads, strict=True):
        if dims is None:
            continue
        if len(dims) == 4 and differ(dims[1], count):
            return f"{name} is {count}, and there are {dims[1]} heads"
        if len(dims) == 3 and count is None:
            return f"{name} is missing, and the inputs have rank 3"
        if len(dims) == 3 and dims[2] is not None and dims[2] % (count or 1):
            return f"{dims[2]} elements are not those of {count} heads"
    laid = [_laid_out(dims, count) for dims, count in zip(given, heads, strict=True)]
    return _together(*laid) or _past(use, *laid[1:]) or _mask(use, laid[0], laid[1]) or _outputs(use)


def _laid_out(dims: Dims | None, heads: int | None) -> Dims:
    """Returns batch, heads, length and size of a head, as far as they are known."""
    if dims is None:
        return (None, heads, None, None)
    if len(dims) == 4:
        return dims
    return dims[0], heads, dims[1], dims[2] // heads if dims[2] is not None and heads else None


def _together(q: Dims, k: Dims, v: Dims) -> str:
    if differ(q[0], k[0]) or differ(k[0], v[0]) or differ(q[0], v[0]):
        return f"Q, K and V do not go together: {', '.join(map(shown, (q, k, v)))}"
    if differ(k[2], v[2]):
        return f"{k[2]} keys and {v[2]} values"
    if differ(q[3], k[3]):
        return f"queries of {q[3]} and keys of {k[3]} elements"
    if differ(k[1], v[1]) or (q[1] and k[1] and q[1] % k[1]):
        return f"{q[1]}, {k[1]} and {v[1]} heads do not go together"
    return ""


def _past(use: Use, k: Dims, v: Dims) -> str:
    """Returns what is wrong with the keys and values of the past."""
    there = [index for index in (4, 5) if index < len(use.inputs) and use.inputs[index] is not None]
    if len(there) == 1:
        return f"it has the {'keys' if there == [4] else 'values'} of the past alone"
    lengths = []
    counts = use.dims(6)
    if len(use.inputs) > 6 and use.inputs[6] is not None and (there or use.outputs in (2, 3)):
        return "it has nonpad_kv_seqlen beside keys and values of the past or the present"
    if counts is not None and (len(counts) != 1 or differ(counts[0], k[0])):
        return f"nonpad_kv_seqlen has the shape {shown(counts)}, for a batch of {shown(k[:1])}"
    for index, present in zip(there, (k, v), strict=False):
        dims = use.dims(index)
        if dims is None:
            continue
        if len(dims) != 4:
            return f"input {index} has rank {len(dims)}, not 4"
        if any(differ(dims[axis], present[axis]) for axis in (0, 1, 3)):
            return f"inputs {index - 3} and {index} do not go together: {shown(present)} and {shown(dims)}"
        lengths.append(dims[2])
    return f"{lengths[0]} keys and {lengths[1]} values of the past" if len(lengths) == 2 and differ(*lengths) else ""


def _mask(use: Use, q: Dims, k: Dims) -> str:
    """Returns what is wrong with the shape of a mask: it goes onto [batch, heads, queries, keys], of which only the
    last may be shorter."""
    mask = use.dims(3)
    if mask is None:
        return ""
    if len(mask) not in range(1, 5):
        return f"a mask of rank {len(mask)}"
    for place, wanted in zip(range(2, len(mask) + 1), (q[2], q[1], q[0]), strict=False):
        if mask[-place] != 1 and differ(mask[-place], wanted):
            return f"a mask of shape {shown(mask)} for queries of shape {shown(q)}"
    past = use.dims(4)
    before = 0 if len(use.inputs) <= 4 or use.inputs[4] is None else past[2] if past is not None else None
    if mask and mask[-1] is not None and k[2] is not None and before is not None and mask[-1] > before + k[2]:
        return f"a mask of shape {shown(mask)} for {before + k[2]} keys"
    return ""


def _outputs(use: Use) -> str:
    return "it has an output for the keys of the present, and none for the values" if use.outputs == 2 else ""


def rotary(use: Use) -> str:
    """Returns what is wrong with the caches of RotaryEmbedding, one for cosines and one for sines, alike: of a row for
    each position, or for each element if no positions are given; half as wide as what is rotated, or wider: the text of
    onnx 1.18, which brought the operator, took the first columns of a cache for the whole head."""
    x, has_positions = use.dims(0), len(use.inputs) > 3
    if x is not None and len(x) not in (3, 4):
        return f"X has rank {len(x)}, not 3 or 4"
    heads = use.given.get("num_heads") or None
    if x is not None and len(x) == 3 and x[2] is not None and (heads is None or x[2] % heads):
        return f"{x[2]} elements are not those of {heads} heads" if heads else "num_heads is missing, and X has rank 3"
    size = _laid_out(x, heads)[3]
    width = use.given.get("rotary_embedding_dim") or size
    if width is not None and (width % 2 or (size is not None and width > size)):
        return f"{width} elements of heads of {size} cannot be rotated in pairs"
    rank = 2 if has_positions else 3
    for index in (1, 2):
        cache = use.dims(index)
        if cache is not None and len(cache) != rank:
            return f"input {index} has rank {len(cache)}, {'with' if has_positions else 'without'} positions"
    cosines, sines = use.dims(1), use.dims(2)
    if cosines is not None and sines is not None and any(map(differ, cosines, sines)):
        return f"inputs 1 and 2 differ in shape: {shown(cosines)} and {shown(sines)}"
    if width and cosines is not None and cosines[-1] is not None and cosines[-1] < width // 2:
        return f"input 1 is {cosines[-1]} wide, for {width} elements to rotate"
    return _positions(use, x, has_positions=has_positions)


def _positions(use: Use, x: Dims | None, *, has_positions: bool) -> str:
    """Returns what is wrong with the positions, or with caches if no positions choose among their rows."""
    if x is None:
        return ""
    wanted = (x[0], x[-2])
    for index, what in ((3, "position_ids"),) if has_positions else ((1, "input 1"), (2, "input 2")):
        dims = use.dims(index)
        if dims is None:
            continue
        if len(dims) != (2 if has_positions else 3) or any(map(differ, dims[:2], wanted)):
            return f"{what} has the shape {shown(dims)}, not {shown(wanted if has_positions else (*wanted, None))}"
    return ""


BY_OPERATOR: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (
    ("Attention FlexAttention", (attention,)),
    ("RotaryEmbedding", (rotary,)),
)
"""Rules by operators."""
