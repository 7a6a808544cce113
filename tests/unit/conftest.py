import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Toy tensors are too small to share: on a busy machine threads that wait for each other cost minutes."""
    torch.set_num_threads(1)
