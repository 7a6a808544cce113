"""Who goes first where there are more threads than cores: answers and refusals, then the model, then pictures."""

import os
import sys

MODEL_NICENESS = 5
PICTURES_NICENESS = 15  # the model's threads wait for each other after every operator


def yield_by(niceness: int) -> None:
    """Let other threads go before this one and those it starts. Does nothing where only processes have a priority."""
    if sys.platform == "linux":
        os.nice(niceness)
