"""A body in JSON, with its large values set aside: what is left is small, whatever a client sends.

A parser builds an object for every value, and pydantic an error for every wrong one: a body of a mebibyte becomes
hundreds. Images in JSON are a few large values in a small object. So the large values are found first, without parsing
them, and stay slices of the body; only the small rest is parsed.
"""

import codecs
import json
import re
import secrets
from contextlib import suppress
from typing import Any

MAX_REST_BYTES = 2**14
LARGE_BYTES = 2**9  # a string or an array of numbers from here on is set aside

STEP_BYTES = 2**16  # looked at without a break for other threads, where that takes long

_NUMBER = re.compile(rb"[-0-9]")
_AFTER_NUMBERS = b" \t\r\n[],:"


class JsonBody:
    """`rest` is the JSON with a mark in place of each large value; `text` and `numbers` give the value of a mark.

    A mark is an object, so that it fits no field but that of an image.
    """

    def __init__(self, body: bytes | bytearray) -> None:
        """Raises ValueError for more than MAX_REST_BYTES beside the large values, a string without an end, and a member
        that is there twice: one of them would be dropped.
        """
        self._strings: dict[int, memoryview] = {}  # by where they begin, here and below
        self._numbers: dict[int, memoryview] = {}
        self._body = body
        self.rest = bytearray()
        self._secret = secrets.token_hex(8)  # so that no client can write a mark
        place = len(codecs.BOM_UTF8) if body.startswith(codecs.BOM_UTF8) else 0
        while place < len(body):
            quote = _find(body, b'"', place, len(body))
            self._between(place, quote)
            place = self._string(quote) if quote < len(body) else quote
        with suppress(
            json.JSONDecodeError, UnicodeDecodeError, RecursionError
        ):  # who reads the rest says what is wrong
            json.loads(self.rest, object_pairs_hook=_members, parse_int=str)

    def text(self, value: object) -> str | memoryview | None:
        """A string of the rest, or the text between the quotes of a large one, with its escapes."""
        return value if isinstance(value, str) else self._strings.get(self._place(value))

    def numbers(self, value: object) -> memoryview | None:
        """The text of an array from its first number to its last one, which may be anything. The brackets before and
        after stay in the rest, around the mark.
        """
        return self._numbers.get(self._place(value))

    def _place(self, value: object) -> int:
        place = value.get(self._secret, -1) if isinstance(value, dict) else -1
        return place if isinstance(place, int) else -1

    def _between(self, start: int, end: int) -> None:
        """All that stands between two strings: brackets, numbers, names such as true."""
        number = _NUMBER.search(self._body, start, min(end, start + MAX_REST_BYTES))
        if number and end - start >= LARGE_BYTES:
            first = number.start()
            last = min(_find(self._body, byte, first, end) for byte in (b"{", b"}"))
            tail = self._body[max(first, last - MAX_REST_BYTES) : last]
            last -= len(tail) - len(tail.rstrip(_AFTER_NUMBERS))  # where the numbers end
            depth = self._count(b"[", first, last) - self._count(b"]", first, last)
            self._keep(start, first)
            self._add(b"[" * depth)  # so that brackets around them still match
            self._set_aside(self._numbers, first, last)
            self._add(b"]" * -depth)
            start = last
        self._keep(start, end)

    def _count(self, byte: bytes, start: int, end: int) -> int:
        steps = range(start, end, STEP_BYTES)
        return sum(self._body.count(byte, step, min(step + STEP_BYTES, end)) for step in steps)

    def _string(self, quote: int) -> int:
        """Where the text goes on after the string that begins at `quote`."""
        start = end = quote + 1
        has_quotes = False
        while True:
            before, end = end, _find(self._body, b'"', end, len(self._body))
            if end == len(self._body):
                raise ValueError("a string without an end")
            if not self._is_escaped(before, end):
                break
            if end - start > MAX_REST_BYTES:  # no image has a quote in it
                raise _too_much()
            has_quotes = True
            end += 1
        if end - start >= LARGE_BYTES and not has_quotes:
            self._set_aside(self._strings, start, end)
        else:
            self._keep(quote, end + 1)
        return end + 1

    def _is_escaped(self, start: int, quote: int) -> bool:
        """Whether the quote belongs to the string of which `start` to `quote` is a part."""
        if quote == start or self._body[quote - 1] != ord("\\"):
            return False
        before = self._body[max(start, quote - MAX_REST_BYTES) : quote]
        slashes = len(before) - len(before.rstrip(b"\\"))
        if slashes == MAX_REST_BYTES:  # no image has any
            raise _too_much()
        return slashes % 2 == 1

    def _set_aside(self, values: dict[int, memoryview], start: int, end: int) -> None:
        values[start] = memoryview(self._body)[start:end]
        self._add(f'{{"{self._secret}":{start}}}'.encode())

    def _keep(self, start: int, end: int) -> None:
        if end - start > MAX_REST_BYTES:
            raise _too_much()
        self._add(self._body[start:end])

    def _add(self, piece: bytes | bytearray) -> None:
        if len(self.rest) + len(piece) > MAX_REST_BYTES:
            raise _too_much()
        self.rest += piece


def _find(body: bytes | bytearray, byte: bytes, start: int, end: int) -> int:
    """The place of the first such byte, or `end`."""
    place = body.find(byte, start, end)
    return place if place >= 0 else end


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member twice")
    return members


def _too_much() -> ValueError:
    return ValueError(f"more than {MAX_REST_BYTES:,} bytes beside its images")
