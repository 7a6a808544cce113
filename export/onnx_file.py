"""Torch module to ONNX file, with the weights of several graphs in one file beside them."""

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path

import onnx
import torch
from onnx import TensorProto
from onnx.external_data_helper import set_external_data
from onnx.utils import Extractor

from export.graphs import ClassifyGraph

OPSET = 20  # the first with Gelu as one operator
MAX_BATCH = 4096  # bound of the symbolic dimension
EXAMPLE_BATCH = 2  # with 1 the exporter would fix the dimension
INLINE_BYTES = 1024  # smaller tensors stay in the graph, where ONNX Runtime folds them
ALIGNMENT = 4096  # bytes; a page, so that the file can be mapped


def trace(graph: ClassifyGraph) -> onnx.ModelProto:
    """Export to ONNX with one symbolic dimension, the batch. Raises ValueError if the exporter fixed it."""
    height, width = graph.config.image_size
    example = torch.zeros(EXAMPLE_BATCH, height, width, 3, dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        program = torch.onnx.export(
            graph.eval(),
            (example,),
            input_names=["images"],
            output_names=list(graph.outputs),
            opset_version=OPSET,
            dynamo=True,
            dynamic_shapes={"images": {0: torch.export.Dim("batch", min=1, max=MAX_BATCH)}},
            external_data=False,
            verbose=False,
        )
    if program is None:
        raise ValueError("torch.onnx.export returned nothing")
    proto = program.model_proto
    batch = proto.graph.input[0].type.tensor_type.shape.dim[0]
    if not batch.dim_param:
        raise ValueError("the exporter fixed the batch dimension")
    strip_provenance(proto)
    return proto


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
