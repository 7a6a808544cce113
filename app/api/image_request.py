"""Read, run and log the images of a request."""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from app.api.body.form import read_form
from app.api.body.json_images import JSON_BODY, Parameters, read_json
from app.api.disconnect import cancel_on_disconnect
from app.api.representation import BINARY
from app.api.services import Services
from app.classifier import Image, Outcome, Processed
from app.errors import DeadlineExceeded, ServiceError, UnsupportedType, UnusableImage
from app.images.upload import Upload
from app.telemetry.logs import access_log

IMAGE_BODY: dict[str, Any] = {  # of OpenAPI; the image itself may be called by any type, and generators know this one
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {"schema": BINARY},
            "multipart/form-data": {
                "schema": {
                    "title": "ImageForm",
                    "type": "object",
                    "properties": {"image": {"type": "array", "items": BINARY}},
                    "required": ["image"],
                }
            },
            "application/json": {"schema": JSON_BODY},
        },
    }
}
CURL_D = "In curl, --data-binary @FILE sends a file as it is: -d removes some of its bytes."
MAX_HASHED_ON_LOOP_BYTES = 2**18  # hashing a larger image would block the event loop for a millisecond or more


@dataclass(frozen=True)
class ImageRequest:
    """A request that brings images, and the services that it needs."""

    request: Request
    services: Services

    async def read(self, *, max_images: int) -> tuple[list[Upload], Parameters]:
        """Every image in the body, in order, and the parameters that JSON may have beside them.

        Every content type but JSON's and those of forms is taken for the image itself. Its bytes have no limit of their
        own, because the cost of an image is its pixels. Raises MalformedRequest, InvalidParameter, UnsupportedType for
        a form that cannot carry images, ClientDisconnect, and what admission and the door raise.
        """
        kind = self.request.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind == "application/json":
            return await read_json(self.request, self.services.json_reader, max_images=max_images)
        if kind == "multipart/form-data":
            return await read_form(self.request, max_images=max_images), Parameters()
        if kind.startswith("multipart/"):
            raise UnsupportedType("Send the image itself as the body, or images as parts of multipart/form-data.")
        upload = Upload()
        async for piece in self.request.stream():
            upload.add(piece)
        return [upload], Parameters()

    async def run(self, images: Sequence[Image], *, attention: bool, success: str) -> list[Outcome]:
        """Run the model on the images, in order, and keep the maps of each if `attention`.

        `success` counts the images that succeed in the metrics. Raises ClientDisconnect, and what admission raises.
        """
        services, state = self.services, self.request.state
        with services.admission.admit(len(images), deadline=state.deadline) as answered:
            process = partial(services.classifier.process, keep=attention, deadline=state.deadline, stages=state.stages)
            running = asyncio.gather(*map(process, images))
            try:
                outcomes = await cancel_on_disconnect(self.request, running)
            except ClientDisconnect:
                services.metrics.images.labels("abandoned").inc(len(images))
                raise
            if any(isinstance(outcome, Processed | DeadlineExceeded) for outcome in outcomes):
                answered()  # images that never reach the model say nothing about the wait for it
        if self.request.headers.get("content-type") == "application/x-www-form-urlencoded":
            outcomes = [_from_curl_d(*pair) for pair in zip(images, outcomes, strict=True)]
        for outcome in outcomes:
            services.metrics.images.labels(outcome.kind if isinstance(outcome, ServiceError) else success).inc()
        if access_log.isEnabledFor(logging.INFO):
            pairs = zip(images, outcomes, strict=True)
            state.images = [await self._log_entry(image, outcome) for image, outcome in pairs]
        return outcomes

    async def _log_entry(self, image: Image, outcome: Outcome) -> dict[str, object]:
        """Enough to recognise an image, and nothing of its content."""
        size = len(image) if isinstance(image, Upload) else image.nbytes
        checksum = image.sha256 if isinstance(image, Upload) else hashlib.sha256(image.data).digest
        if size <= MAX_HASHED_ON_LOOP_BYTES:
            digest = checksum()
        else:
            digest = await asyncio.to_thread(checksum)  # not behind drawings, which `cpu_pool` has queued
        known = {"sha256": digest.hex()[:16], "bytes": size}
        if isinstance(outcome, ServiceError):
            return {**known, "problem": outcome.kind}
        width, height = outcome.size
        return {**known, "width": width, "height": height, "format": outcome.format}


def _from_curl_d(image: Image, outcome: Outcome) -> Outcome:
    """Says what to do if curl's -d has taken line ends and zeros away: every image file has zeros among its first
    bytes.
    """
    if not isinstance(outcome, UnsupportedType | UnusableImage) or not isinstance(image, Upload):
        return outcome
    return outcome if b"\0" in bytes(next(image.parts())) else type(outcome)(f"{outcome.detail} {CURL_D}")
