"""A bundle whose lean graph is the plain `torch.onnx.export`: this server without this project's graph, for labels."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, compose, helper, numpy_helper

from app.bundle import CLASSIFY_GRAPH, COMBINED_GRAPH, EXPLAIN_GRAPH, MANIFEST, sha256
from export.combine import combine
from export.onnx_file import externalise
from model.preprocessing import Preprocessing

PLAIN_WEIGHTS = "plain.bin"


def write_plain_bundle(bundle: Path, plain: Path, preprocessing: Preprocessing, out: Path) -> None:
    """Copy the fp32 `bundle` of the same model to `out`, with the graph `plain` for labels."""
    shutil.copytree(bundle, out)
    manifest = json.loads((out / MANIFEST).read_text())
    labels = _of_pixels(onnx.load(plain), preprocessing, features=manifest["features"])
    explain = onnx.load(out / EXPLAIN_GRAPH, load_external_data=False)
    externalise(labels, out / PLAIN_WEIGHTS)
    onnx.save(labels, out / CLASSIFY_GRAPH)
    explain = compose.add_prefix(explain, "explaining_", rename_inputs=False)
    onnx.save(combine(labels, explain), out / COMBINED_GRAPH)
    manifest["files"] |= {file: sha256(out / file) for file in (CLASSIFY_GRAPH, COMBINED_GRAPH, PLAIN_WEIGHTS)}
    (out / MANIFEST).write_text(json.dumps(manifest, indent=2))


def _of_pixels(proto: onnx.ModelProto, preprocessing: Preprocessing, *, features: int) -> onnx.ModelProto:
    """What the server's graphs have: pixels in, uint8 (batch, height, width, 3); logits and embedding out."""
    graph = proto.graph
    (images,), (logits,) = graph.input, graph.output
    mean, std = (np.array(numbers, np.float32) for numbers in (preprocessing.mean, preprocessing.std))
    scale, shift = 1 / (np.float32(255) * std), -mean / std
    graph.initializer.extend([numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(shift, "shift")])
    nodes = [
        helper.make_node("Cast", ["pixels"], ["values"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["values", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "shift"], ["shifted"]),
        helper.make_node("Transpose", ["shifted"], [images.name], perm=[0, 3, 1, 2]),
        *graph.node,
    ]
    head = next(node for node in nodes if logits.name in node.output)
    batch, _, height, width = (size.dim_param or size.dim_value for size in images.type.tensor_type.shape.dim)
    renamed = {"pixels": "images", images.name: "plain_images", logits.name: "logits", head.input[0]: "embedding"}
    for node in nodes:
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, name) for name in names]
    del graph.node[:], graph.input[:], graph.output[:]
    graph.node.extend(nodes)
    graph.input.append(helper.make_tensor_value_info("images", TensorProto.UINT8, [batch, height, width, 3]))
    for name, size in (("logits", logits.type.tensor_type.shape.dim[1].dim_value), ("embedding", features)):
        graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, size]))
    return proto
