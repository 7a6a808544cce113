"""How this process serves: `VIT_*` environment variables. The bundle's manifest says what the model is."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

DEMO_BUNDLE = Path(__file__).parent / "demo"
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")  # RFC 6454, 6.2
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Settings(BaseSettings):
    """Every limit of the service; docs/settings.md lists them all."""

    model_config = SettingsConfigDict(env_prefix="VIT_", frozen=True)

    bundle: Annotated[Path, Field(description="Folder of the bundle to serve")] = DEMO_BUNDLE
    host: Annotated[str, Field(description="Address to listen on")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on")] = 8000
    metrics_port: Annotated[
        int, Field(ge=0, le=65535, description="Separate port for `/metrics` and the probes; 0: they are at `VIT_PORT`")
    ] = 0
    api_keys: Annotated[
        SecretStr | None,
        Field(description="Comma-separated API keys. If set, requests must send one; probes and the page need none"),
    ] = None
    api_keys_file: Annotated[Path | None, Field(description="File with more API keys, one per line")] = None
    root_path: Annotated[
        str, Field(description="Prefix of every path, such as `/vit`; paths are also answered without it")
    ] = ""
    cors_origins: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated origins whose pages may use the service from a browser, such as "
            "`https://app.example`; `*`: any"
        ),
    ] = ()
    device: Annotated[
        Literal["auto", "cuda", "cpu"],
        Field(description="`auto`, `cuda` or `cpu`; `cuda` refuses to start without a working GPU"),
    ] = "auto"
    engine: Annotated[
        Literal["auto", "openvino", "onnxruntime"],
        Field(
            description="What runs the model on a CPU. `auto`: OpenVINO where it is installed and computes right "
            "numbers, else ONNX Runtime"
        ),
    ] = "auto"
    gpu: Annotated[int, Field(ge=0, description="Number of the GPU, from 0; `CUDA_VISIBLE_DEVICES` hides some")] = 0
    gpu_memory_bytes: Annotated[
        int,
        Field(
            ge=0,
            description="Memory of the GPU for weights and activations, in bytes, so that services can share a GPU; "
            "0: no limit. CUDA, inputs and outputs take some hundred MB more",
        ),
    ] = 0
    max_batch: Annotated[
        int,
        Field(ge=0, le=512, description="Largest number of images in one forward pass; 0: 8 on the CPU, 64 on a GPU"),
    ] = 0
    max_queue_images: Annotated[
        int, Field(ge=1, description="Limit of images in work or waiting; further requests get 503")
    ] = 128
    max_queue_wait_s: Annotated[
        float, Field(gt=0, description="Longest predicted wait in seconds; requests that would wait longer get 503")
    ] = 5.0
    max_images_per_request: Annotated[
        int, Field(ge=1, description="Largest number of images in one multipart request")
    ] = 16
    max_upload_bytes: Annotated[int, Field(ge=1, description="Largest body of one request, in bytes")] = 32 * 2**20
    max_intake_bytes: Annotated[
        int,
        Field(
            ge=1, description="Largest sum of the bodies of all requests in work, in bytes; further requests get 503"
        ),
    ] = 512 * 2**20
    max_connections: Annotated[
        int, Field(ge=1, description="Connection limit; above it only `/livez` and `/readyz` are answered")
    ] = 1024
    receive_timeout_s: Annotated[
        float, Field(gt=0, description="Longest time for a request's body to arrive, in seconds")
    ] = 15.0
    request_timeout_s: Annotated[
        float,
        Field(gt=0, description="Longest time for an answer, in seconds; `X-Request-Timeout` may ask for less"),
    ] = 30.0
    max_image_pixels: Annotated[int, Field(ge=1, description="Largest width times height of one image, in pixels")] = (
        50_000_000
    )
    max_aspect_ratio: Annotated[
        float, Field(ge=1, description="Largest ratio of an image's long side to its short side")
    ] = 64.0
    model_threads: Annotated[
        int,
        Field(
            ge=0,
            description="Cores for the model; 0: all allowed ones",
        ),
    ] = 0
    worker_threads: Annotated[
        int,
        Field(ge=0, description="Threads that draw maps; 0: one per allowed core, at least two"),
    ] = 0
    max_drawings: Annotated[
        int, Field(ge=1, description="Limit of maps, walls and reports in work or waiting; further ones get 503")
    ] = 64
    decode_workers: Annotated[
        int,
        Field(
            ge=0,
            description="Processes that decode images; 0: one per allowed core, at least two, but no more than can "
            "work on images of four megapixels in a quarter of the available memory",
        ),
    ] = 0
    decode_timeout_s: Annotated[
        float, Field(gt=0, description="Longest time of work on one image, in seconds; then its decoder is killed")
    ] = 2.0
    max_decode_pixels: Annotated[
        int,
        Field(
            ge=0,
            description="Pixels of large images decoded at once; 0: what fits a quarter of the available memory",
        ),
    ] = 0
    store: Annotated[
        str,
        Field(
            repr=False,  # it may carry a password
            description="Where attention maps are kept: `memory` (this process), or a Redis that several replicas "
            "share (`redis://`, `rediss://` or `unix://`)",
        ),
    ] = "memory"
    store_max_bytes: Annotated[
        int, Field(ge=0, description="Memory for attention maps kept in this process, in bytes")
    ] = 256 * 2**20
    store_ttl_s: Annotated[float, Field(gt=0, description="How long attention maps are kept, in seconds")] = 900.0
    store_connect_timeout_s: Annotated[
        float, Field(gt=0, le=10, description="Longest wait for a new connection to Redis, TLS included, in seconds")
    ] = 0.2
    store_timeout_s: Annotated[
        float,
        Field(
            gt=0, le=10, description="Longest wait for an answer of Redis, or for a free connection to it, in seconds"
        ),
    ] = 0.15
    store_connections: Annotated[int, Field(ge=1, description="Largest number of connections to Redis")] = 16
    thumbnail_px: Annotated[
        int, Field(ge=16, le=2048, description="Long side, in pixels, of the thumbnail that maps are drawn on")
    ] = 512
    drain_delay_s: Annotated[
        float,
        Field(
            ge=0,
            description="Seconds of serving after SIGTERM, so that balancers see that it is not ready",
        ),
    ] = 5.0
    drain_timeout_s: Annotated[
        int, Field(ge=0, description="Seconds after that delay in which requests in work have to finish")
    ] = 20
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Field(description="Log level: `debug`, `info`, `warning` or `error`"),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"], Field(description="Log format: `text`, or `json` with one object per line")
    ] = "text"

    @field_validator("root_path")
    @classmethod
    def _is_a_prefix(cls, root_path: str) -> str:
        segments = root_path.split("/")[1:]
        if root_path and not (_PREFIX.fullmatch(root_path) and {".", ".."}.isdisjoint(segments)):
            raise ValueError("empty, or a path such as /vit: / and letters, digits or . _ ~ -, without / at its end")
        return root_path

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _listed(cls, origins: object) -> object:
        if isinstance(origins, str):
            return tuple(origin.strip() for origin in origins.split(",") if origin.strip())
        return origins

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        if origins == ("*",):
            return origins
        for origin in origins:
            if origin == "*":
                raise ValueError("* stands alone: it allows every origin")
            if not _ORIGIN.fullmatch(origin) or origin.endswith(_DEFAULT_PORTS.get(origin.partition(":")[0], "/")):
                raise ValueError(
                    f"{origin!r} is not an origin as browsers send it: https://app.example or http://localhost:3000, "
                    "in lower case, without a path, and without :80 of http or :443 of https"
                )
        return origins

    @field_validator("store")
    @classmethod
    def _is_a_place(cls, store: str) -> str:
        if store != "memory" and not store.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("memory, or an address that begins with redis://, rediss:// or unix://")
        return store
