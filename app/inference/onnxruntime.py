"""Runs a bundle with ONNX Runtime on a CPU: at export, and where OpenVINO is missing or computes wrong numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from app.bundle import Precision
from app.inference.engine import CpuEngine, Layout


class OnnxEngine(CpuEngine):
    """The combined graph of a bundle as one session for a run on all cores, and one for runs that share them."""

    provider = "CPUExecutionProvider"

    def __init__(
        self, *, graph: Path, layout: Layout, precision: Precision, threads: int, side_by_side: int = 1
    ) -> None:
        """`threads` are the cores to use."""
        self.layout, self.side_by_side = layout, side_by_side
        self.computes_in: Precision = "int8" if precision == "int8" else "fp32"
        self._alone = self._beside = session(graph, threads)
        self.takes_directions = any(source.name == "directions" for source in self._alone.get_inputs())
        if side_by_side > 1:
            self._beside = session(graph, threads - side_by_side + 1)  # of all runs; and each caller works too

    def _rows(self, inputs: dict[str, npt.NDArray[Any]], *, beside: bool) -> npt.NDArray[np.float32]:
        (rows,) = (self._beside if beside else self._alone).run(None, inputs)
        return np.asarray(rows)


def session(graph: Path, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # it warns of its own rewriting of the branch
    options.enable_mem_pattern = False  # it would keep a block of memory for every batch size
    # Spinning threads would take the cores that decode the next images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(graph), options, providers=[OnnxEngine.provider])
