"""Optional API keys: RFC 6750 bearer tokens, or X-API-Key."""

import hashlib
import hmac
import logging
import re
from collections.abc import Iterable
from pathlib import Path

from starlette.requests import HTTPConnection

from app.door.paths import METRICS, is_public
from app.errors import CannotStart, Unauthorized
from app.settings import Settings

log = logging.getLogger(__name__)

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # token68 of RFC 9110, 11.2


def read_keys(listed: str | None, file: Path | None) -> list[str]:
    """Keys from a comma separated list and from a file with one per line; None where that is not set.

    Raises CannotStart, also for one that is set and has no key: without keys the service would be open.
    """
    keys = [key.strip() for key in (listed or "").split(",")]
    if listed is not None and not any(keys):
        raise CannotStart("VIT_API_KEYS has no key. To serve without keys, do not set it.")
    if file is not None:
        try:
            lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
        except (OSError, UnicodeDecodeError):
            raise CannotStart("VIT_API_KEYS_FILE cannot be read.") from None
        if not any(lines):
            raise CannotStart("VIT_API_KEYS_FILE has no key. To serve without keys, do not set it.")
        keys += lines
    keys = [key for key in keys if key]
    if not all(_TOKEN.fullmatch(key) for key in keys):
        raise CannotStart("An API key consists of letters, digits and . _ ~ + / -, with = at its end only.")
    return keys


class ApiKeys:
    """Without keys every request passes. Several keys allow rotation: add the new one, then remove the old one."""

    def __init__(self, keys: Iterable[str], *, metrics_port: int) -> None:
        self._digests = [_digest(key) for key in keys]
        self._open_metrics = bool(metrics_port)  # the network keeps strangers from a port of its own

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, request: HTTPConnection) -> None:
        """Raises Unauthorized."""
        path = request.scope["path"]
        if not self._digests or is_public(request.scope["method"], path) or (path == METRICS and self._open_metrics):
            return
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        given = [token.strip() if scheme.lower() == "bearer" else "", request.headers.get("X-API-Key", "")]
        # Every pair is compared, each in constant time, so the time taken reveals nothing about a key.
        matches = [hmac.compare_digest(_digest(key), known) for key in given for known in self._digests]
        if not any(matches):
            raise Unauthorized("Send an API key as Authorization: Bearer or as X-API-Key.")


def open_keys(settings: Settings) -> ApiKeys:
    """The keys of the settings. Raises CannotStart."""
    listed = None if settings.api_keys is None else settings.api_keys.get_secret_value()
    keys = ApiKeys(read_keys(listed, settings.api_keys_file), metrics_port=settings.metrics_port)
    if not keys and settings.host not in LOOPBACK:
        log.warning("VIT_API_KEYS is not set: everyone who reaches %s can use the service", settings.host)
    return keys


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
