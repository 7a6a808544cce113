"""How this process serves: flags and `VIT_*` environment variables. The bundle's manifest says what the model is."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import is_meant

VERSION = "2.0.0"  # the only place; `make image` writes it on the image
DEMO_BUNDLE = Path(__file__).parent / "demo"
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")  # RFC 6454, 6.2
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Settings(BaseSettings):
    """Serve a bundle over HTTP. Each flag is also a variable of the environment: --max-batch is VIT_MAX_BATCH."""

    model_config = SettingsConfigDict(
        env_prefix="VIT_",
        frozen=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        cli_prog_name="vit-serve serve",
        cli_kebab_case=True,
        cli_hide_none_type=True,
    )

    bundle: Path = DEMO_BUNDLE
    """Folder of the bundle to serve"""
    host: str = "127.0.0.1"
    """Address to listen on"""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on"""
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Separate port for `/metrics` and the probes; 0: they are at `VIT_PORT`"""
    api_keys: Annotated[SecretStr | None, Field(repr=False)] = None
    """Comma-separated API keys, each `KEY` or `name=KEY`. Requests must send one; probes and the page need none"""
    api_keys_file: Path | None = None
    """File with more API keys, one per line"""
    root_path: str = ""
    """Prefix of every path, such as `/vit`; paths are also answered without it"""
    cors_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Comma-separated origins whose pages may use the service in a browser, such as `https://app.example`; `*`: any"""
    device: Literal["auto", "cuda", "cpu"] = "auto"
    """`auto`, `cuda` or `cpu`; `cuda` refuses to start without a working GPU"""
    engine: Literal["auto", "openvino", "onnxruntime"] = "auto"
    """What runs a model on a CPU. `auto`: OpenVINO if it is installed and computes right numbers, else ONNX Runtime"""
    gpu_memory_bytes: NonNegativeInt = 0
    """Memory of a shared GPU for weights and activations; 0: no limit. CUDA and inputs take some hundred MB more"""
    max_batch: Annotated[int, Field(ge=0, le=512)] = 0
    """Most images at once: side by side on a CPU (0: 8), in one batch on a GPU (0: 64)"""
    max_images_in_progress: PositiveInt = 128
    """Limit of images in progress, waiting ones included; further requests get 503"""
    max_queue_wait_s: PositiveFloat = 5.0
    """Longest predicted wait in seconds; requests that would wait longer get 503"""
    max_images_per_request: PositiveInt = 16
    """Largest number of images in one request"""
    max_upload_bytes: PositiveInt = 32 * 2**20
    """Largest body of one request, in bytes"""
    keep_alive_s: PositiveInt = 75
    """Seconds until an idle connection is closed; more than a balancer in front keeps it"""
    receive_timeout_s: PositiveFloat = 15.0
    """Longest time for a request's body to arrive, in seconds"""
    request_timeout_s: PositiveFloat = 30.0
    """Longest time for an answer, in seconds; `X-Request-Timeout` may ask for less"""
    max_image_pixels: PositiveInt = 50_000_000
    """Largest width times height of one image, in pixels"""
    model_threads: NonNegativeInt = 0
    """Cores for the model, and as many for drawing, at least two; 0: all allowed ones"""
    decode_workers: NonNegativeInt = 0
    """Processes that decode; 0: one per allowed core, fewer if a quarter of the memory holds fewer, at least two"""
    unfamiliar: Literal["answer", "refuse"] = "answer"
    """`refuse`: an image below the least familiarity gets 422, unless the request says otherwise; `answer`: labels"""
    least_familiarity: Annotated[float, Field(ge=0, le=1)] = 0.05
    """0 to 1: an image that is less familiar is unfamiliar. So is at most this share of images like the known ones"""
    store: Annotated[str, Field(repr=False)] = "memory"  # it may carry a password
    """Where images and maps are kept: `memory` (this process) or a shared Redis (`redis://`, `rediss://`, `unix://`)"""
    store_max_bytes: NonNegativeInt = 256 * 2**20
    """Memory for images and maps kept in this process, in bytes"""
    store_ttl_s: PositiveFloat = 900.0
    """How long images and maps are kept, in seconds"""
    store_timeout_s: Annotated[float, Field(gt=0, le=10)] = 0.35
    """Longest wait for an answer of Redis, in seconds, a new connection and TLS included"""
    drain_delay_s: NonNegativeFloat = 5.0
    """Seconds of serving after SIGTERM, so that balancers see that it is not ready"""
    drain_timeout_s: NonNegativeInt = 20
    """Seconds after that delay in which requests in progress have to finish"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Log level: `debug`, `info`, `warning` or `error`"""
    log_format: Literal["text", "json"] = "text"
    """Log format: `text`, or `json` with one object per line"""

    @model_validator(mode="after")
    def _has_two_ports(self) -> Self:
        if self.metrics_port and self.metrics_port == self.port:
            raise ValueError("VIT_METRICS_PORT is the same as VIT_PORT: give it another, or do not set it")
        return self

    @field_validator("host", "bundle", mode="before")
    @classmethod
    def _is_not_empty(cls, value: object) -> object:
        if isinstance(value, str) and not value.strip():  # every address of the machine, and the current folder
            raise ValueError("set, but empty: give it a value, or do not set it")
        return value

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


def variable(field: str) -> str:
    """The variable of the environment that sets this field."""
    return f"VIT_{field.upper()}"


def unknown_variables(names: Iterable[str]) -> list[str]:
    """A sentence for each VIT_* variable of the environment that is not a setting."""
    known = [variable(field) for field in Settings.model_fields]
    unknown = [name for name in names if name.startswith("VIT_") and name not in known]
    return [f"{name} is not a setting and has no effect{is_meant(name, known)}" for name in unknown]
