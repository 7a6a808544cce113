"""A bundle whose lean graph is the plain `torch.onnx.export`: this server without this project's graph, for labels."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, compose, helper, numpy_helper

from app.bundle import CLASSIFY_GRAPH, COMBINED_GRAPH, EXPLAIN_GRAPH, MANIFEST, sha256
from export.onnx_file import externalise
from model.preprocessing import Preprocessing

PLAIN_WEIGHTS = "plain.bin"


def write_plain_bundle(bundle: Path, plain: Path, preprocessing: Preprocessing, out: Path) -> None:
    """Copy the fp32 `bundle` of the same model to `out`, with the graph `plain` for labels.

    The server checks the known answer of the bundle on it, as on every graph.
    """
    shutil.copytree(bundle, out)
    manifest = json.loads((out / MANIFEST).read_text())
    labels = _of_pixels(onnx.load(plain), preprocessing, features=manifest["features"])
    explain = onnx.load(out / EXPLAIN_GRAPH, load_external_data=False)
    externalise(labels, out / PLAIN_WEIGHTS)
    onnx.save(labels, out / CLASSIFY_GRAPH)
    onnx.save(_combined(labels, explain), out / COMBINED_GRAPH)
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


def _combined(labels: onnx.ModelProto, explain: onnx.ModelProto) -> onnx.ModelProto:
    """As export/combine.py makes it, but with all of the explaining graph in the branch: the trunk is the plain one."""
    inside = compose.add_prefix(explain, "explaining_", rename_inputs=False).graph
    plain = {output.name for output in labels.graph.output}
    classes, maps = "explaining_classes", [o.name for o in explain.graph.output if o.name not in (*plain, "classes")]
    nodes = [
        *inside.node,
        *(helper.make_node("Flatten", [f"explaining_{name}"], [f"{name}_flat"]) for name in maps),
        helper.make_node("Concat", [f"{name}_flat" for name in maps], ["joined"], axis=1),
    ]
    nothing = {"no_classes": TensorProto.INT64, "no_maps": TensorProto.FLOAT}
    zeros = [
        helper.make_node("Constant", [], [name], value=helper.make_tensor(name, kind, [1, 1], [0]))
        for name, kind in nothing.items()
    ]
    found = onnx.ModelProto()
    found.CopyFrom(labels)
    found.graph.node.append(
        helper.make_node(
            "If",
            ["explain"],
            ["classes", "maps"],
            then_branch=helper.make_graph(nodes, "explaining", [], _pair(classes, "joined")),
            else_branch=helper.make_graph(zeros, "lean", [], _pair(*nothing)),
        )
    )
    found.graph.initializer.extend(inside.initializer)
    found.graph.input.append(helper.make_tensor_value_info("explain", TensorProto.BOOL, []))
    found.graph.output.extend(_pair("classes", "maps"))
    versions = {opset.domain: opset.version for opset in (*labels.opset_import, *explain.opset_import)}
    del found.opset_import[:]
    found.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in versions.items())
    return found


def _pair(classes: str, maps: str) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(classes, TensorProto.INT64, ["rows", "classes"]),
        helper.make_tensor_value_info(maps, TensorProto.FLOAT, ["rows", "values"]),
    ]
