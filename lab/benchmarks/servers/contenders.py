"""The servers of the comparison: the arrangements that are tried of each, and the request that it is sent."""

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from app.bundle import CLASSIFY_GRAPH
from app.machine import allowed_cores
from lab.benchmarks.engines import ENGINES
from lab.benchmarks.plain_export import SILENT
from lab.benchmarks.record import ROOT
from lab.benchmarks.servers import weights as files
from tests.support.connection import JPEG, JSON, file_part, form, post, tensor
from tests.support.pictures import classify_jpeg, jpeg
from tests.support.server import PATIENT, free_port, variables_of

FOLDER = Path(__file__).parent
CORES = allowed_cores()
EQUAL = "equal"  # the group of servers that run the same file
GROUPS = ("fp32", "bf16", "int8", "others", EQUAL)
PLAIN_GRAPH = "plain export, fp32"
OUR_GRAPH, OUR_BF16, OUR_INT8 = "vit-serve, fp32", "vit-serve, bf16", "vit-serve, int8"
LABELS, DEFAULT, MAPS = "labels", "default", "labels and maps"
QUERIES = {LABELS: "?attention=false", DEFAULT: "", MAPS: "?attention=now"}  # of /classify
BFLOAT16 = "bfloat16"


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
    answer: str = LABELS
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
        told = {name: str(int(value)) for name, value in vars(self).items()}
        return {f"VIT_BENCH_{name.upper()}": value for name, value in told.items()} | {
            "OMP_NUM_THREADS": told["threads"]
        }


GUIDE = Way(instances=1, threads=CORES, batch=8, spinning=True)  # one instance, everything else at its default
QUIET = Way(instances=1, threads=CORES, batch=8)
ALONE, FEW, MANY = (Way(instances=CORES, threads=1, batch=batch) for batch in (1, 4, 8))
WAYS = (GUIDE, QUIET, ALONE, FEW, MANY, Way(instances=2, threads=CORES, batch=4))
WAYS_OF_OUR_GRAPHS = (QUIET, ALONE, FEW)
BATCHES = (QUIET, FEW, MANY)


def contenders(weights: Path) -> list[Contender]:
    """For the model in `weights`, see weights.py. Ratios refer to the first, which is in every group."""
    fp32, bf16, int8, plain = (weights / name for name in (files.OURS, files.BF16, files.INT8, files.PLAIN_BUNDLE))
    of_pytorch = [peer("litserve", way, files.TORCH) for way in (QUIET, FEW)]
    return [
        ours(fp32, OUR_GRAPH, *GROUPS),
        ours(fp32, OUR_GRAPH, "fp32", answer=DEFAULT),
        ours(fp32, OUR_GRAPH, "fp32", answer=MAPS),
        ours(bf16, OUR_BF16, "bf16"),
        ours(bf16, OUR_BF16, "bf16", answer=DEFAULT),
        ours(bf16, OUR_BF16, "bf16", answer=MAPS),
        ours(int8, OUR_INT8, "int8", EQUAL),
        ours(int8, OUR_INT8, "int8", answer=DEFAULT),
        ours(int8, OUR_INT8, "int8", answer=MAPS),
        ours(fp32, OUR_GRAPH, EQUAL, engine="onnxruntime"),
        ours(plain, PLAIN_GRAPH, EQUAL),
        ours(plain, PLAIN_GRAPH, EQUAL, engine="onnxruntime"),
        *of_graphs("LitServe", lambda way, graph: peer("litserve", way, graph), *of_pytorch),
        *of_graphs("MLServer", mlserver),
        *of_graphs("Triton (PyTriton)", lambda way, graph: peer("pytriton", way, graph)),
        *of_openvino(PLAIN_GRAPH, files.PLAIN, "f32", "fp32", EQUAL),
        *of_openvino("plain export, bf16", files.PLAIN, "bf16", "bf16"),
        *of_openvino("NNCF, int8", files.OPENVINO_INT8, "", "int8"),
        *of_openvino(OUR_GRAPH, f"{files.OURS}/{CLASSIFY_GRAPH}", "f32", EQUAL),
        *of_openvino(OUR_INT8, f"{files.INT8}/{CLASSIFY_GRAPH}", "f32", EQUAL),
        other("BentoML", PLAIN_GRAPH, *(bentoml(way) for way in WAYS)),
        other("FastAPI + pipeline", "transformers", *(pipeline("plain", way) for way in (QUIET, ALONE))),
        other("FastAPI + pipeline, batched", "transformers", *(pipeline("batched", way) for way in BATCHES)),
        other(
            "FastAPI + pipeline, batched",
            "transformers, bf16",
            *(pipeline("batched", way, BFLOAT16) for way in BATCHES),
            group="bf16",
        ),
    ]


def ours(bundle: Path, graph: str, *groups: str, answer: str = LABELS, engine: str = "openvino") -> Contender:
    arrangement = Arrangement(
        says="as it starts by itself",
        python=Path(sys.executable),
        arguments=("-m", "app"),
        port_variable="VIT_PORT",
        variables=variables_of(bundle=bundle, engine=engine, log_level="warning", **PATIENT),
        request=classify_jpeg(QUERIES[answer]),
    )
    runtime = ENGINES[engine]
    return Contender(
        server="vit-serve", graph=graph, answer=answer, runtime=runtime, groups=groups, tries=(arrangement,)
    )


