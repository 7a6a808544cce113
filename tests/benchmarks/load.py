"""`python -m tests.benchmarks.load URL SECONDS CONNECTIONS`: closed-loop load on loopback, answered as JSON.

HTTP/1.1 is written by hand on plain sockets: on a machine that also runs the server, a client library's own processor
time would be measured with it.
"""

import asyncio
import json
import statistics
import sys
import time
from urllib.parse import urlsplit

from tests.benchmarks.pictures import jpeg


async def connection(host: str, port: int, path: str, deadline: float, latencies: list[float]) -> None:
    body = jpeg()
    request = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    reader, writer = await asyncio.open_connection(host, port)
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        latencies.append(1000 * (time.perf_counter() - start))
    writer.close()


async def load(url: str, seconds: float, connections: int) -> dict[str, float]:
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}"
    assert parts.hostname == "127.0.0.1"
    latencies: list[float] = []
    start = time.perf_counter()
    workers = (
        connection(parts.hostname, parts.port or 80, path, start + seconds, latencies) for _ in range(connections)
    )
    await asyncio.gather(*workers)
    elapsed = time.perf_counter() - start
    latencies.sort()
    return {
        "images": len(latencies),
        "images_per_s": len(latencies) / elapsed,
        "p50_ms": statistics.median(latencies),
        "p99_ms": latencies[int(0.99 * len(latencies))],
        "generator_cpu_s": time.process_time(),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(load(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))))
