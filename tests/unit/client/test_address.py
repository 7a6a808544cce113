"""client/vit_serve_client/address.py: a person leaves out http:// for this machine."""

import pytest

from vit_serve_client.address import whole
from vit_serve_client.client import Client
from vit_serve_client.options import parser


@pytest.mark.parametrize("host", ["localhost:8000", "localhost", "127.0.0.1:8000/birds", "[::1]:8000", "vit.localhost"])
def test_an_address_of_this_machine_may_begin_with_its_host(host):
    assert whole(host) == f"http://{host}" == parser("vit-serve-client").parse_args([host, "a.png"]).server
    with Client(host) as client:
        assert client.proxy is None


@pytest.mark.parametrize("address", ["https://localhost:8000", "service:8000", "10.0.0.1:8000", "localhost.test", ""])
def test_any_other_stays(address):
    assert whole(address) == address
