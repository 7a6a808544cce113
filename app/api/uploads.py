"""Takes the images out of a request's body: raw bytes, or the file parts of a form. Writes nothing to disk.

The door bounds a body in bytes and in time. The bytes of a single image have no limit of their own, because the cost of
an image is its pixels.
"""

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from app.errors import MalformedRequest, UnsupportedType

MAX_FIELDS = 16  # parts of a form that are not files; they are ignored
MAX_FIELD_BYTES = 64 * 1024


async def read_images(request: Request, *, max_images: int) -> list[bytes]:
    """The bytes of every image in the body, in order.

    Raises MalformedRequest, UnsupportedType for a content type that cannot carry images, ClientDisconnect, and what the
    door raises.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("multipart/") and kind != "multipart/form-data"):
        raise UnsupportedType("Send the image itself as the body, or images as parts of multipart/form-data.")
    return await (_form_images(request, max_images) if kind == "multipart/form-data" else _image(request))


async def _image(request: Request) -> list[bytes]:
    return [b"".join([chunk async for chunk in request.stream()])]


async def _form_images(request: Request, max_images: int) -> list[bytes]:
    """python-multipart takes at most 8 header fields of 4 KiB in a part, and a boundary of at most 256 characters."""
    parser = MultiPartParser(
        request.headers, request.stream(), max_files=max_images, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES
    )
    parser.spool_max_size = 0  # a part of any size stays in memory
    try:
        form = await parser.parse()
    except MultiPartException:
        raise MalformedRequest(f"The multipart body is broken or has more than {max_images} images.") from None
    try:
        images = [await value.read() for _, value in form.multi_items() if isinstance(value, UploadFile)]
    finally:
        await form.close()
    if not images:
        raise MalformedRequest("The form has no image: send each as a file part.")
    return images
