"""Images in a form: the parts with the name of a file, or the type of an image. Other parts are parameters, and so are
those that some clients give a name of a file. Writes nothing to disk.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Mapping
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any
from urllib.parse import unquote

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from app.api.parameters import Given
from app.errors import MalformedRequest
from app.images.upload import Upload

MAX_FIELDS = 16  # parts of a form that are not files, and those of a browser's form in which no file was chosen
MAX_FIELD_BYTES = 64 * 1024
BROKEN = "The multipart body is broken."
REFUSALS = {  # by how Starlette's message begins
    "Too many files": "The form has too many images: send at most {max_images} in one request.",
    "Too many fields": f"The form has more than {MAX_FIELDS} fields besides its files.",
    "Part exceeded": f"A field of the form is larger than {MAX_FIELD_BYTES:,} bytes.",
    "The Content-Disposition": "A part of the form has no name.",
}
STEP_BYTES = 2**14
IMAGE = re.compile(rb"image/|application/octet-stream")
_BLOB = b"blob"  # the name that browsers give to a Blob in FormData: XMLHttpRequest, 3.3
_ENCODED_NAME = re.compile(r"(?:=\?utf-8\?[bq]\?[^?\s]*\?=\s*)+", re.IGNORECASE)  # RFC 2047, as .NET writes it
_EXTENDED_NAME = re.compile(rb";\s*filename\*\s*=\s*UTF-8'[\w-]*'([^\s;]+)", re.IGNORECASE)  # RFC 8187


async def read_form(request: Request, *, parameters: Collection[str], max_images: int) -> tuple[list[Upload], Given]:
    """The images of a form, in order, and its parameters, of which `parameters` are those that the path takes. One of
    these that is left blank is not given: a browser sends every text field of a form.

    python-multipart takes at most 8 header fields of 4 KiB in a part, and a boundary of at most 256 characters. Raises
    MalformedRequest, ClientDisconnect, and what the door raises.
    """
    # Without a charset: Python would keep the name of each that it does not know.
    boundary = parse_options_header(request.headers["Content-Type"])[1].get(b"boundary", b"").decode("latin-1")
    if not boundary:
        raise MalformedRequest("The content type of the form has no boundary.")
    quoted = boundary.replace("\\", "\\\\").replace('"', '\\"')
    parser = _FormParser(
        Headers({"Content-Type": f'multipart/form-data; boundary="{quoted}"'}),
        _in_steps(request.stream()),
        parameters=parameters,
        max_files=max_images,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_FIELD_BYTES,
    )
    try:
        await parser.parse()
    except MultiPartException as error:
        said = next((said for theirs, said in REFUSALS.items() if error.message.startswith(theirs)), None)
        raise MalformedRequest((said or BROKEN).format(max_images=max_images)) from None
    finally:
        for file in parser._files_to_close_on_error:  # Starlette leaves that of a part that is cut off open
            file.close()
    if not parser.ended:
        raise MalformedRequest("The form ends before its last boundary.")
    if not parser.uploads:
        raise MalformedRequest("The form has no file.")
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

    def __init__(self, *args: Any, parameters: Collection[str], **limits: Any) -> None:
        super().__init__(*args, **limits)
        self._parameters = {name.encode() for name in parameters}
        self.uploads: list[Upload] = []  # of the parts that have ended
        self.ended = False
        self._upload = Upload()
        self._may_be_empty = False  # the part is one of a browser's form in which no file may have been chosen

    def on_headers_finished(self) -> None:
        self._charset = "utf-8"  # a header may name any codec of Python, and some take quadratic time
        part = self._current_part
        disposition = part.content_disposition or b""
        options = parse_options_header(disposition)[1]
        type = dict(part.item_headers).get(b"content-type", b"").lower()
        extended = _EXTENDED_NAME.search(disposition)
        named = b"filename" in options or extended
        if self._is_field(options, type):
            part.content_disposition = disposition.replace(b"filename", b"x-filename")
        elif disposition and (named or IMAGE.match(type)):
            # Starlette takes a part without a name of a file for a field; a later filename overrides this one.
            part.content_disposition = disposition.replace(b";", b'; filename="";', 1)
        super().on_headers_finished()
        file = self._current_part.file
        name = file and file.filename
        if extended:  # it goes before the other (RFC 6266, 4.3)
            name = unquote(extended[1].decode("latin-1"), errors="replace")
        elif name and _ENCODED_NAME.fullmatch(name):
            name = _decoded(name)
        self._may_be_empty = bool(named) and not name
        self._upload = Upload(name=name or None)

    def _is_field(self, options: Mapping[bytes, bytes], type: bytes) -> bool:
        """Whether a part is a field in spite of the name of a file: `files={"top_k": "2"}` of requests has that of the
        field, and JSON in a Blob that of all Blobs.
        """
        name, file = options.get(b"name", b""), options.get(b"filename")
        if file == _BLOB:
            return type.startswith(b"application/json")
        return file == name and name in self._parameters and not type.startswith(b"image/")

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._current_part.file is None:
            super().on_part_data(data, start, end)
        else:
            self._upload.add(memoryview(data)[start:end])

    def on_part_end(self) -> None:
        if self._current_part.file is None:
            super().on_part_end()
        elif self._may_be_empty and not len(self._upload):  # no file was chosen (HTML, 4.10.22.5)
            self._current_files -= 1
            self._current_fields += 1
            if self._current_fields > self.max_fields:
                raise MultiPartException("Too many fields")
        else:
            self.uploads.append(self._upload)

    def on_end(self) -> None:
        self.ended = True


def _decoded(name: str) -> str:
    try:
        return str(make_header(decode_header(name)))
    except (ValueError, HeaderParseError):
        return name
