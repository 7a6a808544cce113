"""What a bundle calls attention, from a library's own matrices."""

import numpy as np


def pool_of(pool: str, prefix: int, expected: dict[str, np.ndarray]) -> np.ndarray:
    """Weight of each token in what the head reads, (T,). `prefix` tokens come before the patches."""
    tokens = expected["attentions"].shape[-1]
    match pool:
        case "cls" | "cls_mean":
            return np.eye(tokens)[0]
        case "mean":
            return (np.arange(tokens) >= prefix) / (tokens - prefix)
        case "mean_all":
            return np.full(tokens, 1 / tokens)
        case _:
            return expected["pool"].mean(axis=0)  # over its heads
