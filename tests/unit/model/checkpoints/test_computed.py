"""model/checkpoints/computed.py: weights that PyTorch computes of others, in the layers of every family."""

import pytest
import torch
from torch.nn import utils

from model.checkpoints import load_checkpoint
from tests.golden.test_checkpoints import path_of
from tests.support.altered import GOLDEN, altered, stated

CASES = (
    *("huggingface-vit", "huggingface-siglip-classifier", "timm-plain", "torchvision-vit", "deit"),
    *("vit-pytorch-1.2.4-cls", "dinov2-hub", "openclip-average"),
)
NEW = ("parametrizations.weight.original0", "parametrizations.weight.original1")


def in_parts(name, tensor, *, new, dim):
    """What torch saves in place of a weight."""
    layer, _, weight = name.rpartition(".")
    module = torch.nn.Module()
    module.register_parameter(weight, torch.nn.Parameter(tensor.clone()))
    (utils.parametrizations.weight_norm if new else utils.weight_norm)(module, weight, dim=dim)
    return {f"{layer}.{part}": tensor.detach().clone() for part, tensor in module.state_dict().items()}


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize(("new", "dim"), [(True, 0), (False, None)])
@pytest.mark.parametrize("case", CASES)
def test_weight_norm_of_every_layer(tmp_path, case, new, dim):
    def change(state):
        matrices = {name: tensor for name, tensor in state.items() if name.endswith("weight") and tensor.ndim > 1}
        parts = [in_parts(name, tensor, new=new, dim=dim) for name, tensor in matrices.items()]
        return {name: t for name, t in state.items() if name not in matrices} | {
            k: t for p in parts for k, t in p.items()
        }

    normed = load_checkpoint(altered(case, tmp_path, tensors=change), overrides=stated(case)).model
    plain = load_checkpoint(path_of(GOLDEN / case), overrides=stated(case)).model.state_dict()
    torch.testing.assert_close(normed.state_dict(), plain)
