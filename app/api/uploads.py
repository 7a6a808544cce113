"""Takes the images out of a request's body: raw bytes, the file parts of a form, or JSON. Writes nothing to disk.

The door bounds a body in bytes and in time. The bytes of a single image have no limit of their own, because the cost of
an image is its pixels.
"""

from typing import Any

from fastapi import Request
from starlette.formparsers import MultiPartException, MultiPartParser

from app.api.json_images import read_json
from app.api.json_reader import JsonReader
from app.errors import MalformedRequest, UnsupportedType
from app.images.upload import Upload

MAX_FIELDS = 16  # parts of a form that are not files; they are ignored
MAX_FIELD_BYTES = 64 * 1024


async def read_images(request: Request, reader: JsonReader, *, max_images: int) -> list[Upload]:
    """Every image in the body, in order.

    Raises MalformedRequest, UnsupportedType for a content type that cannot carry images, ClientDisconnect, and what
    admission and the door raise.
    """
    kind = _kind(request)
    if kind.startswith("multipart/") and kind != "multipart/form-data":
        raise UnsupportedType("Send the image itself as the body, or images as parts of multipart/form-data.")
    if is_json(request):
        uploads, _ = await read_json(request, reader, max_images=max_images)
        return uploads
    return await (_form_images(request, max_images) if kind == "multipart/form-data" else _image(request))


def is_json(request: Request) -> bool:
    """By its content type: every other type but a form is taken for the image itself."""
    return _kind(request) == "application/json"


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def _image(request: Request) -> list[Upload]:
    upload = Upload()
    async for piece in request.stream():
        upload.add(piece)
    return [upload]


async def _form_images(request: Request, max_images: int) -> list[Upload]:
    """python-multipart takes at most 8 header fields of 4 KiB in a part, and a boundary of at most 256 characters."""
    parser = _FormParser(
        request.headers, request.stream(), max_files=max_images, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES
    )
    try:
        await (await parser.parse()).close()
    except MultiPartException:
        raise MalformedRequest(f"The multipart body is broken or has more than {max_images} images.") from None
    if not parser.uploads:
        raise MalformedRequest("The form has no image: send each image as a file part.")
    return parser.uploads


class _FormParser(MultiPartParser):
    """Keeps files as uploads. Starlette would write them to files, which grow by copies or go to the disk."""

    def __init__(self, *args: Any, **limits: Any) -> None:
        super().__init__(*args, **limits)
        self.uploads: list[Upload] = []  # of the parts that have ended
        self._upload = Upload()

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        self._upload = Upload()

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._current_part.file is None:
            super().on_part_data(data, start, end)
        else:
            self._upload.add(memoryview(data)[start:end])

    def on_part_end(self) -> None:
        super().on_part_end()
        if self._current_part.file is not None:
            self.uploads.append(self._upload)
