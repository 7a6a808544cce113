"""One graph at one batch size as a CUDA graph: a recorded run.

It is replayed in one launch, with the addresses and shapes of the recording. So every batch size has its own inputs and
outputs on the GPU. ONNX Runtime keeps a recording for the thread that made it, under a number from 1 on (0 means "no
number given"). It does not check the shape when it replays. Therefore one thread does both the warm-up and the serving,
and the number is the batch size.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from app.inference.engine import Outputs

DTYPES = {
    "tensor(uint8)": np.uint8,
    "tensor(int64)": np.int64,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
Inputs = Mapping[str, npt.NDArray[Any]]
PLAIN = -1  # the number with which ONNX Runtime runs node by node, and neither records nor replays


class Recording:
    """Fixed buffers on the GPU, and the recorded run that uses them."""

    def __init__(self, *, session: ort.InferenceSession, size: int) -> None:
        self._session = session
        self._size = size
        self._recorded, self._plain = _numbered(size), _numbered(PLAIN)
        self._binding = session.io_binding()
        self._inputs: dict[str, ort.OrtValue] = {}
        for source in session.get_inputs():
            value = _on_gpu((size, *source.shape[1:]), DTYPES[source.type])
            self._binding.bind_ortvalue_input(source.name, value)
            self._inputs[source.name] = value
        self._outputs = {o.name: _on_gpu((size, *o.shape[1:]), DTYPES[o.type]) for o in session.get_outputs()}
        for name, value in self._outputs.items():
            self._binding.bind_ortvalue_output(name, value)

    def run(self, inputs: Inputs, *, plainly: bool = False) -> Outputs:
        """Outputs for `inputs` by name, `size` rows each. The first call records, later ones replay."""
        self.load(inputs)
        self.launch(plainly=plainly)
        return self.outputs()

    def load(self, inputs: Inputs) -> None:
        """Copy those that the graph takes to the GPU."""
        for name, value in self._inputs.items():
            value.update_inplace(inputs[name])

    def launch(self, *, plainly: bool = False) -> None:
        """Run with the images that are on the GPU, and leave the outputs there. `plainly` is node by node."""
        self._session.run_with_iobinding(self._binding, self._plain if plainly else self._recorded)

    def outputs(self) -> Outputs:
        """Copies of what the last run has left on the GPU."""
        return {name: value.numpy() for name, value in self._outputs.items()}

    def release(self) -> None:
        """Give back what the recorded run keeps beside the buffers. It cannot be replayed any more."""
        self._session.release_captured_graph(self._size)


def _numbered(number: int) -> ort.RunOptions:
    options = ort.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    return options


def _on_gpu(shape: Sequence[int], dtype: type) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype, "cuda")
