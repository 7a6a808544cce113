"""`python -m tests.gpu.check BUNDLE...`: what only an NVIDIA GPU can tell. Prints tables, asserts numbers.

For each bundle (say one in fp32 and one in fp16) it checks that both graphs give the CPU's numbers and that a recorded
run does not answer with another batch's images. It prints which attention kernels are in use, how fast each batch size
is with and without copies and with and without CUDA graphs, and how many JPEGs a second the service answers.

It needs CUDA 13 and cuDNN 9 (those that come with torch 2.11+cu130 will do) and what `make setup` installs.
"""

import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime as ort

from app.bundle import load_bundle
from app.inference.contract import Graph, Outputs
from app.inference.cpu import FILES, OnnxEngine
from app.inference.cuda import CudaEngine
from app.inference.gears import Gears
from app.machine import allowed_cores
from tests.benchmarks.__main__ import table
from tests.benchmarks.load import post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.server import running

with suppress(ImportError):
    import torch  # noqa: F401  # its CUDA libraries are then loaded

MAX_BATCH = 128
TOLERANCE = {"fp32": 1e-3, "fp16": 3e-2, "int8": 1e-1}  # of the largest number; the CPU has other kernels
GENERATORS, CONNECTIONS, SECONDS = 4, 32, 10.0
KERNELS = """
import sys
from pathlib import Path
from app.bundle import load_bundle
from app.inference.cuda import CudaEngine
bundle = load_bundle(Path(sys.argv[1]))
manifest = bundle.manifest
CudaEngine(
    folder=bundle.folder, image_size=manifest.image.size, max_batch=8, known_answer=manifest.known_answer
).warm_up()
"""
Row = dict[str, str | float]


def main() -> None:
    print(f"onnxruntime {ort.__version__}, {allowed_cores()} cores")
    subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], check=False)
    for folder in map(Path, sys.argv[1:]):
        bundle = load_bundle(folder)
        bundle.check_files()
        size, precision = bundle.manifest.image.size, bundle.manifest.precision
        print(f"\n## {bundle.manifest.name} {precision}\n\nattention kernels: {kernels(folder)}")
        answer = bundle.manifest.known_answer
        engine = CudaEngine(folder=folder, image_size=size, max_batch=MAX_BATCH, known_answer=answer)
        start = time.perf_counter()
        engine.warm_up()
        print(
            f"{len(engine._recordings)} runs recorded in {time.perf_counter() - start:.1f} s, {gpu_mib()} MiB in use; "
            f"difference from the known answer, as a share of what is allowed: {engine.deviation()}\n"
        )
        images = np.random.default_rng(0).integers(0, 256, (MAX_BATCH, *size, 3), dtype=np.uint8)
        cpu = OnnxEngine(folder=folder, image_size=size, gears=Gears(cores=allowed_cores()))
        print(table(parity(engine, cpu, images[:8], TOLERANCE[precision])), end="\n\n")
        check_batches(engine, images, TOLERANCE[precision])
        print(table(speed(engine, images)), end="\n\n")
        print(table(lone(engine, images)), end="\n\n")
        del engine
        print(table(served(folder)))


def parity(engine: CudaEngine, cpu: OnnxEngine, images: np.ndarray, tolerance: float) -> list[Row]:
    """Largest difference of each output, relative to its largest number."""
    found, expected = engine.run("explain", images), cpu.run("explain", images)
    found["lean logits"] = engine.run("classify", images)["logits"]
    expected["lean logits"] = cpu.run("classify", images)["logits"]
    rows: list[Row] = [{"output": name, "difference": difference(found[name], expected[name])} for name in found]
    top = (found["logits"].argmax(-1) == expected["logits"].argmax(-1)).mean()
    for row in rows:  # the order of nearly tied classes may change, and with it the outputs that have a row a class
        by_class = row["output"] in ("classes", "evidence", "evidence_heads", "evidence_rest", "lens")
        assert by_class or float(row["difference"]) <= tolerance, row
    return [*rows, {"output": "share of images with the same top class", "difference": round(float(top), 3)}]


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    return float(f"{np.abs(found - expected).max() / np.abs(expected).max():.1e}")


