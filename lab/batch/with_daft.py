"""`python -m lab.batch.with_daft BUNDLE IMAGES OUT`: classify a folder with Daft, into Parquet."""

import sys

import daft
from daft import DataType, Series

from app.batch import BatchClassifier

IMAGES_PER_CALL = 64
ROW = DataType.struct({
    "label": DataType.string(),
    "score": DataType.float64(),
    "embedding": DataType.list(DataType.float32()),
    "error": DataType.string(),
})  # fmt: skip


@daft.cls(max_concurrency=1)  # it uses all cores
class Labels:
    """The best label, its score and the embedding of each image, or why it has none."""

    def __init__(self, bundle: str) -> None:
        self._classify = BatchClassifier(bundle, top_k=1)

    @daft.method.batch(return_dtype=ROW, batch_size=IMAGES_PER_CALL)
    def __call__(self, images: Series) -> list[dict[str, object]]:
        return [
            {
                "label": row["predictions"] and row["predictions"][0]["label"],
                "score": row["predictions"] and row["predictions"][0]["score"],
                "embedding": row["embedding"],
                "error": row["error"] and row["error"]["detail"],
            }
            for row in self._classify(images.to_pylist())
        ]


def main(bundle: str, images: str, out: str) -> None:
    files = daft.from_glob_path(f"{images}/*")
    labelled = files.select(files["path"], Labels(bundle)(files["path"].download()).alias("row"))
    row = labelled["row"]
    labelled.select("path", *(row[name].alias(name) for name in ROW.fields)).write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
