"""Takes the images out of a request's body: raw bytes, the file parts of a form, or JSON. Writes nothing to disk.

The door bounds a body in bytes and in time. The bytes of a single image have no limit of their own, because the cost of
an image is its pixels.
"""

from typing import Any

from fastapi import Request
from starlette.formparsers import MultiPartException, MultiPartParser

from app.api.body.json_images import Parameters, read_json
from app.api.body.json_reader import JsonReader
from app.errors import MalformedRequest, UnsupportedType
from app.images.upload import Upload

MAX_FIELDS = 16  # parts of a form that are not files; they are ignored
MAX_FIELD_BYTES = 64 * 1024


async def read_body(request: Request, reader: JsonReader, *, max_images: int) -> tuple[list[Upload], Parameters]:
    """Every image in the body, in order, and the parameters that JSON may have beside them.

    Every content type but JSON's and those of forms is taken for the image itself. Raises MalformedRequest,
    InvalidParameter, UnsupportedType for a form that cannot carry images, ClientDisconnect, and what admission and the
    door raise.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json":
        return await read_json(request, reader, max_images=max_images)
    if kind == "multipart/form-data":
        return await _form_images(request, max_images), Parameters()
    if kind.startswith("multipart/"):
        raise UnsupportedType("Send the image itself as the body, or images as parts of multipart/form-data.")
    upload = Upload()
    async for piece in request.stream():
        upload.add(piece)
    return [upload], Parameters()


async def _form_images(request: Request, max_images: int) -> list[Upload]:
    """python-multipart takes at most 8 header fields of 4 KiB in a part, and a boundary of at most 256 characters."""
    parser = _FormParser(
        request.headers, request.stream(), max_files=max_images, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES
    )
    try:
        await parser.parse()
    except MultiPartException as error:
        if error.message.startswith("Too many files"):
            raise MalformedRequest(f"The form has too many images: send at most {max_images} in one request.") from None
        raise MalformedRequest(f"The multipart body is broken, or has more than {MAX_FIELDS} other parts.") from None
    finally:
        parser.close()
    if not parser.uploads:
        raise MalformedRequest("The form has no file. In curl, an @ sends the file of a name: -F image=@photo.jpg.")
    return parser.uploads


class _FormParser(MultiPartParser):
    """Keeps files as uploads. Starlette would write them to files, which grow by copies or go to the disk."""

    def __init__(self, *args: Any, **limits: Any) -> None:
        super().__init__(*args, **limits)
        self.uploads: list[Upload] = []  # of the parts that have ended
        self._upload = Upload()

    def close(self) -> None:
        """Starlette leaves the file of a part that is cut off open."""
        for file in self._files_to_close_on_error:
            file.close()

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        file = self._current_part.file
        self._upload = Upload(name=(file and file.filename) or None)

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._current_part.file is None:
            super().on_part_data(data, start, end)
        else:
            self._upload.add(memoryview(data)[start:end])

    def on_part_end(self) -> None:
        super().on_part_end()
        if self._current_part.file is not None:
            self.uploads.append(self._upload)
