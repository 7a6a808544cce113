"""`python -m tests.support.faulty_server`: the server with a slow engine that breaks for good on a black image.

A stand-in for a GPU whose context is lost, on a machine that has none.
"""

import time

from app.__main__ import main
from app.inference.cpu import OnnxEngine

RUN_S = 2.0
STICKY = "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=host ; expr=cudaMemcpy()"


class FaultyEngine(OnnxEngine):
    def run(self, graph, images, gear):
        time.sleep(RUN_S)
        if any(image.max() == 0 for image in images):
            raise RuntimeError(STICKY)
        return super().run(graph, images, gear)

    def warm_up(self):
        """Not seconds for each batch size."""

    def ask_once(self, graph, images, gear):
        """Nor here."""


if __name__ == "__main__":
    import app.inference.device

    app.inference.device.OnnxEngine = FaultyEngine
    main()
