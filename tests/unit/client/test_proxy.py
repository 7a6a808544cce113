"""client/vit_serve_client/proxy.py: which proxy is on the way to a server."""

import pytest

from vit_serve_client.proxy import proxy_to

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        ("http://a.test", {}, None),
        ("http://a.test", {"http_proxy": "http://p:1"}, ("http://p:1", "http_proxy")),
        ("http://a.test", {"HTTP_PROXY": "p:1"}, ("http://p:1", "HTTP_PROXY")),
        ("https://a.test", {"http_proxy": "http://p:1"}, None),
        ("https://a.test", {"all_proxy": "http://p:1"}, ("http://p:1", "all_proxy")),
        ("http://a.test", {"http_proxy": "http://p:1", "no_proxy": "b.test,.test"}, None),
        ("http://a.test", {"http_proxy": "http://p:1", "no_proxy": "*"}, None),
        ("http://a.test", {"http_proxy": ""}, None),
        *((f"http://{host}:8000", {"http_proxy": "http://p:1"}, None) for host in ("localhost", "127.0.0.2", "[::1]")),
    ],
)
def test_the_environment_says_which(monkeypatch, server, environment, expected):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_to(server) == expected
