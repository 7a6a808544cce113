"""Optional API keys: RFC 6750 bearer tokens, or X-API-Key."""

import hashlib
import hmac
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import CannotStart, Unauthorized
from app.http.paths import METRICS, is_public
from app.settings import Settings

if TYPE_CHECKING:  # keys are read before the model is opened, and the framework is imported meanwhile
    from starlette.requests import HTTPConnection

log = logging.getLogger(__name__)

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
UNNAMED = "unnamed"
# A name, and token68 of RFC 9110, 11.2. That has = at its end only, so what follows a = with more than = is a key.
_ENTRY = re.compile(r"(?:([A-Za-z0-9_.-]{1,32})=)?([A-Za-z0-9._~+/-]+=*)")


def read_keys(listed: str | None, file: Path | None) -> dict[str, str]:
    """The name of each key, from a comma separated list and from a file with one per line; None where that is not set.
    An entry is a key, or name=KEY.

    Raises CannotStart, also for one that is set and has no key: without keys the service would be open.
    """
    sources: dict[str, list[str]] = {}
    if listed is not None:
        sources["VIT_API_KEYS"] = listed.split(",")
    if file is not None:
        try:
            sources["VIT_API_KEYS_FILE"] = file.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError):
            raise CannotStart("VIT_API_KEYS_FILE cannot be read.") from None
    names: dict[str, str] = {}
    for variable, lines in sources.items():
        entries = list(filter(None, map(str.strip, lines)))
        if not entries:
            raise CannotStart(f"{variable} has no key. To serve without keys, do not set it.")
        for entry in entries:
            found = _ENTRY.fullmatch(entry)
            if not found:
                raise CannotStart(
                    "An API key consists of letters, digits and . _ ~ + / -, with = at its end only. "
                    "Its name, as in name=KEY, consists of at most 32 letters, digits and . _ -."
                )
            names[found[2]] = found[1] or UNNAMED
    return names


class ApiKeys:
    """Without keys every request passes. Several keys allow rotation: add the new one, then remove the old one."""

    def __init__(self, names: Mapping[str, str], *, metrics_port: int) -> None:
        """`names` has the name of each key."""
        self._digests = [_digest(key) for key in names]
        self.names = list(names.values())
        self._open_metrics = bool(metrics_port)  # the network keeps strangers from a port of its own

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, request: "HTTPConnection") -> str | None:
        """The name of the key, or None where none is needed. Raises Unauthorized."""
        path = request.scope["path"]
        if not self._digests or is_public(request.scope["method"], path) or (path == METRICS and self._open_metrics):
            return None
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        given = [token.strip() if scheme.lower() == "bearer" else "", request.headers.get("X-API-Key", "")]
        # Every pair is compared, each in constant time, so the time taken reveals nothing about a key.
        matches = [hmac.compare_digest(_digest(key), known) for key in given for known in self._digests]
        if not any(matches):
            unknown, none = "This API key is not known.", "Send an API key as Authorization: Bearer or as X-API-Key."
            raise Unauthorized(unknown if any(given) else none)
        return self.names[matches.index(True) % len(self.names)]  # of `given`, each has met all names


def open_keys(settings: Settings) -> ApiKeys:
    """The keys of the settings. Raises CannotStart."""
    listed = None if settings.api_keys is None else settings.api_keys.get_secret_value()
    keys = ApiKeys(read_keys(listed, settings.api_keys_file), metrics_port=settings.metrics_port)
    if not keys and settings.host not in LOOPBACK:
        log.warning("VIT_API_KEYS is not set: everyone who reaches %s can use the service", settings.host)
    return keys


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
