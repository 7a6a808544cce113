"""Images in a form: the parts with the name of a file, or the type of an image. Other parts are parameters."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from app.api.parameters import Given
from app.errors import MalformedRequest
from app.images.upload import Upload

MAX_FIELDS = 16  # parts of a form that are not files; and as many of a browser's form in which no file was chosen
MAX_FIELD_BYTES = 64 * 1024
MAX_PARAMETERS = 64  # of a Content-Disposition: each costs its parser time
STEP_BYTES = 2**14
_IMAGE = re.compile(rb"image/|application/octet-stream", re.IGNORECASE)
_EXTENDED_NAME = re.compile(rb";\s*filename\*\s*=\s*UTF-8'[\w-]*'([^\s;]+)", re.IGNORECASE)  # RFC 8187


async def read_form(request: Request, *, parameters: Collection[str], max_images: int) -> tuple[list[Upload], Given]:
    """The images of a form, in order, and its parameters, of which `parameters` are those that the path takes. One of
    these that is left blank is not given: a browser sends every text field of a form.

    python-multipart takes at most 8 header fields of 4 KiB in a part, and a boundary of at most 256 characters. Raises
    MalformedRequest, and what the guard raises.
    """
    # Without a charset: Python would keep the name of each that it does not know.
    boundary = parse_options_header(request.headers["Content-Type"])[1].get(b"boundary", b"").decode("latin-1")
    if not boundary:
        raise MalformedRequest("The content type of the form has no boundary.")
    quoted = boundary.replace("\\", "\\\\").replace('"', '\\"')
    parser = _FormParser(
        Headers({"Content-Type": f'multipart/form-data; boundary="{quoted}"'}),
        _in_steps(request.stream()),
        max_files=max_images + MAX_FIELDS,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_FIELD_BYTES,
    )
    try:
        await parser.parse()
    except MultiPartException:
        raise MalformedRequest(
            f"The form is broken, or has more than {max_images} images, {MAX_FIELDS} fields besides them, or "
            f"{MAX_FIELD_BYTES:,} bytes in a field."
        ) from None
    finally:
        for file in parser._files_to_close_on_error:  # Starlette leaves that of a part that is cut off open
            file.close()
    if not parser.ended:
        raise MalformedRequest("The form ends before its last boundary.")
    if not 1 <= len(parser.uploads) <= max_images:
        raise MalformedRequest(f"The form has {len(parser.uploads)} images: send from 1 to {max_images}.")
    fields = [(name, value) for name, value in parser.items if isinstance(value, str)]
    return parser.uploads, [(name, value) for name, value in fields if value or name not in parameters]


async def _in_steps(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """So that a body full of what begins like its boundary does not keep the event loop for long."""
    async for piece in pieces:
        for at in range(0, len(piece), STEP_BYTES):
            yield piece[at : at + STEP_BYTES]
            await asyncio.sleep(0)


class _FormParser(MultiPartParser):
    """Keeps files as uploads. Starlette would write them to files, which grow by copies or go to the disk."""

    def __init__(self, *args: Any, **limits: Any) -> None:
        super().__init__(*args, **limits)
        self.uploads: list[Upload] = []  # of the parts that have ended
        self.ended = False

    def on_headers_finished(self) -> None:
        part = self._current_part
        disposition = part.content_disposition or b""
        if disposition.count(b";") > MAX_PARAMETERS:
            raise MultiPartException("too many parameters")  # `read_form` has the sentence
        options = parse_options_header(disposition)[1]
        name = options.get(b"filename")
        if extended := _EXTENDED_NAME.search(disposition):  # it goes before the other (RFC 6266, 4.3)
            name = unquote_to_bytes(extended[1])
        self._unchosen = name == b""  # in a browser's form, if the part is empty too (HTML, 4.10.22.5)
        if name is None and disposition and _IMAGE.match(dict(part.item_headers).get(b"content-type", b"")):
            name = b""
        if name is not None:  # Starlette takes a part without the name of a file for a field
            part.content_disposition = disposition.replace(b";", b'; filename="";', 1)
        super().on_headers_finished()
        self._upload = Upload(name=(name or b"").decode(errors="replace") or None)

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._current_part.file is None:
            super().on_part_data(data, start, end)
        else:
            self._upload.add(data[start:end])

    def on_part_end(self) -> None:
        if self._current_part.file is None:
            super().on_part_end()
        elif self._upload.pieces or not self._unchosen:
            self.uploads.append(self._upload)

    def on_end(self) -> None:
        self.ended = True
