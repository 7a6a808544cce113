"""Both graphs in ONNX Runtime's own CUDA provider, where libraries stand in for NVIDIA's.

Nothing is computed. But ONNX Runtime decides which node runs where, refuses options that it does not know, and walks
through recording and replay, as on a GPU.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH
from app.settings import DEMO_BUNDLE
from export.graphs import ExplainGraph
from export.onnx_file import part
from export.trace import trace
from tests.conftest import Once
from tests.golden.test_checkpoints import FOLDER, load
from tests.integration.test_families import named, unlike_each_other
from tests.support.stand_in_cuda import PROVIDER, build, environment

CASES = [*unlike_each_other(classify=True), *unlike_each_other(classify=False)]
IN_HALF = [FOLDER / name for name in ("google-hybrid", "google-big-vision-sincos", "timm-sapiens2")]
OF_SHAPES = {"Concat", "Slice"}  # what ONNX Runtime leaves to the CPU, where they compute sizes and nothing else
ENGINE = """
import sys
from pathlib import Path
import numpy as np
from app.bundle import load_bundle
from app.inference.cuda import CudaEngine
from app.inference.cuda_driver import count_gpus
from app.inference.known_answer import KnownImage
KnownImage.check = lambda self, graph, outputs, *, provider: None  # all numbers are 0
bundle = load_bundle(Path(sys.argv[1]))
manifest = bundle.manifest
engine = CudaEngine(
    folder=bundle.folder, image_size=manifest.image.size, max_batch=4, known_answer=manifest.known_answer,
    memory_bytes=2**30,
)
engine.warm_up()
assert count_gpus() == 1
assert {row.batch for row in engine.latency()} == {1, 2, 4}, engine.latency()
assert engine.forbid("explain", 4) == 2
image = np.zeros((*manifest.image.size, 3), np.uint8)
outputs = engine.run("explain", [image, image])
assert set(outputs) == set(manifest.explains), set(outputs)
assert {len(rows) for rows in outputs.values()} == {2}
options = engine._sessions["explain", "wide"].get_provider_options()["CUDAExecutionProvider"]
print(options["enable_cuda_graph"], options["use_tf32"], options["arena_extend_strategy"], options["gpu_mem_limit"])
"""
SPEED = """
import json, sys
from pathlib import Path
from app.bundle import load_bundle
from app.inference.known_answer import KnownImage
from tests.gpu.parity import open_on_gpu
from tests.gpu.speed import relative, speed
KnownImage.check = lambda self, graph, outputs, *, provider: None
bundle = load_bundle(Path(sys.argv[1]))
engine = open_on_gpu(bundle, 2)
engine.warm_up()
runs, steps = speed("demo", bundle, engine, seconds=0.001)
assert relative("demo", runs, engine)["ratio"] > 0
print(json.dumps([runs, steps]))
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
        done = subprocess.run(command, env=environment(libraries), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def placed(on_stand_in_gpu):
    """Where ONNX Runtime puts the nodes of each graph in a folder."""

    def of(folder: Path) -> list[dict]:
        files = [str(folder / name) for name in (CLASSIFY_GRAPH, EXPLAIN_GRAPH)]
        found = json.loads(on_stand_in_gpu("-m", "tests.gpu.placement", *files))
        return [found[file] for file in files]

    return of


def check(found: list[dict]) -> None:
    for graph in found:
        assert "refused" not in graph, graph
        assert graph["gpu"] > 20
        assert set(graph["cpu"]) <= OF_SHAPES, graph


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_node_of_every_family_runs_on_the_gpu(case, golden_bundle, placed):
    check(placed(golden_bundle(case)))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_half_precision_is_tried_with_every_operator(case, golden_bundle):
    tried = set().union(*(operators(golden_bundle(each)) for each in IN_HALF))
    assert operators(golden_bundle(case)) <= tried


def operators(bundle: Path) -> set[str]:
    return {node.op_type for node in onnx.load(bundle / EXPLAIN_GRAPH, load_external_data=False).graph.node}


@pytest.mark.parametrize("case", IN_HALF, ids=named)
def test_so_it_does_in_half_precision(case, placed, tmp_path):
    checkpoint = load(case)
    graph = ExplainGraph(checkpoint.model, checkpoint.preprocessing, precision="fp16", score=checkpoint.score)
    proto = trace(graph)
    onnx.save(proto, tmp_path / EXPLAIN_GRAPH)
    onnx.save(part(proto, graph.answers), tmp_path / CLASSIFY_GRAPH)
    check(placed(tmp_path))


def test_integers_do_not_run_on_the_gpu(int8_bundle, placed):
    """So app/inference/device.py refuses them with a sentence of its own."""
    for graph in placed(int8_bundle):
        assert "not been partitioned to the CUDAExecutionProvider" in graph["refused"]


def test_the_engine_records_replays_and_releases(on_stand_in_gpu):
    assert on_stand_in_gpu("-c", ENGINE, str(DEMO_BUNDLE)).split()[:3] == ["1", "0", "kSameAsRequested"]


def test_the_check_of_a_gpu_times_each_step_of_each_size(on_stand_in_gpu):
    runs, steps = json.loads(on_stand_in_gpu("-c", SPEED, str(DEMO_BUNDLE)))
    assert [(row["graph"], row["batch"]) for row in runs] == [(g, n) for g in ("classify", "explain") for n in (1, 2)]
    assert steps[0].keys() >= {"images side by side", "to the GPU", "run", "from the GPU", "all finite"}
