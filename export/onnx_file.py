"""ONNX graphs as files, with their weights in a file beside them."""

import copy
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx.external_data_helper import set_external_data, write_external_data_tensors
from onnx.utils import Extractor

INLINE_BYTES = 1024  # smaller tensors stay in the graph, where ONNX Runtime folds them
ALIGNMENT = 4096  # bytes; a page, so that the file can be mapped


def part(proto: onnx.ModelProto, outputs: Sequence[str], *, inputs: Sequence[str] = ("images",)) -> onnx.ModelProto:
    """The nodes of a graph that give `outputs` from `inputs`. Tensors outside the graph stay where they are."""
    found: onnx.ModelProto = Extractor(proto).extract_model([*inputs], [*outputs])
    found.graph.name = proto.graph.name
    found.producer_name, found.producer_version = proto.producer_name, proto.producer_version
    strip_provenance(found)
    return found


def strip_provenance(proto: onnx.ModelProto) -> None:
    """Drop the exporter's notes of source files and stack traces: they contain paths and differ between runs."""
    graph = proto.graph
    values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    del graph.metadata_props[:]
    for message in (proto, *graph.node, *values):
        del message.metadata_props[:]
        message.doc_string = ""


def externalise(proto: onnx.ModelProto, file: Path) -> None:
    """Move the large initialisers of `proto` to `file`, which is emptied."""
    file.write_bytes(b"")  # onnx makes files that only their owner may read
    end = 0
    for tensor in proto.graph.initializer:
        if len(tensor.raw_data) >= INLINE_BYTES:
            start = end + -end % ALIGNMENT
            set_external_data(tensor, file.name, offset=start)
            end = start + len(tensor.raw_data)
    write_external_data_tensors(proto, str(file.parent))


def cast_apart(proto: onnx.ModelProto) -> None:
    """Give each `Cast` a name of its own for the integers that it reads, at their place in the file.

    OpenVINO would compute the layer that has these integers in float32 if both read the same tensor.
    """
    integers = {tensor.name: tensor for tensor in proto.graph.initializer if tensor.data_type == onnx.TensorProto.INT8}
    for node in proto.graph.node:
        if node.op_type == "Cast" and node.input[0] in integers:
            apart = copy.deepcopy(integers[node.input[0]])
            apart.name = node.input[0] = f"{apart.name}_cast"
            proto.graph.initializer.append(apart)
