"""How this process serves: `VIT_*` environment variables. What the model is stands in the bundle's manifest."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

DEMO_BUNDLE = Path(__file__).parent / "demo"


class Settings(BaseSettings):
    """Every limit of the service; the README's table lists them all."""

    model_config = SettingsConfigDict(env_prefix="VIT_", frozen=True)

    bundle: Annotated[Path, Field(description="Folder of the bundle to serve")] = DEMO_BUNDLE
    host: Annotated[str, Field(description="Address to listen on")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on")] = 8000
    metrics_port: Annotated[
        int, Field(ge=0, le=65535, description="Port for `/metrics` and the probes alone; 0 puts them at `VIT_PORT`")
    ] = 0
    api_keys: Annotated[
        SecretStr | None,
        Field(description="Keys, comma separated, of which a request must carry one; without any, all may come in"),
    ] = None
    api_keys_file: Annotated[Path | None, Field(description="File with more such keys, one a line")] = None
    device: Annotated[
        Literal["auto", "cuda", "cpu"],
        Field(description="Where the model runs; `cuda` refuses to start without a working GPU"),
    ] = "auto"
    max_batch: Annotated[int, Field(ge=1, le=512, description="Most images in one forward pass")] = 8
    max_queue_images: Annotated[int, Field(ge=1, description="Images in work or waiting before 503 is answered")] = 128
    max_queue_wait_s: Annotated[
        float, Field(gt=0, description="Seconds of waiting, foreseen on arrival, over which 503 is answered")
    ] = 5.0
    max_images_per_request: Annotated[int, Field(ge=1, description="Images in one multipart request")] = 16
    max_upload_bytes: Annotated[int, Field(ge=1, description="Bytes of one request's body")] = 32 * 2**20
    max_intake_bytes: Annotated[
        int, Field(ge=1, description="Bytes of the bodies of all requests in work before 503 is answered")
    ] = 512 * 2**20
    max_connections: Annotated[
        int, Field(ge=1, description="Open connections; on more of them the probes alone are answered")
    ] = 1024
    receive_timeout_s: Annotated[float, Field(gt=0, description="Seconds in which a request's body has to arrive")] = (
        15.0
    )
    request_timeout_s: Annotated[
        float,
        Field(gt=0, description="Seconds after which nobody waits for an answer; `X-Request-Timeout` may say less"),
    ] = 30.0
    max_image_pixels: Annotated[int, Field(ge=1, description="Width times height of one image")] = 50_000_000
    max_aspect_ratio: Annotated[float, Field(ge=1, description="Long side over short side of one image")] = 64.0
    model_threads: Annotated[
        int, Field(ge=0, description="Threads of one forward pass on the CPU; 0 takes every core allowed")
    ] = 0
    worker_threads: Annotated[
        int,
        Field(ge=0, description="Threads that draw maps; 0 takes every core allowed, and two at least"),
    ] = 0
    decode_workers: Annotated[
        int, Field(ge=0, description="Processes that decode pictures; 0 takes every core allowed, and two at least")
    ] = 0
    decode_timeout_s: Annotated[
        float, Field(gt=0, description="Seconds of work on one picture after which its decoder is killed")
    ] = 2.0
    max_decode_pixels: Annotated[
        int,
        Field(
            ge=0,
            description="Pixels of large pictures decoded at a time; 0 takes what fits a quarter of the memory",
        ),
    ] = 0
    store: Annotated[
        str,
        Field(
            repr=False,  # it may carry a password
            description="Where attention maps are kept: `memory` of this process, or Redis for several replicas: "
            "`redis://`, `rediss://` or `unix://`",
        ),
    ] = "memory"
    store_max_bytes: Annotated[int, Field(ge=0, description="Memory for attention maps kept in this process")] = (
        256 * 2**20
    )
    store_ttl_s: Annotated[float, Field(gt=0, description="Seconds that attention maps are kept")] = 900.0
    thumbnail_px: Annotated[int, Field(ge=16, le=2048, description="Long side of the picture maps are drawn on")] = 512
    drain_delay_s: Annotated[
        float, Field(ge=0, description="Seconds of serving on after SIGTERM, while balancers see that it is not ready")
    ] = 5.0
    drain_timeout_s: Annotated[
        int, Field(ge=0, description="Seconds after that in which requests in work have to finish")
    ] = 20
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Field(description="Least severe log line")] = (
        "info"
    )
    log_format: Annotated[Literal["text", "json"], Field(description="Log lines for people or for machines")] = "text"

    @field_validator("store")
    @classmethod
    def _is_a_place(cls, store: str) -> str:
        if store != "memory" and not store.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("memory, or an address that begins with redis://, rediss:// or unix://")
        return store
