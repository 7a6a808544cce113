"""The servers of the comparison: the arrangements that are tried of each, and the request that it is sent."""

import base64
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.bundle import CLASSIFY_GRAPH
from app.machine import allowed_cores
from tests.benchmarks.pictures import classify_jpeg, jpeg
from tests.benchmarks.plain_export import SILENT
from tests.benchmarks.record import ROOT
from tests.benchmarks.server import PATIENT, free_port, variables_of
from tests.benchmarks.servers.weights import (
    BF16,
    INT8,
    OPENVINO_INT8,
    OURS,
    PLAIN,
    PLAIN_BUNDLE,
    TORCH,
    TRANSFORMERS,
)
from tests.load.connection import JPEG, JSON, file_part, form, post, tensor

FOLDER = Path(__file__).parent
CORES = allowed_cores()
EQUAL = "equal"  # the group of servers that run the same file
GROUPS = ("fp32", "bf16", "int8", "others", EQUAL)
PLAIN_GRAPH, OUR_GRAPH, OUR_INT8 = "plain export, fp32", "vit-serve, fp32", "vit-serve, int8"
BFLOAT16 = "bfloat16"
ONNX_RUNTIME, OPENVINO = "ONNX Runtime", "OpenVINO"


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    says: str
    python: Path  # of its own environment
    arguments: tuple[str, ...]  # of Python
    port_variable: str  # the server reads its port here
    variables: dict[str, str] = field(default_factory=dict)
    request: bytes

    @property
    def exact(self) -> bool:
        """The model computes in float32."""
        return not any(low in value for value in self.variables.values() for low in ("int8", "bf16", BFLOAT16))


