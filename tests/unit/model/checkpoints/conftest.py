"""Files of PyTorch."""

import pytest
import torch


@pytest.fixture
def saved(tmp_path):
    """`saved(content)` is a file that holds it, and `saved(content, "y.pth")` another one beside it."""

    def save(content, name="x.pth"):
        torch.save(content, tmp_path / name)
        return tmp_path / name

    return save
