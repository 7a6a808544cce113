"""Parquet files, by pyarrow: the rows of an output, and embeddings. A file is written whole, at the end."""

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_serve_client.rows import COLUMNS, Row

if TYPE_CHECKING:
    import pyarrow

BATCH = 10_000  # rows in memory at a time


def is_wanted(path: Path | None) -> bool:
    return path is not None and path.suffix == ".parquet"


def check(path: Path, images: Iterable[str]) -> None:
    """Raises ValueError without pyarrow, and for an image whose name Parquet cannot have."""
    if not importlib.util.find_spec("pyarrow"):
        raise ValueError(f"{path} needs pyarrow: pip install pyarrow")
    for image in images:
        try:
            image.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{path} cannot have {image!a}, as that is no UTF-8: use another format") from None


def part_of(path: Path) -> Path:
    """The file in which a run keeps what `path` will have."""
    return path.with_name(f"{path.name}.part")


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    import pyarrow

    text, number = pyarrow.string(), pyarrow.int32()
    real = pyarrow.float64()
    types = text, number, text, number, real, text, text, text, real
    schema = pyarrow.schema([*zip(columns, types, strict=False)])
    left = iter(rows)
    batches = iter(lambda: [dict(zip(columns, row, strict=False)) for row in islice(left, BATCH)], [])
    _write(path, schema, (pyarrow.RecordBatch.from_pylist(batch, schema) for batch in batches))


def columns(path: Path) -> tuple[str, ...]:
    """Of the rows in a file. Raises ValueError for a file of something else."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:  # pyarrow.ArrowInvalid is a ValueError
        names = tuple(file.schema_arrow.names)
    if names not in COLUMNS:
        raise ValueError
    return names


def rows(path: Path) -> Iterator[Row]:
    """Raises as `columns`."""
    return (Row(*values) for values in _columns(path, columns(path)))


def write_vectors(path: Path, images: Sequence[str], vectors: Path, length: int) -> None:
    """The columns `image` and `embedding`, a list of `length` float32. `vectors` has those alone, one after another."""
    import pyarrow

    embedding = pyarrow.list_(pyarrow.float32(), length)
    schema = pyarrow.schema([("image", pyarrow.string()), ("embedding", embedding)])

    def batches() -> "Iterator[pyarrow.RecordBatch]":
        with vectors.open("rb") as file:
            for start in range(0, len(images), BATCH):
                part = images[start : start + BATCH]
                data = pyarrow.py_buffer(file.read(4 * length * len(part)))
                numbers = pyarrow.Array.from_buffers(pyarrow.float32(), length * len(part), [None, data])
                lists = pyarrow.FixedSizeListArray.from_arrays(numbers, type=embedding)
                yield pyarrow.record_batch([pyarrow.array(part, pyarrow.string()), lists], schema=schema)

    _write(path, schema, batches())


def vectors(path: Path) -> Iterator[tuple[str, list[float]]]:
    """Each image with its embedding. Raises ValueError for a file of something else."""
    return ((image, embedding) for image, embedding in _columns(path, ("image", "embedding")))


def _write(path: Path, schema: "pyarrow.Schema", batches: "Iterable[pyarrow.RecordBatch]") -> None:
    from pyarrow.parquet import ParquetWriter

    new = path.with_name(f"{path.name}.new")
    with ParquetWriter(new, schema) as file:
        for batch in batches:
            file.write_batch(batch)
    new.replace(path)


def _columns(path: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        if file.schema_arrow.names != [*names]:
            raise ValueError
        for batch in file.iter_batches(BATCH):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
