"""The proxies' lines of docs/deployment.md, for a service under /vit."""

import re
import textwrap
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from tests.benchmarks.page import block
from tests.benchmarks.server import Server, free_port
from tests.load.balancers import listening

PAGE = Path("docs/deployment.md")
NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_buffer_size 1m;
    proxy_buffers 16 64k;
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 404; }}
        {lines}
    }}
}}
"""
HAPROXY = """
defaults
    mode http
    timeout client 15s
    timeout connect 1s
{lines}
"""


def lines(name: str) -> str:
    return textwrap.dedent(block(name, PAGE))


def nginx(replica: int, port: int, folder: Path, *, strip: bool) -> str:
    text, changed = re.subn("(http://127.0.0.1:)8000;", rf"\g<1>{replica}{'/' * strip};", lines("nginx"))
    assert changed == 1
    return NGINX.format(folder=folder, port=port, lines=text)


def haproxy(replica: int, port: int, folder: Path) -> str:
    text = lines("haproxy").replace(":8000", f":{replica}").replace("bind :8080", f"bind 127.0.0.1:{port}")
    return HAPROXY.format(lines=text)


PROXIES = {
    "nginx that leaves the prefix": partial(nginx, strip=False),
    "nginx that takes it away": partial(nginx, strip=True),
    "haproxy": haproxy,
}


def in_front(proxy: str, replica: int, folder: Path) -> AbstractContextManager[Server]:
    """One of PROXIES in front of the port of a replica; its files are in `folder`."""
    port, configuration = free_port(), folder / "configuration"
    configuration.write_text(PROXIES[proxy](replica, port, folder))
    return listening(proxy.split()[0], configuration, port)