@dataclass(frozen=True, kw_only=True)
class Contender:
    """In the first of its groups all is measured of it, in the others and in EQUAL only its rate."""

    server: str
    graph: str
    answer: str = "labels"
    runtime: str = ""  # which runs the graph, where that can be compared
    groups: tuple[str, ...]
    tries: tuple[Arrangement, ...]

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.server, self.runtime, self.graph, self.answer)))

    def open_loops(self, group: str) -> bool:
        return group == self.groups[0] != EQUAL


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a peer divides the cores."""

    instances: int
    threads: int  # of each
    batch: int
    spinning: bool = False  # whether ONNX Runtime's threads wait for work in a loop

    @property
    def says(self) -> str:
        parts = [f"{self.instances} × {self.threads} thread{'s' if self.threads > 1 else ''}"]
        parts += [f"batches up to {self.batch}"] if self.batch > 1 else ["no batches"]
        parts += ["spinning" if self.spinning else "no spinning"] if self.threads > 1 else []
        return ", ".join(parts)

    @property
    def variables(self) -> dict[str, str]:
        return {
            "VIT_BENCH_INSTANCES": str(self.instances),
            "VIT_BENCH_THREADS": str(self.threads),
            "VIT_BENCH_BATCH": str(self.batch),
            "VIT_BENCH_SPINNING": str(int(self.spinning)),
            "OMP_NUM_THREADS": str(self.threads),
        }


GUIDE = Way(instances=1, threads=CORES, batch=8, spinning=True)  # one instance, everything else at its default
QUIET = Way(instances=1, threads=CORES, batch=8)
ALONE, FEW, MANY = (Way(instances=CORES, threads=1, batch=batch) for batch in (1, 4, 8))
TWO_WIDE = Way(instances=2, threads=CORES, batch=4)
WAYS = (GUIDE, QUIET, ALONE, FEW, MANY, TWO_WIDE)
WAYS_OF_OUR_GRAPHS = (QUIET, ALONE, FEW)
BATCHES = (QUIET, FEW, MANY)
BATCHED_PIPELINE = "FastAPI + pipeline, batched"


def contenders(weights: Path) -> list[Contender]:
    """For the model in `weights`, see weights.py. Ratios refer to the first, which is in every group."""
    return [
        ours(weights / OURS, OUR_GRAPH, groups=GROUPS),
        ours(weights / OURS, OUR_GRAPH, "labels and maps", groups=("fp32",)),
        ours(weights / BF16, "vit-serve, bf16", groups=("bf16",)),
        ours(weights / BF16, "vit-serve, bf16", "labels and maps", groups=("bf16",)),
        ours(weights / INT8, OUR_INT8, groups=("int8", EQUAL)),
        ours(weights / INT8, OUR_INT8, "labels and maps", groups=("int8",)),
        ours(weights / OURS, OUR_GRAPH, engine="onnxruntime"),
        ours(weights / PLAIN_BUNDLE, PLAIN_GRAPH),
        ours(weights / PLAIN_BUNDLE, PLAIN_GRAPH, engine="onnxruntime"),
        *of_graphs("LitServe", litserve, and_also=[litserve(way, TORCH) for way in (QUIET, FEW)]),
        *of_graphs("MLServer", mlserver, and_also=[mlserver(QUIET, PLAIN, apart=False)]),
        *of_graphs("Triton (PyTriton)", triton),
        *of_openvino(PLAIN_GRAPH, PLAIN, "f32", groups=("fp32", EQUAL)),
        *of_openvino("plain export, bf16", PLAIN, "bf16", groups=("bf16",)),
        *of_openvino("NNCF, int8", OPENVINO_INT8, groups=("int8",)),
        *of_openvino(OUR_GRAPH, f"{OURS}/{CLASSIFY_GRAPH}", "f32", groups=(EQUAL,)),
        *of_openvino(OUR_INT8, f"{INT8}/{CLASSIFY_GRAPH}", "f32", groups=(EQUAL,)),
        peer("BentoML", PLAIN_GRAPH, tuple(bentoml(way, PLAIN) for way in WAYS)),
        peer("Ray Serve", PLAIN_GRAPH, tuple(ray(way, PLAIN) for way in WAYS)),
        peer("FastAPI + pipeline", "transformers", tuple(pipeline(way, "plain") for way in (QUIET, ALONE))),
        peer(BATCHED_PIPELINE, "transformers", tuple(pipeline(way, "batched") for way in BATCHES)),
        peer(
            BATCHED_PIPELINE,
            "transformers, bf16",
            tuple(pipeline(way, "batched", BFLOAT16) for way in BATCHES),
            group="bf16",
        ),
    ]


def ours(
    bundle: Path,
    graph: str,
    answer: str = "labels",
    *,
    engine: Literal["openvino", "onnxruntime"] = "openvino",
    groups: tuple[str, ...] = (EQUAL,),
) -> Contender:
    query = "?attention=false" if answer == "labels" else ""
    arrangement = Arrangement(
        says="as it starts by itself",
        python=Path(sys.executable),
        arguments=("-m", "app"),
        port_variable="VIT_PORT",
        variables=variables_of(bundle=bundle, engine=engine, log_level="warning", **PATIENT),
        request=classify_jpeg(query),
    )
    runtime = OPENVINO if engine == "openvino" else ONNX_RUNTIME
    return Contender(
        server="vit-serve", graph=graph, answer=answer, runtime=runtime, groups=groups, tries=(arrangement,)
    )


def of_graphs(
    server: str, arrange: Callable[[Way, str], Arrangement], *, and_also: Sequence[Arrangement] = ()
) -> list[Contender]:
    """With the plain export, and with this project's graph, in ONNX Runtime."""
    plain = (*(arrange(way, PLAIN) for way in WAYS), *and_also)
    own = tuple(arrange(way, f"{OURS}/{CLASSIFY_GRAPH}") for way in WAYS_OF_OUR_GRAPHS)
    return [
        Contender(server=server, graph=PLAIN_GRAPH, runtime=ONNX_RUNTIME, groups=("fp32", EQUAL), tries=plain),
        Contender(server=server, graph=OUR_GRAPH, runtime=ONNX_RUNTIME, groups=(EQUAL,), tries=own),
    ]


def peer(server: str, graph: str, tries: tuple[Arrangement, ...], *, group: str = "others") -> Contender:
    return Contender(server=server, graph=graph, groups=(group,), tries=tries)


def litserve(way: Way, graph: str) -> Arrangement:
    return application("litserve", way, graph, upload("/predict", "content"))


def ray(way: Way, graph: str) -> Arrangement:
    return application("ray", way, graph, post(jpeg(), JPEG, path="/"))


def pipeline(way: Way, route: str, dtype: str = "float32") -> Arrangement:
    variables = {"VIT_BENCH_DTYPE": dtype}
    return application("transformers", way, TRANSFORMERS, upload(f"/{route}", "file"), variables=variables)


def triton(way: Way, graph: str) -> Arrangement:
    image = len(jpeg()).to_bytes(4, "little") + jpeg()
    request = tensor("/v2/models/vit/infer", [1, 1], "BYTES", image, binary_answer=False)
    return application("pytriton", way, graph, request)


