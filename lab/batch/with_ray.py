"""`python -m lab.batch.with_ray BUNDLE IMAGES OUT`: classify a folder with Ray Data, into Parquet.

One actor for each machine, because a BatchClassifier uses all cores of its process. Ray starts another where one ends,
and gives it the images again.
"""

import os
import sys

import numpy as np
import pyarrow as pa
import ray

from app.batch import BatchClassifier

IMAGES_PER_CALL = 64
SCHEMA = pa.schema({  # a part without errors would have no type for them otherwise
    "path": pa.string(),
    "label": pa.string(),
    "score": pa.float64(),
    "embedding": pa.list_(pa.float32()),
    "error": pa.string(),
})  # fmt: skip


class Labels:
    """The best label, its score and the embedding of each image, or why it has none."""

    def __init__(self, bundle: str) -> None:
        self._classify = BatchClassifier(bundle, top_k=1)

    def __call__(self, images: dict[str, np.ndarray]) -> pa.Table:
        rows = self._classify(images["bytes"].tolist())
        best = [row["predictions"][0] if row["predictions"] else {} for row in rows]
        columns = {
            "path": images["path"],
            "label": [each.get("label") for each in best],
            "score": [each.get("score") for each in best],
            "embedding": [row["embedding"] for row in rows],
            "error": [row["error"] and row["error"]["detail"] for row in rows],
        }
        return pa.table(columns, schema=SCHEMA)


def main(bundle: str, images: str, out: str) -> None:
    cores = os.cpu_count() or 1
    ray.init(num_cpus=cores + 1, include_dashboard=False, log_to_driver=False)  # one more reads and writes files
    files = ray.data.read_binary_files(images, include_paths=True)
    labels = files.map_batches(
        Labels, fn_constructor_args=[bundle], batch_size=IMAGES_PER_CALL, compute=ray.data.ActorPoolStrategy(size=1)
    )
    labels.write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
