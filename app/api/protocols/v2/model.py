"""The Open Inference Protocol's questions about server and model: /v2, health, metadata and configuration.

Metadata and configuration are as a real Triton 2.51 gives them for such a model; perf_analyzer reads both. The one
declared input is the network's own, because clients fill every declared input, and NVIDIA's image_client.py takes one.
"""

from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request

from app.api.protocols.v2.request import IMAGES
from app.api.route import CheckedRouter
from app.api.routes.probes import check
from app.api.services import Services, services_of
from app.errors import UnknownModel
from app.http.problems import problems

VERSION = "1"  # of the model: there is one
PLATFORM = "onnxruntime_onnx"
EXTENSIONS = ("classification", "model_configuration", "binary_tensor_data", "parameters")


def max_batch(services: Services) -> int:
    """Images in one request at most."""
    return min(services.settings.max_images_per_request, services.settings.max_images_in_progress)


def tensors(services: Services) -> dict[str, int]:
    """Every output by name, with its width. The first is the one that is declared."""
    manifest = services.bundle.manifest
    classes = dict.fromkeys(("scores", "logits"), len(manifest.labels)) if manifest.labels else {}
    return {**classes, "embedding": manifest.features}


async def _named(request: Request, name: str, version: str = VERSION) -> str:
    """The model's name as one segment of a path: models of the Hugging Face Hub have a `/` in theirs. Raises
    UnknownModel for another one, or another version.
    """
    if name != services_of(request).bundle.manifest.name.replace("/", "--") or version != VERSION:
        raise UnknownModel(name, "" if version == VERSION else version)
    return name


NamedDep = Annotated[str, Depends(_named)]
router = CheckedRouter(prefix="/v2", tags=["Open Inference Protocol"])
of_model = partial(router.get, responses=problems(404, 422))


@router.get("", summary="Describe the server")
async def server(request: Request) -> dict[str, Any]:
    """Name, version and extensions of the server."""
    return {"name": request.app.title, "version": request.app.version, "extensions": EXTENSIONS}


@router.get("/health/live", summary="Is the process alive?", responses=problems())
async def live(request: Request) -> dict[str, bool]:
    """As /livez."""
    check(services_of(request).lifecycle.failure)
    return {"live": True}


@router.get("/health/ready", summary="Does the process take requests?", responses=problems())
async def ready(request: Request) -> dict[str, bool]:
    """As /readyz."""
    check(services_of(request).lifecycle.reason)
    return {"ready": True}


@of_model(
    "/models/{name}/versions/{version}/ready", operation_id="model_ready_of_version", summary="Is the model ready?"
)
@of_model("/models/{name}/ready", summary="Is the model ready?")
async def model_ready(request: Request, name: NamedDep) -> dict[str, Any]:
    return {"name": name, **await ready(request)}


@of_model(
    "/models/{name}/versions/{version}",
    operation_id="metadata_of_version",
    summary="Describe input and output of the model",
)
@of_model("/models/{name}", summary="Describe input and output of the model")
async def metadata(request: Request, name: NamedDep) -> dict[str, Any]:
    """Return input and output of the model. A request may also name the outputs `logits` and `embedding`."""
    services = services_of(request)
    (output, width), *_ = tensors(services).items()
    inputs = [{"name": IMAGES, "datatype": "UINT8", "shape": [-1, *services.bundle.manifest.image.size, 3]}]
    outputs = [{"name": output, "datatype": "FP32", "shape": [-1, width]}]
    return {"name": name, "versions": [VERSION], "platform": PLATFORM, "inputs": inputs, "outputs": outputs}


@of_model(
    "/models/{name}/versions/{version}/config",
    operation_id="config_of_version",
    summary="Get the configuration of the model",
)
@of_model("/models/{name}/config", summary="Get the configuration of the model")
async def config(request: Request, name: NamedDep) -> dict[str, Any]:
    """Return the contents of Triton's config.pbtxt. `dims` leave the batch out."""
    services = services_of(request)
    (output, width), *_ = tensors(services).items()
    dims = [*services.bundle.manifest.image.size, 3]
    return {
        "name": name,
        "platform": PLATFORM,
        "backend": "onnxruntime",
        "max_batch_size": max_batch(services),
        "input": [{"name": IMAGES, "data_type": "TYPE_UINT8", "format": "FORMAT_NHWC", "dims": dims}],
        "output": [{"name": output, "data_type": "TYPE_FP32", "dims": [width]}],
        "dynamic_batching": {},
    }
