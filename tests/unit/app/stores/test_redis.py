"""app/stores/redis.py without a server: tests/integration/test_redis_store.py has one."""

import pytest

from app.errors import CannotStart
from app.settings import Settings
from app.stores.redis import RedisStore
from app.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    "address",
    [
        "redis://:se/cret@host",
        "redis://host:secret",
        "redis://host?db=secret",
        "redis://host?ssl=secret",
        "redis://host?decode_responses=1",
    ],
)
def test_what_is_no_address_is_refused_without_a_part_of_the_password(address):
    with pytest.raises(CannotStart, match=r"^VIT_STORE is no address") as refused:
        RedisStore(settings=Settings(store=address), model="digest", metrics=Metrics())
    assert "cret" not in str(refused.value)
