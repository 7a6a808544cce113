"""`python -m tests.support.faulty_server`: the server with a slow engine that breaks for good on a black image.

A stand-in for a GPU whose context is lost, on a machine that has none.
"""

import os
import time
from pathlib import Path

from app.__main__ import main
from app.inference.model import Model
from tests.support.processes import eventually

RUN_S = 2.0
RUN_ENDS = "a run ends"
STICKY = "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=host ; expr=cudaMemcpy()"


class FaultyModel(Model):
    def run(self, graph, images, asked=(), *, beside=False):
        time.sleep(RUN_S)
        print(RUN_ENDS, flush=True)  # noqa: T201
        if any(image.max() == 0 for image in images):
            eventually(Path(os.environ["BREAKS_ONCE_THERE_IS"]).exists)
            raise RuntimeError(STICKY)
        return self.engine.run(graph, images, asked, beside=beside)

    def warm_up(self):
        """Not seconds for each way to run."""
        self.engine.side_by_side = 1  # as on a GPU


if __name__ == "__main__":
    import app.inference.device
    import app.server

    app.inference.device.Model = FaultyModel
    app.server.FLUSH_S = 3.0  # a busy machine may not answer within a second
    main([])
