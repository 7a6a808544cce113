"""A client that sends any bytes, valid HTTP or not."""

import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

JPEG, JSON = "Content-Type: image/jpeg", "Content-Type: application/json"


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]  # by name in lower case
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """Reading raises ConnectionResetError when the server resets, TimeoutError after `timeout_s` without a byte."""

    def __init__(self, port: int, *, timeout_s: float = 20) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send as much as the server accepts. When it has closed its side, its answer says why."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def answer(self, *, to: str = "GET") -> Answer | None:
        """The next answer, or None when the server has closed."""
        line = self._file.readline()
        if not line:
            return None
        status = int(line.split()[1])
        headers = {}
        while (field := self._file.readline().rstrip(b"\r\n")) != b"":
            name, value = field.decode("latin-1").split(":", 1)
            headers[name.lower()] = value.strip()
        if status < 200:
            return Answer(status=status, headers=headers, body=b"")
        bare = to == "HEAD" or status in (204, 304)
        body = b"" if bare else self._file.read(int(headers.get("content-length", 0)))
        return Answer(status=status, headers=headers, body=body)

    def answers(self) -> list[Answer]:
        """All answers until the server closes."""
        received = []
        while (answer := self.answer()) is not None:
            received.append(answer)
        return received


def message(line: str, *fields: str, body: bytes = b"") -> bytes:
    """A request whose only field besides `fields` is Host."""
    return "\r\n".join([f"{line} HTTP/1.1", "Host: x", *fields, "", ""]).encode("latin-1") + body


def post(body: bytes, *fields: str, path: str = "/classify") -> bytes:
    return message(f"POST {path}", f"Content-Length: {len(body)}", *fields, body=body)


def form(*parts: bytes, path: str = "/classify") -> bytes:
    """POST with a multipart body; a part is its header, an empty line and its content."""
    body = b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--\r\n"
    return post(body, "Content-Type: multipart/form-data; boundary=b", path=path)


def file_part(content: bytes, *fields: str, disposition: str = 'name="f"; filename="f"') -> bytes:
    return "\r\n".join([f"Content-Disposition: form-data; {disposition}", *fields, "", ""]).encode() + content


def tensor(path: str, shape: list[int], datatype: str, content: bytes, *, binary_answer: bool = True) -> bytes:
    """In Triton's binary extension, as its own client sends it."""
    parameters = {"binary_data_size": len(content)}
    described = {"name": "images", "shape": shape, "datatype": datatype, "parameters": parameters}
    asked: dict[str, object] = {"inputs": [described]}
    if binary_answer:
        asked["parameters"] = {"binary_data_output": True}
    head = json.dumps(asked).encode()
    length = f"Inference-Header-Content-Length: {len(head)}"
    return post(head + content, "Content-Type: application/octet-stream", length, path=path)
