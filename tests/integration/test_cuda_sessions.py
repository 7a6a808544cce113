"""Both graphs in ONNX Runtime's own CUDA provider, where libraries stand in for NVIDIA's.

Nothing is computed. But ONNX Runtime decides which node runs where, refuses options that it does not know, and walks
through recording and replay, as on a GPU.
"""

import json
import shutil
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path

import onnx
import pytest

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH, Precision
from app.settings import DEMO_BUNDLE
from export.graphs import ExplainGraph
from export.onnx_file import part
from export.trace import trace
from tests.conftest import Once
from tests.support.every_operator import OPERATORS, TOYS
from tests.support.stand_in_cuda import PROVIDER, build, environment
from tests.support.toy import toy_checkpoint

PRECISIONS = ("fp32", "fp16")
OF_SHAPES = {"Concat", "Slice"}  # what ONNX Runtime leaves to the CPU, where they compute sizes and nothing else
ENGINE = """
import sys
from pathlib import Path
import numpy as np
from app.bundle import load_bundle, outputs_of
from app.inference.cuda.engine import CudaEngine
from app.inference.known_answer import KnownImage
from app.inference.model import Model
from app.machine import count_gpus
KnownImage.check = lambda self, graph, outputs, *, provider: None  # all numbers are 0
bundle = load_bundle(Path(sys.argv[1]))
manifest = bundle.manifest
engine = CudaEngine(
    folder=bundle.folder,
    layout=outputs_of(manifest.explains, manifest.arrays),
    precision=manifest.precision,
    max_batch=4,
    memory_bytes=2**30,
)
known = KnownImage(manifest.known_answer, manifest.image.size)
model = Model(engine=engine, known=known)
model.warm_up()
assert count_gpus() == 1
assert {row.batch for row in model.latency()} == {1, 2, 4}, model.latency()
image = np.zeros((*manifest.image.size, 3), np.uint8)
outputs = engine.run("explain", [image, image])
assert set(outputs) == set(manifest.explains), set(outputs)
assert {len(rows) for rows in outputs.values()} == {2}
options = engine._sessions["explain"].get_provider_options()["CUDAExecutionProvider"]
print(options["enable_cuda_graph"], options["use_tf32"], options["arena_extend_strategy"], options["gpu_mem_limit"])
"""


@pytest.fixture(scope="session")
def on_stand_in_gpu(once: Once):
    """Run a Python program that finds a GPU: `on_stand_in_gpu("-m", "module", ...)` is what it prints."""

    if not shutil.which("gcc") or not PROVIDER.exists():
        pytest.skip("needs gcc, and onnxruntime-gpu")

    def write(out: Path) -> None:
        out.mkdir()
        build(out)

    libraries = once("stand-in-cuda", write)

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment(libraries), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def folder_of(once: Once, oblong_bundle: Path):
    """Of both graphs of a toy."""

    def write(name: str, precision: Precision, out: Path) -> None:
        graph = ExplainGraph(toy_checkpoint(**TOYS[name]), precision)
        proto = trace(graph)
        out.mkdir()
        onnx.save(proto, out / EXPLAIN_GRAPH)
        onnx.save(part(proto, graph.answers), out / CLASSIFY_GRAPH)

    def folder(name: str, precision: Precision) -> Path:
        if (name, precision) == ("plain", "fp32"):
            return oblong_bundle
        return once(f"{name} {precision}", partial(write, name, precision))

    return folder


@pytest.fixture(scope="session")
def placed(once: Once, folder_of, on_stand_in_gpu):
    """Where ONNX Runtime puts the nodes of each graph, by its file: all are asked for at once, in one process."""

    def ask(out: Path) -> None:
        folders = [folder_of(*toy) for toy in product(TOYS, PRECISIONS)]
        files = [str(folder / name) for folder in folders for name in (CLASSIFY_GRAPH, EXPLAIN_GRAPH)]
        out.write_text(on_stand_in_gpu("-m", "lab.gpu.placement", *files))

    return json.loads(once("placed.json", ask).read_text())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_toys_have_every_operator(precision, folder_of):
    """unit/export/test_both_engines.py shows that no network has another."""
    graphs = [onnx.load(folder_of(name, precision) / EXPLAIN_GRAPH, load_external_data=False).graph for name in TOYS]
    assert {node.op_type for graph in graphs for node in graph.node} >= OPERATORS


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", TOYS)
def test_every_node_runs_on_the_gpu(name, precision, placed, folder_of):
    for graph in (placed[str(folder_of(name, precision) / file)] for file in (CLASSIFY_GRAPH, EXPLAIN_GRAPH)):
        assert "refused" not in graph, graph
        assert graph["gpu"] > 20
        assert set(graph["cpu"]) <= OF_SHAPES, graph


def test_the_engine_records_replays_and_releases(on_stand_in_gpu):
    assert on_stand_in_gpu("-c", ENGINE, str(DEMO_BUNDLE)).split()[:3] == ["1", "0", "kSameAsRequested"]
