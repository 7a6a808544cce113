"""How this process serves: `VIT_*` environment variables. The bundle's manifest says what the model is."""

import os
import re
from collections.abc import Iterable, MutableMapping, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, Literal, Self

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
MAX_THUMBNAIL_PX = 2048
_ALIKE = 0.75  # from 0 to 1: so much a name has to be like a setting's for that to be meant
_INDENT = "    "
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")  # RFC 6454, 6.2
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_USAGE = """\
usage: [VIT_PORT=8000 ...] python -m app

Serve a bundle over HTTP. Settings are variables of the environment, here with their defaults."""
RENAMED = {  # old names, which this release still takes
    "max_queue_images": "max_images_in_progress",
    "max_intake_bytes": "max_bodies_bytes",
    "worker_threads": "drawing_threads",
}
# Variables that libraries read by themselves, often inherited from another service, and what they would do here.
# Those of OpenTelemetry are documented and stay. ORT_ and the engines' other variables are for those who look for a
# fault in an engine; the known answer tells if they change numbers.
PROPAGATORS = "OTEL_PROPAGATORS"
OF_LIBRARIES = {
    **dict.fromkeys(
        ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"), "prometheus_client would write files to that folder"
    ),
    "WEB_CONCURRENCY": "uvicorn would count processes by it, and this service is one",
    **dict.fromkeys(
        ("PILLOW_ALIGNMENT", "PILLOW_BLOCK_SIZE", "PILLOW_BLOCKS_MAX"),
        "Pillow would keep memory that the limits do not know",
    ),
    "ORT_LOAD_CONFIG_FROM_MODEL": "ONNX Runtime would take options from the bundle in place of these settings",
    "NVIDIA_TF32_OVERRIDE": "a GPU would compute float32 with fewer digits",
}
_OF_MAKE = {"bundle": "BUNDLE", "device": "DEVICE", "port": "PORT"}  # parameters of `make serve`


