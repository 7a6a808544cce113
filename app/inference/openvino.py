"""Runs a bundle with OpenVINO, which has the fastest kernels for CPUs. How it was chosen:
lab/benchmarks/README.md, "Engines"."""

import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from app.bundle import Precision
from app.inference.engine import CpuEngine, Layout
from app.machine import processors

sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]  # it would report its import to its makers
import openvino as ov  # noqa: E402
from openvino import opset13  # noqa: E402

DEVICE = "CPU"


class OpenVinoEngine(CpuEngine):
    """The combined graph of a bundle as one compiled model for a run on all cores, and one, whose runs have one image,
    for as many runs as share them.
    """

    provider = "OpenVINO"

    def __init__(
        self, *, graph: Path, layout: Layout, precision: Precision, threads: int, side_by_side: int = 1
    ) -> None:
        """`threads` are the cores to use."""
        core = ov.Core()
        bfloat16 = precision == "bf16" and "BF16" in core.get_property(DEVICE, "OPTIMIZATION_CAPABILITIES")
        self.computes_in: Precision = precision if precision == "int8" or bfloat16 else "fp32"  # fp16 too: see the hint
        self.layout = layout
        model = core.read_model(graph)
        if bfloat16:
            _compute_in_bfloat16(model)
            model.validate_nodes_and_infer_types()
            side_by_side = 1  # sums in another order round to other bfloat16 numbers: they would depend on the load
        self.side_by_side = side_by_side

        def requests(streams: int) -> SimpleQueue[ov.InferRequest]:
            settings = {
                "INFERENCE_PRECISION_HINT": "f32",  # by default it computes all of an fp32 bundle in bfloat16
                "INFERENCE_NUM_THREADS": threads,
                "NUM_STREAMS": streams,
                "ENABLE_CPU_PINNING": threads >= processors(),  # else replicas would share some cores and leave others
            }
            compiled = core.compile_model(model, DEVICE, settings)
            free: SimpleQueue[ov.InferRequest] = SimpleQueue()
            for _ in range(streams):
                free.put(compiled.create_infer_request())
            return free

        self.takes_directions = any(source.get_any_name() == "directions" for source in model.inputs)
        self._alone = self._beside = requests(1)
        if side_by_side > 1:
            for source in model.inputs:
                shape = source.get_partial_shape()
                if len(shape):  # `explain` is a scalar
                    shape[0] = 1  # takes less memory
                    model.reshape({source: shape})
            self._beside = requests(side_by_side)

    def _rows(self, inputs: dict[str, npt.NDArray[Any]], *, beside: bool) -> npt.NDArray[np.float32]:
        free = self._beside if beside else self._alone
        request = free.get()
        try:
            (rows,) = request.infer(inputs, share_inputs=True).values()  # copied
        finally:
            free.put(request)
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
