"""Bodies in JSON that try to cost more than their size, for every path that takes JSON. None has an image."""

from collections.abc import Callable
from dataclasses import dataclass

INFER = "/v2/models/shapes/infer"


@dataclass(frozen=True, kw_only=True)
class JsonBody:
    name: str
    path: str
    make: Callable[[int], bytes]  # of about so many bytes
    status: int = 400


def bodies() -> list[JsonBody]:
    images = {
        "numbers": _repeated('{"inputs":[', "1,", "1]}"),
        "objects": _repeated('{"inputs":[', "{},", "{}]}"),
        "empty lists": _repeated('{"inputs":[', "[],", "[]]}"),
        "empty strings": _repeated('{"inputs":[', '"",', '""]}'),
        "short strings": _repeated('{"images":[', '"AAAA",', '"AAAA"]}'),
        "true": _repeated('{"images":[', "true,", "true]}"),
        "nested lists": _repeated('{"inputs":', "[", ""),
        "nested objects": _repeated('{"inputs":', '{"a":', ""),
        "a long number": _repeated('{"inputs":', "1", "}"),
        "a long number as a parameter": _repeated('{"inputs":"","parameters":{"top_k":', "1", "}}"),
        "a long string as a parameter": _repeated('{"inputs":"","parameters":{"function_to_apply":"', "a", '"}}'),
        "one key many times": _repeated("{", '"inputs":"",', '"inputs":""}'),
        "many keys": _repeated("{", '"a":0,"b":{},', '"inputs":""}'),
        "a long key": _repeated('{"', "a", '":""}'),
        "escaped letters": _repeated('{"image":"', "\\u0041", '"}'),
        "escaped quotes": _repeated('{"image":"', '\\"', '"}'),
        "escaped backslashes": _repeated('{"image":"', "\\\\", '"}'),
        "a string without an end": _repeated('{"image":"', "A", ""),
        "white space": _repeated('{"image":""', " ", "}"),
        "padding": _repeated('{"image":"', "AA==", '"}'),
        "characters of four bytes": _repeated('{"image":"', "\U0001f600", '"}'),
    }
    tensor = '{"name":"images","shape":[1,64,64,3],"datatype":"UINT8"'
    tensors = {
        "objects as tensors": _repeated('{"inputs":[', "{},", "{}]}"),
        "many tensors": _repeated('{"inputs":[', tensor + "},", tensor + "}]}"),
        "many outputs": _repeated('{"inputs":[' + tensor + '}],"outputs":[', '{"name":"scores"},', "{}]}"),
        "numbers as outputs": _repeated('{"inputs":[' + tensor + '}],"outputs":[', "0,", "0]}"),
        "a long shape": _repeated('{"inputs":[{"name":"images","datatype":"UINT8","shape":[', "1,", "1]}]}"),
        "a shape without bounds": _repeated('{"inputs":[{"datatype":"UINT8","name":"images","shape":[9', "9", "]}]}"),
        "a long id": _repeated('{"inputs":[' + tensor + '}],"id":"', "a", '"}'),
        "a long parameter": _repeated('{"inputs":[' + tensor + '}],"parameters":{"a":[', "{},", "{}]}}"),
        "too many numbers": _repeated('{"inputs":[' + tensor + ',"data":[', "1,", "1]}]}"),
        "nested numbers": _repeated('{"inputs":[' + tensor + ',"data":[', "[[1]],", "[[1]]]}]}"),
        "large numbers": _repeated('{"inputs":[' + tensor + ',"data":[', "99999999999999999999,", "1]}]}"),
        "fractions": _repeated('{"inputs":[' + tensor + ',"data":[', "0.1e9,", "1]}]}"),
        "a digit for ever": _repeated('{"inputs":[' + tensor + ',"data":[', "1", "]}]}"),
        "objects as numbers": _repeated('{"inputs":[' + tensor + ',"data":[', "{},", "{}]}]}"),
        # NumPy would give every element the room of the longest.
        "one long string among empty ones": _repeated(
            '{"inputs":[' + tensor + ',"data":["' + "a" * 1000 + '",', '"",', '""]}]}'
        ),
    }
    status = {"escaped letters": 415, "white space": 422}  # base64 of something else, and an empty image
    return [
        *(JsonBody(name=n, path="/classify", make=make, status=status.get(n, 400)) for n, make in images.items()),
        *(JsonBody(name=name, path=INFER, make=make) for name, make in tensors.items()),
    ]


def _repeated(start: str, piece: str, end: str) -> Callable[[int], bytes]:
    """`piece` as often as it fits between the two."""
    first, each, last = start.encode(), piece.encode(), end.encode()
    return lambda size: first + each * ((size - len(first) - len(last)) // len(each)) + last
