"""The proxy on the way to a server, as the environment names it: http_proxy, https_proxy, all_proxy and no_proxy."""

import os
from typing import NamedTuple
from urllib.request import getproxies, proxy_bypass

import httpx

from vit_serve_client.address import is_this_machine


class Proxy(NamedTuple):
    url: str  # may have a password
    variable: str  # that names it

    def __str__(self) -> str:
        return f"the proxy {httpx.URL(self.url).copy_with(userinfo=b'')} of {self.variable}"


def proxy_to(server: str) -> Proxy | None:
    """None where requests go direct: without a variable, where no_proxy has the host, and to this machine itself.

    Raises httpx.InvalidURL for a server or a proxy that is not an address.
    """
    url, proxies = httpx.URL(server), getproxies()
    if is_this_machine(url.host) or proxy_bypass(url.host):
        return None
    for scheme in (url.scheme, "all"):
        if address := proxies.get(scheme):
            name = f"{scheme}_proxy"
            variable = next((known for known in (name, name.upper()) if known in os.environ), name)
            return Proxy(str(httpx.URL(address if "://" in address else f"http://{address}")), variable)
    return None
