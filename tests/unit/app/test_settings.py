"""app/settings.py: VIT_* variables."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.machine import allowed_cores
from app.settings import Settings


def test_variables_of_the_environment_are_read(monkeypatch):
    monkeypatch.setenv("VIT_PORT", "9001")
    monkeypatch.setenv("VIT_BUNDLE", "bundles/mine")
    assert (Settings().port, Settings().bundle) == (9001, Path("bundles/mine"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("port", 70_000), ("device", "tpu"), ("max_batch", 0), ("store_ttl_s", 0), ("store", "postgres://x")],
)
def test_nonsense_is_refused_by_name(name, value):
    with pytest.raises(ValidationError, match=name):
        Settings(**{name: value})


@pytest.mark.parametrize("store", ["redis://host:6379/1", "rediss://user:secret@host", "unix:///run/redis.sock"])
def test_an_address_of_redis_is_taken_and_not_shown(store):
    settings = Settings(store=store)
    assert settings.store == store
    assert store not in repr(settings)


def test_at_least_one_core_is_allowed():
    assert allowed_cores() >= 1
