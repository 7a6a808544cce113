"""What the answers of the service look like. Anything may answer, so what is read later is checked first."""

import math
import re
from collections.abc import Callable
from typing import Any

PROBLEM = "urn:vit-serve:problem:"  # how the type of each problem begins, also of one from the balancers in docker/
LARGEST_FLOAT = 3.4e38  # of 32 bits
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair, which JSON may have and UTF-8 may not


def is_problem(answer: dict[str, Any]) -> bool:
    """Gives it a detail if it has none, as of the balancers."""
    answer.setdefault("detail", answer["title"])
    known = _is_text(answer["type"]) and answer["type"].startswith(PROBLEM) and isinstance(answer["status"], int)
    said = _is_text(answer["title"]) and answer["title"] and _is_text(answer["detail"])
    return bool(known and said and _has_familiarity(answer))


def is_model(answer: dict[str, Any]) -> bool:
    manifest = answer["manifest"]
    known = "features" in manifest and isinstance(manifest["labels"], list)
    return bool(known and answer["digest"] and _is_text(answer["digest"]) and _is_text(answer["name"]))


def has_values(answer: dict[str, Any]) -> bool:
    rows, columns = answer["grid"]
    return len(answer["values"]) == rows * columns and len(answer["crop_box"]) == 4


def has_results(answer: dict[str, Any], images: int, is_known: Callable[[dict[str, Any]], bool]) -> bool:
    """`is_known` is for those without an error."""
    results, digest = answer["results"], answer["model"]["digest"]
    whole = isinstance(results, list) and len(results) == images and digest and _is_text(digest)
    return bool(whole and all(_is_result(result, is_known) for result in results))


def is_classified(result: dict[str, Any]) -> bool:
    return isinstance(result["predictions"], list) and all(
        _is_text(one["label"]) and isinstance(one["index"], int) and math.isfinite(one["score"])
        for one in result["predictions"]
    )


def is_embedded(result: dict[str, Any]) -> bool:
    vector = result["embedding"]
    return isinstance(vector, list) and all(math.fabs(number) <= LARGEST_FLOAT for number in vector)


def _is_result(result: dict[str, Any], is_known: Callable[[dict[str, Any]], bool]) -> bool:
    if result.get("error") is not None:
        return is_problem(result["error"])
    return (result.get("id") is None or _is_text(result["id"])) and _has_familiarity(result) and is_known(result)


def _has_familiarity(answer: dict[str, Any]) -> bool:
    return answer.get("familiarity") is None or math.isfinite(answer["familiarity"])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not _HALF.search(value)