def check_batches(engine: CudaEngine, images: np.ndarray, tolerance: float) -> None:
    """One size, another, the first again: each image has the answer that it has alone, in a padded batch too."""
    for graph in FILES:
        alone = [engine.run(graph, [image])["logits"][0] for image in images[:24]]
        for start, count in ((0, 3), (3, 16), (19, 4), (2, 8), (0, 3), (5, 1), (7, 13), (0, 16), (0, 3)):
            logits = engine.run(graph, list(images[start : start + count]))["logits"]
            assert logits.shape[0] == count
            assert difference(logits, np.stack(alone[start : start + count])) <= tolerance, (graph, start, count)
    print("batches of changing sizes answer for their own images\n")


def speed(engine: CudaEngine, images: np.ndarray) -> list[Row]:
    """The recorded run alone, and with images copied in and numbers copied out."""
    rows: list[Row] = []
    for (graph, size), recording in engine._recordings.items():
        alone = milliseconds(partial(recording._session.run_with_iobinding, recording._binding, recording._options))
        copied = milliseconds(partial(engine.run, graph, list(images[:size])))
        rows.append({
            "graph": graph, "batch": size, "ms": round(alone, 3), "images/s": round(1000 * size / alone),
            "ms with copies": round(copied, 3), "images/s with copies": round(1000 * size / copied),
        })  # fmt: skip
    best: dict[Graph, float] = {g: max(float(r["images/s"]) for r in rows if r["graph"] == g) for g in FILES}
    ratio = best["explain"] / best["classify"]
    print(f"the explaining graph runs at {ratio:.2f} of the lean graph's rate; the service batches up to", end=" ")
    print({graph: engine.best_batch(graph) for graph in FILES}, end="\n\n")
    return rows


def lone(engine: CudaEngine, images: np.ndarray) -> list[Row]:
    """One image, with and without the CUDA graph, in turn."""
    plain = ort.RunOptions()
    plain.add_run_config_entry("gpu_graph_id", "-1")
    rows: list[Row] = []
    for graph in FILES:
        recording = engine._recordings[graph, 1]
        for name, options in (("CUDA graph", recording._options), ("node by node", plain)) * 2:
            ms = milliseconds(partial(recording._session.run_with_iobinding, recording._binding, options))
            rows.append({"graph": graph, "batch 1": name, "ms": round(ms, 3)})
    return rows


def milliseconds(run: Callable[[], Outputs | None], seconds: float = 1.0) -> float:
    times: list[float] = []
    while sum(times) < seconds or len(times) < 10:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def kernels(folder: Path) -> dict[str, int]:
    """How often each attention kernel was chosen, by name."""
    environment = {**os.environ, "ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO": "1"}
    command = [sys.executable, "-c", KERNELS, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(Counter(re.findall(r"SdpaKernel=(\w+)", done.stdout + done.stderr)))


def gpu_mib() -> str:
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def served(folder: Path) -> list[Row]:
    """JPEGs of 500 x 334 in, JSON out, over loopback from several generators on the same cores."""
    variables = {"VIT_DEVICE": "cuda", "VIT_MAX_BATCH": "64", "VIT_MAX_QUEUE_IMAGES": "1024"}
    rows: list[Row] = []
    with running(folder, variables) as server:
        for query in ("attention=false", "attention=true"):
            request = post(f"/classify?{query}", jpeg(), "image/jpeg")
            load = partial(server.load, request, SECONDS, connections=CONNECTIONS)
            before = server.cpu_seconds()
            with ThreadPoolExecutor(GENERATORS) as generators:
                runs = [generators.submit(load) for _ in range(GENERATORS)]
            answers = [run.result() for run in runs]
            images = sum(answer["images"] for answer in answers)
            of_generators = sum(answer["generator_cpu_s"] for answer in answers)
            rows.append({
                "served": query,
                "images/s": round(sum(answer["images_per_s"] for answer in answers)),
                "p50 ms": round(statistics.median(answer["p50_ms"] for answer in answers), 1),
                "p99 ms": round(max(answer["p99_ms"] for answer in answers), 1),
                "server's ms of a core an image": round(1000 * (server.cpu_seconds() - before) / images, 2),
                "generators' ms of a core an image": round(1000 * of_generators / images, 2),
            })  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
