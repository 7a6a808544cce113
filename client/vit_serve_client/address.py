"""The address of a service, as a person writes it."""

import ipaddress

import httpx


def whole(address: str) -> str:
    """The address; with http:// where that is left out and the host is this machine, as in `localhost:8000`.

    Raises httpx.InvalidURL.
    """
    if "://" in address or not is_this_machine(httpx.URL(f"http://{address}").host):
        return address
    return f"http://{address}"


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")  # RFC 6761, 6.3
