"""Runs a bundle with OpenVINO, which has the fastest kernels for CPUs. How it was chosen and set: docs/engine.md."""

import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from app.bundle import Precision
from app.inference.combined import Shapes, inputs, outputs
from app.inference.engine import Graph, Images, Outputs, as_batch
from app.machine import processors

sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]  # it would report its import to its makers
import openvino as ov  # noqa: E402
from openvino import opset13  # noqa: E402

DEVICE = "CPU"


class OpenVinoEngine:
    """The combined graph of a bundle as one compiled model on all cores.

    With several cores it is for one image until there is a batch: OpenVINO computes that faster and in less memory,
    and with the same numbers as streams, which give such a model its throughput.
    """

    provider = "OpenVINO"
    pads = False

    def __init__(self, *, graph: Path, shapes: Shapes, precision: Precision, threads: int) -> None:
        """`shapes` are those of an image's outputs of the explaining graph, `threads` the cores to use."""
        self.computes_in: Precision = precision if precision != "bf16" or _computes_bfloat16() else "fp32"
        self._graph = graph
        self._precision = precision
        self._threads = threads
        self._shapes = shapes
        self._turn = Lock()  # threads that run streams may check the known image at the same time
        self._request: ov.InferRequest | None = None
        self._open(single=threads > 1)

    def run(self, graph: Graph, images: Images) -> Outputs:
        with self._turn:
            if self._single and len(images) > 1:
                self._open(single=False)
            assert self._request
            results = self._request.infer(inputs(graph, images), share_inputs=True)  # outputs are copied
        return outputs(graph, {name: results[name] for name in self._names}, self._shapes)

    def forget(self, graph: Graph, largest: int) -> None:
        """OpenVINO has one memory for all batches."""

    def _open(self, *, single: bool) -> None:
        """For one image, or for any number."""
        model = _read(self._graph, self._precision)
        if single:
            _, *image = model.input("images").get_partial_shape()
            model.reshape({"images": ov.PartialShape([1, *image])})
        self._request = None  # or its weights would be in memory twice
        self._request = _compiled(model, threads=self._threads, streams=1).create_infer_request()
        self._names = [output.get_any_name() for output in model.outputs]
        self._single = single


class OpenVinoStreams:
    """A graph of a bundle for one number of images. As many threads may call `run` at once as there are streams, and
    each run has its share of the cores. Without a branch, and for one shape, OpenVINO computes it faster.
    """

    def __init__(
        self, *, graph: Path, shape: tuple[int, ...], precision: Precision, threads: int, streams: int
    ) -> None:
        """`shape` is that of the input (images, height, width, 3), `threads` the cores to use."""
        model = _read(graph, precision)
        model.reshape(shape)
        compiled = _compiled(model, threads=threads, streams=streams)
        self._names = [output.get_any_name() for output in model.outputs]
        self._free: SimpleQueue[ov.InferRequest] = SimpleQueue()
        for _ in range(streams):
            self._free.put(compiled.create_infer_request())

    def run(self, images: Images) -> Outputs:
        """Outputs of the graph for as many images as it is for."""
        request = self._free.get()
        try:
            results = request.infer([as_batch(images)], share_inputs=True)
        finally:
            self._free.put(request)
        return {name: results[name] for name in self._names}


def _computes_bfloat16() -> bool:
    return "BF16" in ov.Core().get_property(DEVICE, "OPTIMIZATION_CAPABILITIES")


def _read(graph: Path, precision: Precision) -> ov.Model:
    model = ov.Core().read_model(graph)
    if precision == "bf16" and _computes_bfloat16():
        _compute_in_bfloat16(model)
        model.validate_nodes_and_infer_types()
    return model


def _compiled(model: ov.Model, *, threads: int, streams: int) -> ov.CompiledModel:
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",  # by default it computes all of an fp32 bundle in bfloat16
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": streams,
        "ENABLE_CPU_PINNING": threads >= processors(),  # else replicas would share some cores and leave others
    }
    return ov.Core().compile_model(model, DEVICE, settings)


def _compute_in_bfloat16(model: ov.Model) -> None:
    """Compute in bfloat16 what is float16 in the file, which is what the blocks of a bundle in bf16 are.

    Types that the model states hold whatever the hint of the precision is. So the rest stays in float32.
    """
    for node in model.get_ordered_ops():
        match node.get_type_name():
            case "Constant" if node.get_output_element_type(0) == ov.Type.f16:
                readers = node.output(0).get_target_inputs()
                converted = opset13.convert(node, ov.Type.bf16)
                for reader in readers:
                    reader.replace_source_output(converted.output(0))
            case "Convert" if node.get_destination_type() == "f16":
                node.set_destination_type(ov.Type.bf16)
            case "If":
                for branch in range(2):
                    _compute_in_bfloat16(node.get_function(branch))