def of_graphs(server: str, arrange: Callable[[Way, str], Arrangement], *more: Arrangement) -> list[Contender]:
    """With the plain export, and with this project's graph, in ONNX Runtime. `more` are arrangements of the first."""
    plain = (*(arrange(way, files.PLAIN) for way in WAYS), *more)
    own = tuple(arrange(way, f"{files.OURS}/{CLASSIFY_GRAPH}") for way in WAYS_OF_OUR_GRAPHS)
    runtime = ENGINES["onnxruntime"]
    return [
        Contender(server=server, graph=PLAIN_GRAPH, runtime=runtime, groups=("fp32", EQUAL), tries=plain),
        Contender(server=server, graph=OUR_GRAPH, runtime=runtime, groups=(EQUAL,), tries=own),
    ]


def other(server: str, graph: str, *tries: Arrangement, group: str = "others") -> Contender:
    return Contender(server=server, graph=graph, groups=(group,), tries=tries)


def of_openvino(graph: str, file: str, precision: str, *groups: str) -> list[Contender]:
    """Without batches and, but for equal graphs, with automatic ones, which answer later.

    OpenVINO chooses a precision that is not given: bf16 where the processor has instructions for it.
    """
    ways = ((0, True), (CORES, True), (CORES, False))
    found = {"FastAPI + OpenVINO": (groups, tuple(openvino(file, precision, *way) for way in ways))}
    if groups[0] != EQUAL:
        batched = tuple(openvino(file, precision, batch=batch) for batch in (4, 8))
        found["FastAPI + OpenVINO, batched"] = groups[:1], batched
    return [
        Contender(server=server, graph=graph, runtime=ENGINES["openvino"], groups=where, tries=tries)
        for server, (where, tries) in found.items()
    ]


def openvino(file: str, precision: str, streams: int = 0, pinned: bool = True, batch: int = 1) -> Arrangement:
    """Without a number of streams it finds one itself. `pinned`: each of its threads stays on one core, if it wants."""
    says = [f"{streams} streams" if streams else "its own number of streams"]
    says += [f"automatic batches of {batch}"] if batch > 1 else ["no batches"]
    says += [] if pinned else ["threads not pinned"]
    return peer(
        "openvino",
        Way(instances=1, threads=CORES, batch=batch),
        file,
        says=", ".join(says),
        VIT_BENCH_STREAMS=str(streams or ""),
        VIT_BENCH_PRECISION=precision,
        VIT_BENCH_PINNED="yes" if pinned else "",
        CI=SILENT["CI"],
    )


def pipeline(route: str, way: Way, dtype: str = "float32") -> Arrangement:
    return peer("transformers", way, files.TRANSFORMERS, request=upload(f"/{route}", "file"), VIT_BENCH_DTYPE=dtype)


def bentoml(way: Way) -> Arrangement:
    return peer(
        "bentoml",
        way,
        files.PLAIN,
        arguments=("-m", "bentoml", "serve", "lab.benchmarks.servers.bentoml_app:ViT"),
        port_variable="BENTOML_PORT",
        BENTOML_HOST="127.0.0.1",
        BENTOML_DO_NOT_TRACK="True",
    )


def mlserver(way: Way, graph: str) -> Arrangement:
    return peer(
        "mlserver",
        way,
        graph,
        arguments=("-c", "from mlserver.cli import main; main()", "start", str(FOLDER / "mlserver")),
        port_variable="MLSERVER_HTTP_PORT",
        MLSERVER_HOST="127.0.0.1",
        MLSERVER_GRPC_PORT=str(free_port()),  # else two of them want the same
        MLSERVER_METRICS_PORT=str(free_port()),
        MLSERVER_PARALLEL_WORKERS=str(way.instances),
        MLSERVER_MODEL_MAX_BATCH_SIZE=str(way.batch if way.batch > 1 else 0),
        MLSERVER_MODEL_MAX_BATCH_TIME="0.01",
    )


def peer(
    environment: str,
    way: Way,
    graph: str,
    *,
    request: bytes = b"",
    says: str = "",
    arguments: tuple[str, ...] = (),
    port_variable: str = "VIT_BENCH_PORT",
    **variables: str,
) -> Arrangement:
    """A server started by its own file here, or as `arguments` of Python say."""
    return Arrangement(
        says=says or way.says + (", PyTorch" if graph == files.TORCH else ""),
        python=python_of(environment),
        arguments=arguments or ("-m", f"lab.benchmarks.servers.{environment}_app"),
        port_variable=port_variable,
        variables={"VIT_BENCH_GRAPH": graph, **way.variables, **variables},
        request=request or requests()[environment],
    )


@cache
def requests() -> dict[str, bytes]:
    """What each peer is sent, by its environment."""
    text = {"content_type": "base64"}
    image = {"name": "image", "shape": [1, 1], "datatype": "BYTES", "parameters": text}
    in_json = {"inputs": [{**image, "data": [base64.b64encode(jpeg()).decode()]}]}
    infer, element = "/v2/models/vit/infer", len(jpeg()).to_bytes(4, "little") + jpeg()
    return {
        "bentoml": upload("/predict", "images"),
        "litserve": upload("/predict", "content"),
        "mlserver": post(json.dumps(in_json).encode(), JSON, path=infer),
        "openvino": upload("/predict", "file"),
        "pytriton": tensor(infer, [1, 1], "BYTES", element, binary_answer=False),
    }


def upload(path: str, name: str) -> bytes:
    """An image as a browser's form sends it."""
    return form(file_part(jpeg(), JPEG, disposition=f'name="{name}"; filename="image.jpg"'), path=path)


def python_of(environment: str) -> Path:
    return ROOT / ".venv-bench" / environment / "bin" / "python"


def pins() -> dict[str, list[str]]:
    """What is installed in each environment, as its requirements say."""
    return {
        path.stem: [line.split("  #")[0] for line in path.read_text().splitlines()]
        for path in sorted((FOLDER.parent / "requirements").glob("*.txt"))
        if python_of(path.stem).exists()
    }
