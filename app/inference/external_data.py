"""Puts the weights of several ONNX graphs into one file, each of them once.

ONNX keeps a large weight in a file beside the graph, at a `location`, `offset` and `length` (onnx.proto,
`TensorProto.external_data`). ONNX Runtime adds entries `prepacked_...`: the same weight in the order that a kernel
reads it, as `KEY|OFFSET;LENGTH;CHECKSUM|...` in the same file (`ExternalDataInfo`,
onnxruntime/core/framework/tensor_external_data_info.cc). Nothing else of a graph is known here; protobuf keeps it.
"""

import hashlib
import mmap
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELDS: dict[
    str, list[tuple[str, int, str | None]]
] = {  # of each message the name, number and type of those that are read
    "Entry": [("key", 1, None), ("value", 2, None)],
    "Tensor": [("external_data", 13, "Entry")],
    "Graph": [("initializer", 5, "Tensor")],
    "Model": [("graph", 7, "Graph")],
}


class Pool:
    """A file of blobs. Equal ones are written once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offsets: dict[bytes, int] = {}  # by SHA-256

    def add(self, blob: memoryview) -> int:
        """Where the blob stands: a multiple of what can be mapped."""
        digest = hashlib.sha256(blob).digest()
        if digest not in self._offsets:
            self._file.write(bytes(-self._file.tell() % mmap.ALLOCATIONGRANULARITY))
            self._offsets[digest] = self._file.tell()
            self._file.write(blob)
        return self._offsets[digest]


def merge(source: Path, to: Path, *, graphs: Iterable[str], weights: str) -> None:
    """Write the `graphs` of the folder `source` into the folder `to`, with all that lies in files beside them in one
    file named `weights`.
    """
    with (to / weights).open("xb") as file:
        pool = Pool(file)
        for name in graphs:
            model = _model_class()()
            model.ParseFromString((source / name).read_bytes())
            for tensor in model.graph.initializer:
                if tensor.external_data:
                    entries = {entry.key: entry for entry in tensor.external_data}
                    _move(entries, source, pool)
                    entries["location"].value = weights
            (to / name).write_bytes(model.SerializeToString())


def _move(entries: dict[str, Any], source: Path, pool: Pool) -> None:
    """Add the blobs of one tensor to the pool, and say where they stand there."""
    with (source / entries["location"].value).open("rb") as file:
        blobs = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def moved(offset: str, length: str) -> str:
        return str(pool.add(blobs[int(offset) : int(offset) + int(length)]))

    entries["offset"].value = moved(entries["offset"].value, entries["length"].value)
    for key, entry in entries.items():
        if key.startswith("prepacked"):
            name, *places = entry.value.split("|")
            triples = [place.split(";") for place in places]
            entry.value = "|".join([name, *(";".join([moved(at, n), n, checksum]) for at, n, checksum in triples)])


@cache
def _model_class() -> type[Any]:
    """The messages of ONNX as far as FIELDS says them."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="external_data.proto", package="external_data")
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        for name, number, of in fields:
            repeated = of is not None and message != "Model"
            described.field.add(
                name=name,
                number=number,
                label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL,
                type=field.TYPE_MESSAGE if of else field.TYPE_STRING,
                type_name=f".external_data.{of}" if of else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: type[Any] = message_factory.GetMessageClass(pool.FindMessageTypeByName("external_data.Model"))
    return found