class Settings(BaseSettings):
    """Every limit of the service; docs/settings.md lists them all. Below each stands what it is."""

    model_config = SettingsConfigDict(
        env_prefix="VIT_", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
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
    gpu: NonNegativeInt = 0
    """Number of the GPU, from 0; `CUDA_VISIBLE_DEVICES` hides some"""
    gpu_memory_bytes: NonNegativeInt = 0
    """Memory of a shared GPU for weights and activations; 0: no limit. CUDA and inputs take some hundred MB more"""
    max_batch: Annotated[int, Field(ge=0, le=512)] = 0
    """Most images at once: side by side on a CPU (0: 8), in one batch on a GPU (0: 64)"""
    max_images_in_progress: PositiveInt = 128
    """Limit of images in progress, waiting ones included, and of large images likewise; further requests get 503"""
    max_queue_wait_s: PositiveFloat = 5.0
    """Longest predicted wait in seconds; requests that would wait longer get 503"""
    max_images_per_request: PositiveInt = 16
    """Largest number of images in one multipart request"""
    max_upload_bytes: PositiveInt = 32 * 2**20
    """Largest body of one request, in bytes"""
    max_bodies_bytes: PositiveInt = 512 * 2**20
    """Bytes of all request bodies together; further requests get 503"""
    keep_alive_s: PositiveInt = 75
    """Seconds until an idle connection is closed; more than a balancer in front keeps it"""
    receive_timeout_s: PositiveFloat = 15.0
    """Longest time for a request's body to arrive, in seconds"""
    request_timeout_s: PositiveFloat = 30.0
    """Longest time for an answer, in seconds; `X-Request-Timeout` may ask for less"""
    max_image_pixels: PositiveInt = 50_000_000
    """Largest width times height of one image, in pixels"""
    max_aspect_ratio: Annotated[float, Field(ge=1)] = 64.0
    """Largest ratio of an image's long side to its short side"""
    model_threads: NonNegativeInt = 0
    """Cores for the model; 0: all allowed ones"""
    drawing_threads: NonNegativeInt = 0
    """Threads that draw maps; 0: one per allowed core, at least two"""
    max_drawings: PositiveInt = 64
    """Limit of maps, walls and reports in progress; further ones get 503"""
    decode_workers: NonNegativeInt = 0
    """Processes that decode; 0: one per allowed core, fewer if a quarter of the memory holds fewer, at least two"""
    decode_timeout_s: PositiveFloat = 5.0
    """Longest time that a decoder works on one image, in seconds; then it is killed"""
    max_decode_pixels: NonNegativeInt = 0
    """Pixels of large images decoded at once; 0: what fits a quarter of the available memory"""
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
    store_connect_timeout_s: Annotated[float, Field(gt=0, le=10)] = 0.2
    """Longest wait for a new connection to Redis, TLS included, in seconds"""
    store_timeout_s: Annotated[float, Field(gt=0, le=10)] = 0.15
    """Longest wait for an answer of Redis, or for a free connection to it, in seconds"""
    store_connections: PositiveInt = 16
    """Largest number of connections to Redis"""
    thumbnail_px: Annotated[int, Field(ge=16, le=MAX_THUMBNAIL_PX)] = 640
    """Largest side, in pixels, of the thumbnail that maps are drawn on. A larger image is shrunk by a whole factor"""
    drain_delay_s: NonNegativeFloat = 5.0
    """Seconds of serving after SIGTERM, so that balancers see that it is not ready"""
    drain_timeout_s: NonNegativeInt = 20
    """Seconds after that delay in which requests in progress have to finish"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Log level: `debug`, `info`, `warning` or `error`"""
    log_format: Literal["text", "json"] = "text"
    """Log format: `text`, or `json` with one object per line"""

    @model_validator(mode="before")
    @classmethod
    def _take_old_names(cls, given: dict[str, Any]) -> dict[str, Any]:
        for old, new in RENAMED.items():
            value = given.pop(old, os.environ.get(f"VIT_{old.upper()}"))
            if value is not None and str(given.setdefault(new, value)) != str(value):
                raise ValueError(f"VIT_{new.upper()} and its old name VIT_{old.upper()} differ: set only the new one")
        return given

    @model_validator(mode="after")
    def _has_two_ports(self) -> Self:
        if self.metrics_port and self.metrics_port == self.port:
            raise ValueError(f"VIT_METRICS_PORT is the same as {variable('port')}: give it another, or do not set it")
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
    """What a person sets to change this field. Under make, that is a parameter of `make serve` where it has one."""
    name = f"VIT_{field.upper()}"
    return _OF_MAKE.get(field, name) if "MAKELEVEL" in os.environ else name


def described() -> str:
    """Every setting with its default and its meaning, for a terminal."""
    lines = [_USAGE]
    for name, field in Settings.model_fields.items():
        default = os.path.relpath(DEMO_BUNDLE) if field.default == DEMO_BUNDLE else field.default
        meaning = fill(
            (field.description or "").replace("`", ""), 100, initial_indent=_INDENT, subsequent_indent=_INDENT
        )
        lines += ["", f"VIT_{name.upper()} ({default if default not in (None, '', ()) else 'none'})", meaning]
    return "\n".join(lines)


def not_arguments(given: Sequence[str]) -> str:
    """Why `given` is refused on the command line, with the settings that may be meant."""
    fields = {name.upper(): name for name in Settings.model_fields} | {old.upper(): RENAMED[old] for old in RENAMED}
    words = [word for argument in given for word in argument.split("=", 1)]
    meant = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name = word.lstrip("-").upper().replace("-", "_").removeprefix("VIT_")
        if word.startswith(("-", "VIT_")) and (near := get_close_matches(name, fields, n=1, cutoff=_ALIKE)):
            field = fields[near[0]]
            shown = Settings.model_fields[field].repr and not following.startswith("-")
            meant.append(f"VIT_{field.upper()}={following if shown else '...'}")
    if not meant and os.path.exists(given[0]):  # noqa: PTH110 (False too for what cannot be a name)
        meant = [f"VIT_BUNDLE={given[0]}"]
    question = f" Is {' '.join(meant)} python -m app meant?" if meant else ""
    first = given[0].partition("=")[0]
    return f"{first} is not an argument: settings are variables of the environment.{question} --help lists all of them"


def unknown_variables(names: Iterable[str]) -> list[str]:
    """A sentence for each VIT_* variable of the environment that is not a setting, or has an old name."""
    known = [f"VIT_{field.upper()}" for field in Settings.model_fields]
    renamed = {f"VIT_{old.upper()}": f"VIT_{new.upper()}" for old, new in RENAMED.items()}
    return [
        f"{name} is now {renamed[name]}: change it, because the next release ignores the old name"
        if name in renamed
        else f"{name} is not a setting and has no effect{is_meant(name, known, renamed)}"
        for name in names
        if name.startswith("VIT_") and name not in known
    ]


def take_away(environment: MutableMapping[str, str]) -> list[str]:
    """Take OF_LIBRARIES out of the environment, before the libraries are imported. Returns a sentence for each that was
    there.
    """
    there = [name for name in OF_LIBRARIES if environment.pop(name, None) is not None]
    said = [f"{name} has no effect: {OF_LIBRARIES[name]}" for name in there]
    if lacking := _lacking(environment.get(PROPAGATORS, "")):
        del environment[PROPAGATORS]  # OpenTelemetry would end the process while it is imported
        said.append(f"{PROPAGATORS} has no effect: {lacking} is not installed, and traces continue by W3C's headers")
    return said


def _lacking(propagators: str) -> str:
    """The first of these propagators of OpenTelemetry that no package provides; empty if all are there."""
    names = [name.strip() for name in propagators.split(",")] if propagators else []
    known = {entry.name for entry in entry_points(group="opentelemetry_propagator")} if names else set()
    return next((name for name in names if name.lower() != "none" and name not in known), "")
