"""The key of a value in a store."""

import re
import secrets

ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{22}")  # 128 random bits, so an id cannot be guessed


def new_id() -> str:
    return secrets.token_urlsafe(16)
