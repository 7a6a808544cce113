"""Runs a bundle with OpenVINO, which has the fastest kernels for CPUs. How it was chosen and set: docs/engine.md."""

import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from app.bundle import Precision
from app.inference.combined import CombinedEngine, Shapes
from app.machine import processors

sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]  # it would report its import to its makers
import openvino as ov  # noqa: E402
from openvino import opset13  # noqa: E402

DEVICE = "CPU"


class OpenVinoEngine(CombinedEngine):
    """The combined graph of a bundle as one compiled model. As many threads may call `run` at once as there are
    streams, and each run has its share of the cores.
    """

    provider = "OpenVINO"

    def __init__(
        self,
        *,
        graph: Path,
        shapes: Shapes,
        precision: Precision,
        threads: int,
        streams: int = 1,
    ) -> None:
        """`shapes` are those of an image's outputs of the explaining graph, `threads` the cores to use. With several
        `streams` a run has one image, which takes less memory.
        """
        core = ov.Core()
        bfloat16 = precision == "bf16" and "BF16" in core.get_property(DEVICE, "OPTIMIZATION_CAPABILITIES")
        self.computes_in: Precision = precision if precision == "int8" or bfloat16 else "fp32"  # fp16 too: see the hint
        model = core.read_model(graph)
        if self.computes_in == "bf16":
            _compute_in_bfloat16(model)
            model.validate_nodes_and_infer_types()
        if streams > 1:
            for source in model.inputs:
                shape = source.get_partial_shape()
                if len(shape):  # `explain` is a scalar
                    shape[0] = 1
                    model.reshape({source: shape})
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",  # by default it computes all of an fp32 bundle in bfloat16
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": streams,
            "ENABLE_CPU_PINNING": threads >= processors(),  # else replicas would share some cores and leave others
        }
        compiled = core.compile_model(model, DEVICE, settings)
        self.shapes = shapes
        self._free: SimpleQueue[ov.InferRequest] = SimpleQueue()
        for _ in range(streams):
            self._free.put(compiled.create_infer_request())

    def _rows(self, inputs: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        request = self._free.get()
        try:
            (rows,) = request.infer(inputs, share_inputs=True).values()  # copied
        finally:
            self._free.put(request)
        return np.asarray(rows)


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
