"""ONNX graphs as files, with their weights in a file beside them."""

from collections.abc import Sequence
from pathlib import Path

import onnx
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


def externalise(proto: onnx.ModelProto, file: Path) -> None:
    """Give the large initialisers of `proto` their places in `file`, which is emptied; `onnx.save` moves them there."""
    file.write_bytes(b"")  # onnx makes files that only their owner may read
    end = 0
    for tensor in proto.graph.initializer:
        if len(tensor.raw_data) >= INLINE_BYTES:
            start = end + -end % ALIGNMENT
            set_external_data(tensor, file.name, offset=start)
            end = start + len(tensor.raw_data)