def of_openvino(graph: str, file: str, precision: str = "", *, groups: tuple[str, ...]) -> list[Contender]:
    """Without batches and, but for equal graphs, with automatic ones: these may bring more images a second, but answer
    later.

    OpenVINO chooses a precision that is not given. On a processor with instructions for bf16 it chooses bf16. Layers in
    int8 stay in int8.
    """
    ways = (
        ("THROUGHPUT", None, True),
        ("THROUGHPUT", CORES, True),
        ("THROUGHPUT", CORES, False),
        ("LATENCY", None, True),
    )
    alone = tuple(openvino(file, precision, hint=h, streams=streams, pinned=pinned) for h, streams, pinned in ways)
    found = [("FastAPI + OpenVINO", groups, alone)]
    if groups[0] != EQUAL:
        batched = tuple(openvino(file, precision, batch=batch) for batch in (4, 8))
        found.append(("FastAPI + OpenVINO, batched", groups[:1], batched))
    return [
        Contender(server=server, graph=graph, runtime=OPENVINO, groups=where, tries=tries)
        for server, where, tries in found
    ]


def openvino(
    file: str,
    precision: str,
    *,
    hint: str = "THROUGHPUT",
    streams: int | None = None,
    pinned: bool = True,
    batch: int = 1,
) -> Arrangement:
    """Without a number of streams it finds one itself. `pinned`: each of its threads stays on one core, if it wants."""
    says = [f"hint {hint}", f"{streams} streams" if streams else "its own number of streams"]
    says += [f"automatic batches of {batch}"] if batch > 1 else ["no batches"]
    says += [] if pinned else ["threads not pinned"]
    variables = {
        "VIT_BENCH_HINT": hint,
        "VIT_BENCH_STREAMS": str(streams or ""),
        "VIT_BENCH_PRECISION": precision,
        "VIT_BENCH_PINNED": "yes" if pinned else "",
        **SILENT,
    }
    way = Way(instances=1, threads=CORES, batch=batch)
    return application("openvino", way, file, upload("/predict", "file"), says=", ".join(says), variables=variables)


def application(
    environment: str,
    way: Way,
    graph: str,
    request: bytes,
    *,
    says: str = "",
    arguments: tuple[str, ...] = (),
    port_variable: str = "VIT_BENCH_PORT",
    variables: dict[str, str] | None = None,
) -> Arrangement:
    """A server started by its own file here, or as `arguments` of Python say."""
    return Arrangement(
        says=says or way.says + (", PyTorch" if graph == TORCH else ""),
        python=python_of(environment),
        arguments=arguments or ("-m", f"tests.benchmarks.servers.{environment}_app"),
        port_variable=port_variable,
        variables={"VIT_BENCH_GRAPH": graph, **way.variables, **(variables or {})},
        request=request,
    )


def bentoml(way: Way, graph: str) -> Arrangement:
    return application(
        "bentoml",
        way,
        graph,
        upload("/predict", "images"),
        arguments=("-m", "bentoml", "serve", "tests.benchmarks.servers.bentoml_app:ViT"),
        port_variable="BENTOML_PORT",
        variables={"BENTOML_HOST": "127.0.0.1", "BENTOML_DO_NOT_TRACK": "True"},
    )


def mlserver(way: Way, graph: str, *, apart: bool = True) -> Arrangement:
    """`apart`: in worker processes, as it does by default; else in the server's own."""
    image = {
        "name": "image",
        "shape": [1, 1],
        "datatype": "BYTES",
        "parameters": {"content_type": "base64"},
        "data": [base64.b64encode(jpeg()).decode()],
    }
    return application(
        "mlserver",
        way,
        graph,
        post(json.dumps({"inputs": [image]}).encode(), JSON, path="/v2/models/vit/infer"),
        says=way.says + ("" if apart else ", no worker process"),
        arguments=("-c", "from mlserver.cli import main; main()", "start", str(FOLDER / "mlserver")),
        port_variable="MLSERVER_HTTP_PORT",
        variables={
            "MLSERVER_HOST": "127.0.0.1",
            "MLSERVER_GRPC_PORT": str(free_port()),  # else two of them want the same
            "MLSERVER_METRICS_PORT": str(free_port()),
            "MLSERVER_PARALLEL_WORKERS": str(way.instances if apart else 0),
            "MLSERVER_MODEL_MAX_BATCH_SIZE": str(way.batch if way.batch > 1 else 0),
            "MLSERVER_MODEL_MAX_BATCH_TIME": "0.01",
        },
    )


def python_of(environment: str) -> Path:
    return ROOT / ".venv-bench" / environment / "bin" / "python"


def pins() -> dict[str, list[str]]:
    """What is installed in each environment, as its requirements say."""
    return {
        path.stem: [line.split("  #")[0] for line in path.read_text().splitlines()]
        for path in sorted((FOLDER.parent / "requirements").glob("*.txt"))
        if python_of(path.stem).exists()
    }


def upload(path: str, name: str) -> bytes:
    """An image as a browser's form sends it."""
    return form(file_part(jpeg(), JPEG, disposition=f'name="{name}"; filename="image.jpg"'), path=path)
