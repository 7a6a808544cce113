"""From images per second to replicas and cores: a table of docs/deployment.md, from what other benchmarks measured."""

import math
from collections.abc import Iterator

from lab.benchmarks.leaders import AMX, AVX2, PRECISIONS, RATE, VNNI, precision_of
from lab.benchmarks.record import Row, Rows, number, read_record, record_paths, rows_of
from lab.gpu.tables import rates

LOAD = 0.8  # of what a replica answers at most: there percentiles were measured
OFFERED = (10, 100, 1000)  # images/s
SERVERS = {AMX: ("AMX", PRECISIONS), VNNI: ("AVX-512 VNNI", ("fp32", "int8")), AVX2: ("AVX2 alone", ("fp32",))}
LATENCY = "p50 / p99 at 80% of its own capacity, ms"
ON_GPU = 4  # replicas that share it
CORES_BESIDE_GPU = 4  # of each replica


def sizing() -> Rows:
    """How many replicas answer labels, by model and precision."""
    return [*_of_servers(), *_of_large_models(), *_of_gpus()]


def replicas(images_s: float, *, each: float) -> int:
    """How many replicas answer so many images per second, if one answers `each` at most."""
    return math.ceil(images_s / (LOAD * each))


def _of_servers() -> Iterator[Row]:
    for record, (processor, precisions) in SERVERS.items():
        for row in rows_of(record):
            if row["server"] == "vit-serve" and (precision := precision_of(row)) in precisions:
                yield _sized(
                    f"ViT-S/16, {precision}, {processor}", number(row[RATE]), _cores(record), latency=str(row[LATENCY])
                )


def _of_large_models() -> Iterator[Row]:
    for row in rows_of("serving"):
        if (name := str(row["model and answer"])).startswith("ViT-B") and name.endswith(", labels"):
            yield _sized(name.removesuffix(", labels"), number(row["served, images/s"]), _cores("serving"))


def _of_gpus() -> Iterator[Row]:
    for row in rates("replicas"):
        if (row["replicas"], row["answer"]) == (ON_GPU, "labels"):
            yield _sized("ViT-B/16, fp16, a quarter of an H200", number(row["images/s"]) / ON_GPU, CORES_BESIDE_GPU)


def _cores(record: str) -> int:
    return int(str(read_record(record_paths()[record]).head["cores"]))


def _sized(model: str, each: float, cores: int, *, latency: str = "") -> Row:
    return {
        "model": model,
        "cores": cores,
        "at most, images/s": round(each, 1),
        "p50 / p99, ms": latency,
        **{f"{images_s:,} images/s": replicas(images_s, each=each) for images_s in OFFERED},
    }
