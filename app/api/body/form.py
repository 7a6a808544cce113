"""Images in a form: the parts with the name of a file, or the type of an image. Writes nothing to disk."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from app.errors import MalformedRequest
from app.images.upload import Upload

MAX_FIELDS = 16  # parts of a form that are not files; they are ignored
MAX_FIELD_BYTES = 64 * 1024
BROKEN = "The multipart body is broken."
REFUSALS = {  # by how Starlette's message begins
    "Too many files": "The form has too many images: send at most {max_images} in one request.",
    "Too many fields": f"The form has more than {MAX_FIELDS} parts that are no files.",
    "Part exceeded": f"A part of the form that is no file has more than {MAX_FIELD_BYTES:,} bytes.",
}
STEP_BYTES = 2**14
IMAGE = re.compile(rb"image/|application/octet-stream", re.IGNORECASE)


async def read_form(request: Request, *, max_images: int) -> list[Upload]:
    """The images of a form, in order. Raises MalformedRequest, ClientDisconnect, and what the door raises.

    python-multipart takes at most 8 header fields of 4 KiB in a part, and a boundary of at most 256 characters.
    """
    # Without a charset: Python would keep the name of each that it does not know.
    boundary = parse_options_header(request.headers["Content-Type"])[1].get(b"boundary", b"").decode("latin-1")
    quoted = boundary.replace("\\", "\\\\").replace('"', '\\"')
    parser = _FormParser(
        Headers({"Content-Type": f'multipart/form-data; boundary="{quoted}"'}),
        _in_steps(request.stream()),
        max_files=max_images,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_FIELD_BYTES,
    )
    try:
        await parser.parse()
    except MultiPartException as error:
        said = next((said for theirs, said in REFUSALS.items() if error.message.startswith(theirs)), BROKEN)
        raise MalformedRequest(said.format(max_images=max_images)) from None
    finally:
        for file in parser._files_to_close_on_error:  # Starlette leaves that of a part that is cut off open
            file.close()
    if not parser.ended:
        raise MalformedRequest(f"{BROKEN} It ends before its last boundary.")
    if not parser.uploads:
        raise MalformedRequest("The form has no file. With curl, put @ before its name: -F image=@photo.jpg.")
    return parser.uploads


async def _in_steps(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """So that a body full of what begins like its boundary does not keep the event loop for long."""
    async for piece in pieces:
        for start in range(0, len(piece), STEP_BYTES):
            yield piece[start : start + STEP_BYTES]
            await asyncio.sleep(0)


class _FormParser(MultiPartParser):
    """Keeps files as uploads. Starlette would write them to files, which grow by copies or go to the disk."""

    def __init__(self, *args: Any, **limits: Any) -> None:
        super().__init__(*args, **limits)
        self.uploads: list[Upload] = []  # of the parts that have ended
        self.ended = False
        self._upload = Upload()

    def on_headers_finished(self) -> None:
        self._charset = "utf-8"  # a header may name any codec of Python, and some take quadratic time
        part = self._current_part
        if part.content_disposition and IMAGE.match(dict(part.item_headers).get(b"content-type", b"")):
            # Starlette takes a part without a name of a file for a field; a later filename overrides this one.
            part.content_disposition = part.content_disposition.replace(b";", b'; filename="";', 1)
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

    def on_end(self) -> None:
        self.ended = True
