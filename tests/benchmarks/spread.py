"""How figures are shown that differ from round to round."""

import statistics


def quartiles(values: list[float], digits: int) -> str:
    """The median, and in brackets the first and the third quartile."""
    first, median, third = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:.{digits}f} ({first:.{digits}f} to {third:.{digits}f})"


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Round by round."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


def times(milliseconds: list[float]) -> str:
    """Their p50 and p99; nothing where there are none."""
    in_order = sorted(milliseconds)
    return " / ".join(f"{in_order[int(share * len(in_order))]:.0f}" for share in (0.5, 0.99) if in_order)
