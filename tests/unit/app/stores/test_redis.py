"""app/stores/redis.py without a server: tests/integration/test_redis_store.py has one."""

from ssl import CERT_REQUIRED, SSLCertVerificationError

import pytest
from redis.exceptions import AuthenticationError, BusyLoadingError, ConnectionError, MovedError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from app.errors import CannotStart
from app.settings import Settings
from app.stores.redis import RedisStore, in_a_word, reason_of
from app.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    "host",
    [
        ":se/cret@host",
        "host:secret",
        "host?ssl=secret",
        "host?decode_responses=1",
        "user:p@ss/secret:rd@host",
        "host/secret",
    ],
)
def test_what_is_no_address_is_refused_without_a_part_of_the_password(host):
    with pytest.raises(CannotStart, match=r"^VIT_STORE is not a Redis address") as refused:
        RedisStore(settings=Settings(store=f"redis://{host}"), namespace="digest", metrics=Metrics())
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("address", ["redis://:%2F%3F@host:1/2", "unix:///a.sock"])
def test_an_address_is_taken(address):
    RedisStore(settings=Settings(store=address), namespace="digest", metrics=Metrics())


def test_over_tls_the_name_and_the_authority_are_checked():
    address = "rediss://host?ssl_ca_certs=ca.pem"
    store = RedisStore(settings=Settings(store=address), namespace="digest", metrics=Metrics())
    tls = store._redis.connection_pool.make_connection().ssl_context
    assert (tls.check_hostname, tls.cert_reqs, tls.ca_certs) == (True, CERT_REQUIRED, "ca.pem")


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason", "word"),
    [
        (MovedError("42 127.0.0.1:7000", status_code="MOVED"), "refused", "MOVED"),
        (AuthenticationError("a secret", status_code="WRONGPASS"), "refused", "WRONGPASS"),
        (ResponseError("MISCONF Redis is configured to save"), "refused", "MISCONF"),
        (ResponseError("something new, with a secret"), "refused", "ResponseError"),
        (BusyLoadingError("Redis is loading", status_code="LOADING"), "no-connection", "LOADING"),
        (ConnectionError("Error 111 connecting to secret"), "no-connection", "ConnectionError"),
        (caused(ConnectionError("a secret"), SSLCertVerificationError()), "no-connection", "SSLCertVerificationError"),
        (RedisTimeout("a secret"), "timeout", "TimeoutError"),
        (TimeoutError(), "timeout", "TimeoutError"),
    ],
)
def test_a_failure_has_a_reason_and_a_word_of_its_own(error, reason, word):
    assert (reason_of(error), in_a_word(error)) == (reason, word)
