"""app/backend.py: the watch of the weights, on a file system that fails now and then."""

import asyncio
import errno
import os
from types import SimpleNamespace

from app.backend import CHANGED, Backend


def test_weights_that_cannot_be_watched_are_told_once_and_watched_again(monkeypatch, caplog):
    seen = iter([errno.ESTALE, errno.ESTALE, None, errno.ESTALE, True])
    failures = []

    def changed() -> bool:
        if (now := next(seen)) and now is not True:
            raise OSError(now, os.strerror(now))
        return now is True

    monkeypatch.setattr("app.backend.WATCH_S", 0)
    backend = SimpleNamespace(
        bundle=SimpleNamespace(weights_changed=changed), runner=SimpleNamespace(fail=failures.append)
    )
    asyncio.run(Backend.watch_weights(backend))
    assert failures == [CHANGED]
    assert caplog.messages == ["the file of the model's weights cannot be watched: Stale file handle"] * 2
