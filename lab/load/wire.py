"""`python -m lab.load.wire SECONDS [SEED]`: good requests and images with changed bytes, sent to a new server.

Prints JSON, and keeps data with which a fault was found in `lab/load/found/`. Fails when the server answers 5xx (except
503 to a deadline that cannot be met), resets a connection without an answer, dies, or keeps descriptors.
"""

import base64
import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab.load.server import descriptors, settled
from tests.catalogue.every import CASES
from tests.catalogue.json_bodies import INFER, bodies
from tests.support.connection import JPEG, JSON, Connection, file_part, form, message, post, tensor
from tests.support.server import Server, family, running

FOUND = Path(__file__).with_name("found")
CLIENTS = 8
OF_IMAGES = 0.4  # share of the requests whose image is changed, and nothing else
MOST_BYTES = 100_000  # of such an image
PATIENCE_S = 0.25  # a server that waits for more of a request sends nothing
RECEIVE_S = 1.0
STORE_BYTES = 2**20  # soon full, so that stored maps do not count as growth
DEADLINE = b"X-Request-Timeout: 0.001"
TOO_LATE = "too late for its deadline"
JSON_BYTES = 2**13  # of each body that tries to cost more than its size
PIXELS = {"name": "images", "datatype": "UINT8", "shape": [1, 64, 64, 3]}
HEAD_BYTES = 400  # of a request, where most changes are made
BYTES = [b"\0", b"\1", b"\x7f", b"\x80", b"\xff"]  # the ends of what a byte can say
TOKENS = [
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\0", b":", b" ", b"\t", b"%", b"%00", b"..", b"/", b"?", b"&", b"=", b";"),
    *(b"--b", b"--b--"),  # between the parts of a form
    *(b"Content-Length: 5\r\n", b"Content-Length: 99999999999999999999\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n"),
    *(b"Connection: close\r\n", b"Connection: upgrade\r\n", b"Upgrade: websocket\r\n"),
    *(b"Expect: 100-continue\r\n", b"Content-Encoding: gzip\r\n", DEADLINE + b"\r\n", b"X-Request-ID: \xff\r\n"),
    *(b"HTTP/1.0", b"HTTP/2.0"),
    *(b"ffffffffffffffff\r\n", b"0\r\n\r\n"),  # sizes of chunks
    *(b"\xff" * 20, b"A" * 20_000),
    *(b"-1", b"1e308", b"[" * 2000, b'"binary_data_size": 9999999999999999999999', b'"attention": true'),  # in JSON
]


