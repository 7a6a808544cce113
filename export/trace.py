"""Torch module to ONNX, in well under half of the processor time that `torch.onnx.export` takes by itself.

It captures the module, decomposes every operator, makes casts between types explicit, translates, and optimises. Three
of these steps do next to nothing for our graphs and take most of the time. Decomposition and casts trace all of it
again, but what the graphs consist of has a translation, except for casts, which are replaced here, and most graphs have
no operands of two types. The optimiser tries 46 rules on every node, and three of them ever match.
"""

import warnings
from collections.abc import Sequence

import onnx
import onnx_ir
import torch
from onnx_ir.passes import Sequential
from onnx_ir.passes import common as passes
from onnxscript.optimizer import fold_constants_ir
from onnxscript.rewriter import rewrite
from onnxscript.rewriter.rules import common as rules
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from export.fuse import fuse
from export.graphs import ExplainGraph
from export.onnx_file import strip_provenance
from model.progress import working
from model.text import TextTower

OPSET = 20  # the first with Gelu as one operator
BATCH = "batch"  # name of the symbolic dimension, which torch.export gives a number
MAX_BATCH = 4096  # its bound
EXAMPLE_BATCH = 2  # with 1 the exporter would fix the dimension
RULES = [  # those of the optimiser that match something
    rules.materialize_reshape_shape_rule,
    rules.reshape_reshape_rule,
    rules.squeeze_reshape_1d_rule,
]

aten = torch.ops.aten


def trace(graph: ExplainGraph, *, images: int | None = None) -> onnx.ModelProto:
    """Export to ONNX with one symbolic dimension, the batch. Raises ValueError if the exporter fixed it.

    For a fixed number of `images` it takes half of the time.
    """
    example = graph.example(images or EXAMPLE_BATCH)
    batch = torch.export.Dim.STATIC if images else torch.export.Dim(BATCH, min=1, max=MAX_BATCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        with working("tracing"):
            shapes = {name: {0: batch} for name in example}
            with torch._dynamo.config.patch(fake_tensor_cache_enabled=False):  # to keep each operation costs a fifth
                captured = torch.export.export(graph.eval(), (), example, dynamic_shapes=shapes, strict=False)
        with working("translating to ONNX"):
            program = _translated(_as_it_is(captured), [*example], [*graph.outputs, *graph.arrays])
    with working("optimising"):
        _optimise(program.model)
        if graph.dtype == torch.float16:
            fuse(program.model)
        proto = program.model_proto
    symbol = proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    if not images and not symbol:
        raise ValueError("the exporter fixed the batch dimension")
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for side in value.type.tensor_type.shape.dim:
            if side.dim_param:  # 5*s15 becomes 5*batch
                side.dim_param = side.dim_param.replace(symbol, BATCH)
    for node in proto.graph.node:
        if node.op_type == "Shape" and node.input[0] in (
            "asked",
            "directions",
        ):  # for the batch; the lean graph has the images alone
            node.input[0] = "images"
    strip_provenance(proto)
    return proto


def trace_texts(tower: TextTower) -> onnx.ModelProto:
    """Export a text tower to ONNX, for any number of texts, and of tokens unless the last one is what it reads."""
    config = tower.config
    example = {"input_ids": torch.full((EXAMPLE_BATCH, config.length), config.end)}
    sides = {0: torch.export.Dim("texts", min=1, max=MAX_BATCH)}
    if config.pool != "last":
        sides[1] = torch.export.Dim("tokens", min=2, max=config.length)
    with warnings.catch_warnings(), working("translating the text tower"):
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        captured = torch.export.export(tower, (), example, dynamic_shapes={"input_ids": sides}, strict=False)
        program = _translated(captured, [*example], ["vectors"])
        _optimise(program.model)
    proto = program.model_proto
    strip_provenance(proto)
    return proto


def _translated(captured: ExportedProgram, inputs: Sequence[str], outputs: Sequence[str]) -> torch.onnx.ONNXProgram:
    program = torch.onnx.export(
        captured,
        input_names=inputs,
        output_names=outputs,
        opset_version=OPSET,
        dynamo=True,
        external_data=False,
        optimize=False,
        verbose=False,
    )
    if program is None:
        raise ValueError("torch.onnx.export returned nothing")
    return program


def _as_it_is(captured: ExportedProgram) -> ExportedProgram:
    """The same program, for the exporter to translate as it is: without checks, casts to the same type and slices of
    the whole, and with an operator for other casts that it can translate.
    """
    graph = captured.graph
    for node in graph.find_nodes(op="call_function", target=aten.to.dtype):
        source, dtype, *_ = node.args
        if source.meta["val"].dtype == dtype:
            _replace(captured, node, source)
            continue
        with graph.inserting_before(node):
            cast = graph.call_function(aten._to_copy.default, (source,), {"dtype": dtype})
        cast.meta = dict(node.meta)
        _replace(captured, node, cast)
    for node in graph.find_nodes(op="call_function", target=aten.slice.Tensor):
        source = node.args[0]
        if source.meta["val"].shape == node.meta["val"].shape:
            _replace(captured, node, source)
    for node in graph.find_nodes(op="call_function", target=aten._assert_tensor_metadata.default):
        graph.erase_node(node)
    captured.graph_module.recompile()
    captured.run_decompositions = lambda table: captured
    if not any(map(_has_two_types, graph.nodes)):
        captured.graph_module.modules = lambda: iter(())  # those in which it looks for operands to cast
    return captured


def _has_two_types(node: Node) -> bool:
    """Of its operands, as sums of a stream in float32 and a branch in half precision, and 8-bit weights times a scale.
    Those in int64 are places, and those in bool are conditions.
    """
    values = [source.meta["val"] for source in node.all_input_nodes]
    return len({value.dtype for value in values if isinstance(value, Tensor)} - {torch.int64, torch.bool}) > 1


def _replace(captured: ExportedProgram, node: Node, by: Node) -> None:
    node.replace_all_uses_with(by)
    captured.graph_signature.replace_all_uses(node.name, by.name)
    captured.graph.erase_node(node)


def _optimise(model: onnx_ir.Model) -> None:
    """As `onnxscript.optimizer.optimize_ir`, with RULES in place of all rules."""
    passes.InlinePass()(model)
    for _ in range(2):
        fold_constants_ir(model, onnx_shape_inference=True)
        rewrite(model, RULES)
        passes.RemoveUnusedNodesPass()(model)
    Sequential(
        passes.RemoveUnusedFunctionsPass(),
        passes.RemoveUnusedOpsetsPass(),
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.DeduplicateInitializersPass(),
        passes.CommonSubexpressionEliminationPass(),
        passes.OutputFixPass(),
        passes.NameFixPass(),
    )(model)
