"""The facts of a checkpoint that a person can give or override: --set NAME=VALUE."""

from typing import NamedTuple, get_args

from model.checkpoints.facts import Score
from model.config import Activation, Pool
from model.preprocessing import Interpolation


class Fact(NamedTuple):
    value: str  # an example, or all that there are
    meaning: str


FACTS = {
    "name": Fact("birds", "what the service calls the model"),
    "num_classes": Fact("0", "leaves the head out: the service gives embeddings"),
    "score": Fact(" or ".join(get_args(Score)), "what makes scores of logits"),
    "weights": Fact("teacher", "the network of a file that has several"),
    "image_size": Fact("224,224", "height and width of what the network reads, in pixels"),
    "resize_mode": Fact("shortest or squash", "whether the resize keeps the aspect, or gives each side its own scale"),
    "resize_size": Fact("256,256", "height and width to resize to, or with shortest just to cover"),
    "crop": Fact("center or none", "whether the middle is cut out, or everything is seen"),
    "interpolation": Fact(", ".join(get_args(Interpolation)), "of the resize"),
    "mean": Fact("0.485,0.456,0.406", "of red, green and blue, for pixels from 0 to 1"),
    "std": Fact("0.229,0.224,0.225", "the same for the standard deviation"),
    "heads": Fact("12", "heads of attention in each block"),
    "pool": Fact(", ".join(get_args(Pool)), "what the head reads"),
    "activation": Fact(", ".join(get_args(Activation)), "between the two layers of each block"),
    "norm_eps": Fact("1e-6", "epsilon of the layer norms"),
    "batch_norm_eps": Fact("1e-5", "epsilon of a batch norm before the head"),
    "architecture": Fact("vit_base_patch16_224.augreg_in21k", "timm: the name of the network, with its tag"),
    "global_pool": Fact("token, avg, map", "timm: what the head reads"),
    "projection": Fact("False", "timm: whether a published head is an embedding to compare with text"),
    "num_heads": Fact("12", "timm: as every argument of its class, such as depth, embed_dim, qkv_bias or init_values"),
}


def text() -> str:
    """One fact per line."""
    width = max(map(len, FACTS))
    return "\n".join(f"  {name:<{width}}  {fact.meaning}: {fact.value}" for name, fact in FACTS.items())