def good_requests(image: bytes) -> list[bytes]:
    half = len(image) // 2
    chunks = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (half, image[:half], len(image) - half, image[half:])
    return [
        message("GET /livez"),
        message("GET /model", "Accept: application/json"),
        message("GET /attention/AAAAAAAAAAAAAAAAAAAAAA?layer=1&head=mean&format=json", "If-None-Match: x"),
        message("POST /attention/AAAAAAAAAAAAAAAAAAAAAA/verify?steps=4", "Content-Length: 0"),
        message("GET /page/main.js", "Range: bytes=0-10"),
        post(image, JPEG, "X-Request-ID: fuzz", path="/classify?top_k=3&attention=false"),
        message("POST /classify", "Transfer-Encoding: chunked", "X-Request-Timeout: 5", body=chunks),
        form(file_part(image), file_part(b"x", disposition='name="field"')),
        post(image, "Expect: 100-continue", "Connection: close"),
        post(image, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
        post(image, path="/predict?top_k=2"),
        post(json.dumps({"inputs": base64.b64encode(image).decode()}).encode(), JSON, path="/"),
        message("GET /v2/models/shapes/config"),
        tensor(INFER, [1], "BYTES", len(image).to_bytes(4, "little") + image),
        tensor(INFER, [2, 64, 64, 3], "UINT8", bytes(2 * 64 * 64 * 3)),
        post(json.dumps({"inputs": [{**PIXELS, "data": [7] * 64 * 64 * 3}]}).encode(), path=INFER),
        *(post(body.make(JSON_BYTES), JSON, path=body.path) for body in bodies()),
    ]


def valid_images() -> list[bytes]:
    made = [case.make() for case in CASES.values() if case.statuses == {200}]
    return [data for data in made if len(data) <= MOST_BYTES]


def changed(data: bytes, chance: random.Random, *, tokens: Sequence[bytes], head: int) -> bytes:
    """`data` with one to eight changes, most of them in its first `head` bytes. `tokens` mean something there."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        end = len(out) if chance.random() < 0.2 else min(len(out), head)
        at = chance.randrange(end + 1)
        to = min(len(out), at + chance.choice((1, 2, 10, 100, 1000)))
        token = chance.choice(tokens)
        match chance.randrange(6):
            case 0:
                out[at : at + 1] = bytes(byte ^ 1 << chance.randrange(8) for byte in out[at : at + 1])
            case 1:
                del out[at:to]
            case 2:
                out[at:at] = out[at:to] * chance.choice((1, 2, 50))
            case 3:
                out[at:at] = token
            case 4:
                out[at : at + len(token)] = token
            case _:
                out[at:to] = chance.randbytes(to - at)
    return bytes(out)


def attack(server: Server, data: bytes) -> list[str]:
    """The statuses, then how the connection ended."""
    outcomes = []
    with Connection(server.port, timeout_s=PATIENCE_S) as connection:
        connection.send(data)
        try:
            while (answer := connection.answer()) is not None:
                outcomes.append(TOO_LATE if answer.status == 503 and DEADLINE in data else str(answer.status))
            outcomes.append("closed")
        except TimeoutError:
            outcomes.append("waits")
        except ConnectionResetError:
            outcomes.append("closed" if outcomes else "resets")  # with bytes behind the last request that it answers
    if any(map(is_bad, outcomes)):
        FOUND.mkdir(exist_ok=True)
        (FOUND / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    return outcomes


def is_bad(outcome: str) -> bool:
    return outcome == "resets" or outcome.startswith("5")


def fuzz(server: Server, seconds: float, seed: int) -> dict[str, Any]:
    requests, images = good_requests(Path("docs/star.jpg").read_bytes()), valid_images()
    for data in requests * 20:
        attack(server, data)
    settled(server)
    allocated, open_files, processes = server.anonymous_mib(), descriptors(server.pid), set(family(server.pid))
    until = time.monotonic() + seconds

    def client(number: int) -> Counter[str]:
        chance = random.Random(f"{seed} {number}")
        outcomes: Counter[str] = Counter()
        while time.monotonic() < until and server.poll() is None:
            if chance.random() < OF_IMAGES:
                image = chance.choice(images)
                body = changed(image, chance, tokens=BYTES, head=len(image))
                data, what = post(body, path="/classify?attention=false"), "images"
            else:
                good = b"".join(chance.choices(requests, k=chance.choice((1, 1, 1, 2))))  # one, or two at once
                data, what = changed(good, chance, tokens=TOKENS, head=HEAD_BYTES), "requests"
            outcomes.update([what, *attack(server, data)])
        return outcomes

    with ThreadPoolExecutor(CLIENTS) as pool:
        outcomes = sum(pool.map(client, range(CLIENTS)), Counter())
    same, well = server.poll() is None, attack(server, requests[5])[0] == "200"
    settled(server)
    return {
        "seconds": seconds,
        "seed": seed,
        **{name: outcomes.pop(name, 0) for name in ("requests", "images", "resets", "closed", "waits")},
        "statuses": dict(sorted(outcomes.items())),
        "good_afterwards": well,
        "same_process": same,
        "decoders_replaced": len(set(family(server.pid)) - processes),
        "allocated_mib": round(allocated, 1),
        "growth_mib": round(server.anonymous_mib() - allocated, 1),
        "descriptors_growth": descriptors(server.pid) - open_files,
        "tracebacks": server.output().count("Traceback"),
    }


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 0
    with running(receive_timeout_s=RECEIVE_S, store_max_bytes=STORE_BYTES, log_level="error") as server:
        report = fuzz(server, seconds, seed)
    print(json.dumps(report, indent=2))
    bad = report["resets"] or report["tracebacks"] or report["descriptors_growth"]
    sys.exit(bool(bad) or any(map(is_bad, report["statuses"])) or not report["good_afterwards"])


if __name__ == "__main__":
    main()
