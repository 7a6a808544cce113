"""app/stores/redis.py without a server: tests/integration/test_redis_store.py has one."""

import pytest

from app.errors import CannotStart
from app.settings import Settings
from app.stores.redis import RedisStore
from app.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    "host", [":se/cret@host", "host:secret", "host?db=secret", "host?ssl=secret", "host?decode_responses=1"]
)
def test_what_is_no_address_is_refused_without_a_part_of_the_password(host):
    with pytest.raises(CannotStart, match=r"^VIT_STORE is no address") as refused:
        RedisStore(settings=Settings(store=f"redis://{host}"), model="digest", metrics=Metrics())
    assert "cret" not in str(refused.value)
