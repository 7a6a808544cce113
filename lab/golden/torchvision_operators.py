"""Lets timm import torchvision where torchvision's compiled half was built for another PyTorch.

The pictures here go through PIL and no model has a detection head: of what is compiled, nothing is called. Only its
names have to exist, because torchvision describes them when it is imported.
"""

import torch

OPERATORS = ("nms", "qnms")


def declare() -> list[torch.library.Library]:
    """Declare what is missing; it stays as long as the answer is kept. To be called before timm is imported."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in OPERATORS:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return [library]
    return []
