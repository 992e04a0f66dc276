# SPDX-License-Identifier: Apache-2.0
"""Makes hostile models out of those of the tables of rows: each is told by a kind, a seed and a number alone."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from conformance import corpus as published_cases
from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto, TensorProto

from boundaries import tables
from hostile import sweep
from onnx_convert.model.wire import BYTES, Memory, WireError, records, varint

NUMBERS = (0, 1, -1, 2, -2, 7, 99, -99, 2**31 - 1, 2**31, -(2**31), 2**32, 10**12, 2**62, 2**63 - 1, -(2**63))
DIMS = (0, 1, -1, -5, 3, 1000, 10**7, 2**31, 2**40, 2**62, 2**63 - 1)
SMALL = 20_000  # bytes of a model
TEXTS = ("", "x", "\0", "../x", "NOTSET", "a" * 3000, "no such thing")


@lru_cache(maxsize=1)
def corpus() -> tuple[tuple[str, bytes, tuple[bytes, ...]], ...]:
    """The small models of the rows of all tables, by name, and tensors that may be fed to them."""
    found = []
    for row in tables.rows():
        if row.source <= onnx.defs.onnx_opset_version():
            feeds = []
            for value in row.model.graph.input:
                given = row.feeds.get(value.name)
                array = None if given is None else _array(given, value.type.tensor_type.elem_type)
                feeds.append(b"" if array is None else onnx.numpy_helper.from_array(array).SerializeToString())
            found.append((str(row), row.model.SerializeToString(), tuple(feeds)))
    return tuple(found)


@lru_cache(maxsize=1)
def published() -> tuple[tuple[str, bytes, tuple[bytes, ...]], ...]:
    """The small models of the cases that the installed onnx publishes, with their first inputs."""
    cases = published_cases.collect(wheels=False)
    return tuple((case.id, case.model, case.data[0][0]) for case in cases if len(case.model) < SMALL and case.data)


def _array(given: Any, dtype: int) -> np.ndarray | None:
    try:
        return np.asarray(given, dtype=onnx.helper.tensor_dtype_to_np_dtype(dtype))
    except Exception:  # a sequence, or what numpy does not hold
        return None


def prepare(kinds: Collection[str]) -> None:
    """Reads what these kinds mutate, once for all processes."""
    if "published" in kinds:
        published()
    if set(kinds) - {"published", "sweep"}:
        corpus()


def hostile(kind: str, seed: int, number: int) -> tuple[str, bytes, int]:
    """Returns the name of the model that was mutated, what became of it, and the opset to convert it to."""
    luck = random.Random(f"{kind}/{seed}/{number}")
    if kind == "sweep":
        name, model = sweep.model(number, luck)
        opset, mutated = _opset(model), model.SerializeToString()
    else:
        name, data, feeds = luck.choice(published() if kind == "published" else corpus())
        opset = _opset(ModelProto.FromString(data))
        mutated = MUTATIONS[kind](data, feeds, luck)
    target = luck.choice([max(opset - luck.randint(1, 14), 6), min(opset + luck.randint(1, 5), 26), 9])
    return name, mutated, target


def _opset(model: ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if not entry.domain), default=21)


def _bytes(data: bytes, _: tuple[bytes, ...], luck: random.Random) -> bytes:
    """A few bytes changed, taken out, or put in."""
    made = bytearray(data)
    for _ in range(luck.choice((1, 1, 2, 4, 16))):
        place = luck.randrange(len(made))
        way = luck.random()
        if way < 0.6:
            made[place] = luck.choice((0, 1, 127, 128, 255, luck.randrange(256)))
        elif way < 0.8:
            del made[place : place + luck.randint(1, 8)]
        else:
            made[place:place] = luck.randbytes(luck.randint(1, 8))
        if not made:
            return b""
    return bytes(made)


def _wire(data: bytes, _: tuple[bytes, ...], luck: random.Random) -> bytes:
    """A field of some message dropped, doubled, moved, given another tag or length; the lengths around it are right."""
    return _rewired(data, luck, luck.randint(0, 5))


def _rewired(data: bytes, luck: random.Random, depth: int) -> bytes:
    try:
        fields = [data[start:end] for _, start, _, end in records(Memory(data), 0, len(data))]
        heads = [(tag, value - start) for tag, start, value, _ in records(Memory(data), 0, len(data))]
    except WireError:
        return data
    if not fields:
        return luck.choice((b"", b"\x08\x01", b"\x0a\x00" * luck.randint(1, 50)))
    nested = [i for i, (tag, head) in enumerate(heads) if tag & 7 == BYTES and len(fields[i]) > head + 1]
    place = luck.choice(nested) if depth and nested else luck.randrange(len(fields))
    tag, head = heads[place]
    if depth and nested:
        inner = _rewired(fields[place][head:], luck, depth - 1)
        fields[place] = varint(tag) + varint(len(inner)) + inner
        return b"".join(fields)
    way = luck.randrange(7)
    if way == 0:
        del fields[place]
    elif way == 1:
        fields.insert(luck.randrange(len(fields) + 1), fields[place])
    elif way == 2:
        luck.shuffle(fields)
    elif way == 3:
        fields[place] = varint(luck.randint(1, 40) << 3 | tag & 7) + fields[place][len(varint(tag)) :]
    elif way == 4:
        fields[place] = varint(tag & ~7 | luck.choice((0, 1, 2, 5, 3, 4))) + fields[place][len(varint(tag)) :]
    elif way == 5:
        fields[place] = varint(tag) + varint(luck.choice((0, 1, 5, 2**31, 2**63))) + fields[place][head:]
    else:
        fields[place:place] = [fields[place]] * luck.choice((2, 50))
    return b"".join(fields)


def _fields(data: bytes, _: tuple[bytes, ...], luck: random.Random) -> bytes:
    """One to three fields of the message set to something else."""
    model = ModelProto.FromString(data)
    for _ in range(luck.choice((1, 1, 1, 2, 3))):
        _mutate(model, luck)
    return _serialised(model)


def _serialised(model: ModelProto) -> bytes:
    # texts that are no UTF-8 cannot be set on a message: a mark stands for them
    return model.SerializeToString().replace(b"qqUTFqq", b"qq\xff\xfeqqq"[:7])


def _messages(message: object, found: list) -> list:
    found.append(message)
    for field, value in message.ListFields():  # type: ignore[attr-defined]
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if _repeated(field) else (value,):
                _messages(inner, found)
    return found


def _repeated(field: FieldDescriptor) -> bool:
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED


def _mutate(model: ModelProto, luck: random.Random) -> None:
    message = luck.choice(_messages(model, []))
    present = [field for field, _ in message.ListFields()]
    field = luck.choice(present if present and luck.random() < 0.8 else list(message.DESCRIPTOR.fields))
    way = luck.random()
    if way < 0.15:
        message.ClearField(field.name)
    elif _repeated(field):
        _mutate_list(getattr(message, field.name), field, luck)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _value(field, luck))


def _mutate_list(held, field: FieldDescriptor, luck: random.Random) -> None:
    way = luck.randrange(4)
    if not held or way == 0:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            held.add()
        else:
            held.extend([_value(field, luck)] * luck.choice((1, 1, 3, 300)))
        return
    place = luck.randrange(len(held))
    if way == 1:
        del held[place]
    elif way == 2 or field.type == FieldDescriptor.TYPE_MESSAGE:
        held.extend([held[place]] * luck.choice((1, 1, 5)))
    else:
        held[place] = _value(field, luck)


def _value(field: FieldDescriptor, luck: random.Random):
    if field.type == FieldDescriptor.TYPE_STRING:
        return luck.choice((*TEXTS, "qqUTFqq"))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return luck.choice(TEXTS).encode()
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return luck.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return luck.choice([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_UINT64:
        return abs(luck.choice(NUMBERS))
    number = luck.choice(DIMS if field.name in ("dim_value", "dims") else NUMBERS)
    return max(min(number, 2**31 - 1), -(2**31)) if field.type == FieldDescriptor.TYPE_INT32 else number


def _nodes(data: bytes, feeds: tuple[bytes, ...], luck: random.Random) -> bytes:
    """The one node made invalid: its attributes, its inputs, their types and, as constants, their elements."""
    model = ModelProto.FromString(data)
    graph, node = model.graph, luck.choice(list(model.graph.node))
    for _ in range(luck.choice((1, 1, 2, 3))):
        way = luck.randrange(8)
        if way in (0, 1) and node.attribute:
            attribute = luck.choice(list(node.attribute))
            _mutate_attribute(attribute, luck)
        elif way == 2 and node.input:
            node.input[luck.randrange(len(node.input))] = luck.choice(["", *node.input])
        elif way == 3:
            names, count = luck.choice((node.input, node.output)), luck.choice((1, 1, 3))
            if luck.random() < 0.5 and names:
                del names[-count:]
            else:
                names.extend([f"more{luck.random()}" if names is node.output else luck.choice([*names, ""])] * 1)
        elif way == 4 and graph.input:
            _mutate_type(luck.choice(list(graph.input)), luck)
        elif way in (5, 6):
            _feed(graph, feeds, luck)
        elif way == 7:
            _add_attribute(node, luck)
    return model.SerializeToString()


def _mutate_attribute(attribute, luck: random.Random) -> None:
    if attribute.ints:
        way = luck.randrange(3)
        if way == 0:
            attribute.ints[luck.randrange(len(attribute.ints))] = luck.choice(NUMBERS)
        elif way == 1:
            del attribute.ints[-1]
        else:
            attribute.ints.append(luck.choice(NUMBERS))
    elif attribute.type == attribute.INT:
        attribute.i = luck.choice(NUMBERS)
    elif attribute.type == attribute.STRING:
        attribute.s = luck.choice(TEXTS).encode()
    elif luck.random() < 0.5:
        attribute.type = luck.choice((1, 2, 3, 4, 6, 7, 8))
    else:
        attribute.ClearField("type")


def _add_attribute(node, luck: random.Random) -> None:
    versions = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == node.op_type]
    formals = [formal for schema in versions for formal in schema.attributes.values()]
    if not formals:
        return
    formal = luck.choice(formals)
    value = {"INT": luck.choice(NUMBERS), "INTS": [luck.choice(NUMBERS) for _ in range(luck.randint(1, 4))]}
    kind = formal.type.name
    if kind in value and all(a.name != formal.name for a in node.attribute):
        node.attribute.append(onnx.helper.make_attribute(formal.name, value[kind]))


def _mutate_type(value, luck: random.Random) -> None:
    way, dims = luck.randrange(4), value.type.tensor_type.shape.dim
    if way == 0:
        value.ClearField("type")
    elif way == 1 and dims:
        luck.choice(list(dims)).dim_value = luck.choice(DIMS)
    elif way == 2:
        dims.add().dim_value = luck.choice(DIMS)
    else:
        value.type.tensor_type.elem_type = luck.randint(0, 30)


def _feed(graph, feeds: tuple[bytes, ...], luck: random.Random) -> None:
    """Makes an input a constant, mostly with elements that are not those that it is tested with."""
    index = luck.randrange(max(min(len(feeds), len(graph.input)), 1))
    if index >= len(feeds) or index >= len(graph.input) or len(feeds[index]) > 4000:
        return
    try:
        tensor = TensorProto.FromString(feeds[index])
        array = onnx.numpy_helper.to_array(tensor).copy()
    except Exception:  # a sequence, or an optional
        return
    if array.dtype.kind in "iu" and array.size and luck.random() < 0.8:
        limit = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        flat = array.reshape(-1)
        try:
            flat[luck.randrange(flat.size)] = limit.type(luck.choice(NUMBERS))
        except OverflowError:
            return
        array = flat.reshape(array.shape)
    name = graph.input[index].name
    del graph.input[index]
    graph.initializer.append(onnx.numpy_helper.from_array(array, name))


def _published(data: bytes, feeds: tuple[bytes, ...], luck: random.Random) -> bytes:
    """A published case with fields, or its node, mutated."""
    return (_fields if luck.random() < 0.5 else _nodes)(data, feeds, luck)


def _truncated(data: bytes, _: tuple[bytes, ...], luck: random.Random) -> bytes:
    return data[: luck.randrange(len(data))]


MUTATIONS = {
    "truncation": _truncated,
    "bytes": _bytes,
    "wire": _wire,
    "fields": _fields,
    "published": _published,
    "nodes": _nodes,
}
KINDS = (*MUTATIONS, "sweep")
