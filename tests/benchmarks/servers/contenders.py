"""The servers of the comparison: how each is started, and the request it is sent."""

import base64
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.load import post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.server import PATIENT

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent
ONNX, TORCH = "ONNX Runtime", "torch"


@dataclass(frozen=True, kw_only=True)
class Contender:
    name: str
    runtime: str
    python: Path  # of its own environment
    arguments: tuple[str, ...]  # of Python
    port_variable: str  # the server reads its port here
    variables: dict[str, str] = field(default_factory=dict)
    request: bytes


def contenders(weights: Path) -> list[Contender]:
    """For the model in `weights`, see weights.py. Ratios refer to the first."""
    return [
        ours(weights / "fp32", "fp32, labels", "?attention=false"),
        ours(weights / "fp32", "fp32, labels and maps", ""),
        ours(weights / "int8", "int8, labels", "?attention=false"),
        ours(weights / "int8", "int8, labels and maps", ""),
        application("LitServe", ONNX, "litserve", form("/predict", "content")),
        application("LitServe", TORCH, "litserve", form("/predict", "content")),
        bentoml(),
        application("Ray Serve", ONNX, "ray", post("/", jpeg(), "image/jpeg")),
        mlserver(),
        application("Triton (PyTriton)", ONNX, "pytriton", triton_request()),
        application("FastAPI + pipeline", TORCH, "transformers", form("/plain", "file")),
        application("FastAPI + pipeline, batched", TORCH, "transformers", form("/batched", "file")),
    ]


def ours(bundle: Path, what: str, query: str) -> Contender:
    return Contender(
        name=f"vit-serve, {what}",
        runtime=ONNX,
        python=Path(sys.executable),
        arguments=("-m", "app"),
        port_variable="VIT_PORT",
        variables={"VIT_BUNDLE": str(bundle), "VIT_LOG_LEVEL": "warning", **PATIENT},
        request=post(f"/classify{query}", jpeg(), "image/jpeg"),
    )


def application(name: str, runtime: str, environment: str, request: bytes) -> Contender:
    """A server started by its own file here."""
    return Contender(
        name=name,
        runtime=runtime,
        python=python_of(environment),
        arguments=("-m", f"tests.benchmarks.servers.{environment}_app"),
        port_variable="VIT_BENCH_PORT",
        request=request,
    )


def bentoml() -> Contender:
    return Contender(
        name="BentoML",
        runtime=ONNX,
        python=python_of("bentoml"),
        arguments=("-m", "bentoml", "serve", "tests.benchmarks.servers.bentoml_app:ViT"),
        port_variable="BENTOML_PORT",
        variables={"BENTOML_HOST": "127.0.0.1", "BENTOML_DO_NOT_TRACK": "True"},
        request=form("/predict", "images"),
    )


def mlserver() -> Contender:
    image = {
        "name": "image",
        "shape": [1, 1],
        "datatype": "BYTES",
        "parameters": {"content_type": "base64"},
        "data": [base64.b64encode(jpeg()).decode()],
    }
    return Contender(
        name="MLServer",
        runtime=ONNX,
        python=python_of("mlserver"),
        arguments=("-c", "from mlserver.cli import main; main()", "start", str(FOLDER / "mlserver")),
        port_variable="MLSERVER_HTTP_PORT",
        variables={"MLSERVER_HOST": "127.0.0.1"},
        request=post("/v2/models/vit/infer", json.dumps({"inputs": [image]}).encode(), "application/json"),
    )


def python_of(environment: str) -> Path:
    return ROOT / ".venv-bench" / environment / "bin" / "python"


def form(path: str, name: str) -> bytes:
    """An image as a browser's form sends it."""
    head = f'Content-Disposition: form-data; name="{name}"; filename="image.jpg"\r\nContent-Type: image/jpeg'
    body = f"--boundary\r\n{head}\r\n\r\n".encode() + jpeg() + b"\r\n--boundary--\r\n"
    return post(path, body, "multipart/form-data; boundary=boundary")


def triton_request() -> bytes:
    """In Triton's binary extension, as its own client sends it."""
    image = len(jpeg()).to_bytes(4, "little") + jpeg()
    about = {"name": "images", "shape": [1, 1], "datatype": "BYTES", "parameters": {"binary_data_size": len(image)}}
    head = json.dumps({"inputs": [about]}).encode()
    length = f"Inference-Header-Content-Length: {len(head)}"
    return post("/v2/models/vit/infer", head + image, "application/octet-stream", length)
