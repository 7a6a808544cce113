"""Takes the images out of a request's body: raw bytes, or the file parts of a form. Never touches the disk."""

from collections.abc import AsyncGenerator

from fastapi import Request
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from app.errors import BodyTooLarge, MalformedRequest, UnsupportedType

MAX_FIELDS = 16  # parts of a form that are not files; they are ignored
MAX_FIELD_BYTES = 64 * 1024


async def read_images(request: Request, *, max_bytes: int, max_images: int) -> list[bytes]:
    """The bytes of every image in the body, in order.

    Raises BodyTooLarge, MalformedRequest, UnsupportedType for a content type that cannot carry images.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("multipart/") and kind != "multipart/form-data"):
        raise UnsupportedType("Send the image itself as the body, or images as parts of multipart/form-data.")
    body = _bounded(request, max_bytes)
    if kind != "multipart/form-data":
        return [b"".join([chunk async for chunk in body])]
    return await _form_images(request.headers, body, max_bytes=max_bytes, max_images=max_images)


async def _bounded(request: Request, max_bytes: int) -> AsyncGenerator[bytes, None]:
    """The body in chunks. Raises BodyTooLarge before reading anything if the length is declared, else on the way."""
    too_large = BodyTooLarge(f"A request may have {max_bytes} bytes.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise too_large
    received = 0
    try:
        async for chunk in request.stream():
            received += len(chunk)
            if received > max_bytes:
                raise too_large
            yield chunk
    except ClientDisconnect:
        raise MalformedRequest("The body ended early.") from None


async def _form_images(
    headers: Headers, body: AsyncGenerator[bytes, None], *, max_bytes: int, max_images: int
) -> list[bytes]:
    parser = MultiPartParser(headers, body, max_files=max_images, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES)
    parser.spool_max_size = max_bytes + 1  # the body is bounded: no part of it spills to a file
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError):
        raise MalformedRequest(f"The multipart body is broken or has more than {max_images} images.") from None
    try:
        images = [await value.read() for _, value in form.multi_items() if isinstance(value, UploadFile)]
    finally:
        await form.close()
    if not images:
        raise MalformedRequest("The form has no image: send each as a file part.")
    return images
