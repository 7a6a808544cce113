import pytest

from export.bundle import write_bundle
from tests.support.switches import JOINED
from tests.support.toy import toy_checkpoint


@pytest.fixture(scope="session")
def switched(once):
    """The bundle of a toy with the switches of JOINED, exported once: `switched(name, "int8")`."""

    def bundle(name, precision="fp32"):
        toy = toy_checkpoint(**JOINED[name])
        return once(f"{name} {precision}", lambda out: write_bundle(toy, out, replace=False, precision=precision))

    return bundle
