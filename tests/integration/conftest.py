"""Servers in processes of their own, which tests with clients of others share."""

from collections.abc import Iterator

import pytest

from tests.support.processes import served

KEY = "a-key"


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The address of one with default settings."""
    with served() as server:
        yield server.url


@pytest.fixture(scope="session")
def guarded_url() -> Iterator[str]:
    """The address of one that asks for KEY."""
    with served(api_keys=KEY) as server:
        yield server.url
