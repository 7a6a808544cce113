"""ONNX graphs as files, with the weights of several graphs in one file beside them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto
from onnx.external_data_helper import set_external_data
from onnx.utils import Extractor

INLINE_BYTES = 1024  # smaller tensors stay in the graph, where ONNX Runtime folds them
ALIGNMENT = 4096  # bytes; a page, so that the file can be mapped


def part(proto: onnx.ModelProto, outputs: Sequence[str]) -> onnx.ModelProto:
    """The nodes of a graph that give `outputs`. Tensors outside the graph stay where they are."""
    found: onnx.ModelProto = Extractor(proto).extract_model([value.name for value in proto.graph.input], [*outputs])
    found.graph.name = proto.graph.name
    found.producer_name, found.producer_version = proto.producer_name, proto.producer_version
    strip_provenance(found)
    return found


def strip_provenance(proto: onnx.ModelProto) -> None:
    """Drop the exporter's notes of source files and stack traces: they contain paths and differ between runs."""
    del proto.metadata_props[:]
    proto.doc_string = ""
    del proto.graph.metadata_props[:]
    for node in proto.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in [*proto.graph.input, *proto.graph.output, *proto.graph.value_info, *proto.graph.initializer]:
        del value.metadata_props[:]
        value.doc_string = ""


class SharedWeights:
    """One file of external data; a tensor that is in several graphs is written once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[str, int] = {}
        self._end = 0
        path.write_bytes(b"")

    def externalise(self, proto: onnx.ModelProto) -> None:
        """Move the large initialisers of `proto` into the file."""
        with self._path.open("ab") as file:
            for tensor in proto.graph.initializer:
                data = onnx.numpy_helper.to_array(tensor).tobytes()
                if len(data) < INLINE_BYTES:
                    continue
                key = f"{hashlib.sha256(data).hexdigest()} {TensorProto.DataType.Name(tensor.data_type)}"
                if key not in self._offsets:
                    padding = -self._end % ALIGNMENT
                    file.write(bytes(padding) + data)
                    self._offsets[key] = self._end + padding
                    self._end += padding + len(data)
                tensor.ClearField("raw_data")
                tensor.raw_data = b""
                set_external_data(tensor, self._path.name, offset=self._offsets[key], length=len(data))
                tensor.ClearField("raw_data")
