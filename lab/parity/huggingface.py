"""transformers' plain ViT classifiers on the grids of published checkpoints, but narrow and two blocks deep.

Beside them are models without a classifier, whose outputs are embeddings, and a trained DINOv2.

Each is saved with the names of version 4 (save_pretrained) and of version 5 (state_dict). ViTHybrid is not here: it
left transformers with version 5, and lab/golden/peers/huggingface.py builds it again.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from lab.golden.peers.huggingface import save
from lab.parity.comparison import Row, difference, of_receipt, of_tokens, randomise, read_by, seen
from lab.real.data import make_network
from model.checkpoints import load_checkpoint

Json = dict[str, Any]

SIZES: Json = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3}
NARROW: Json = {**SIZES, "id2label": {i: f"thing {i}" for i in range(7)}}
PLAIN: Json = {**NARROW, "intermediate_size": 96}
TEXT: Json = {**SIZES, "num_hidden_layers": 1, "vocab_size": 64}
GATED: Json = {**NARROW, "use_swiglu_ffn": True}
RELATIVE: Json = {**PLAIN, "use_relative_position_bias": True}
SHARED: Json = {**PLAIN, "use_shared_relative_position_bias": True}
ABSOLUTE: Json = {**PLAIN, "use_absolute_position_embeddings": True}
REGISTERS: Json = {**PLAIN, "num_register_tokens": 4}
SEVEN_B: Json = {**REGISTERS, "use_gated_mlp": True, "hidden_act": "silu", "query_bias": False, "value_bias": False}
UNBIASED: Json = {**REGISTERS, **dict.fromkeys(("query_bias", "value_bias", "proj_bias", "mlp_bias"), False)}
HEADS = ("classifier", "cls_classifier", "distillation_classifier")
CLASS_TOKEN: Json = {"use_mean_pooling": False, "layer_scale_init_value": 0.0, "use_mask_token": True}


class Network(NamedTuple):
    kind: str  # what its configuration's name begins with
    grids: tuple[tuple[int, int], ...]  # sides of image and patch in pixels
    stated: Json  # of its configuration
    note: str = ""
    model: str = "ForImageClassification"  # what its class's name ends with
    tower: bool = False  # has an image tower, to which the configuration is given
    crop: int | None = None  # where the image processor's image is smaller than the positions' in the file
    always: bool = False  # interpolates without being asked to


NETWORKS = (
    Network("ViT", ((224, 16), (224, 32), (384, 16), (384, 32), (224, 14)), PLAIN),
    Network("DeiT", ((224, 16), (384, 16)), PLAIN),
    Network("DeiT", ((224, 16), (384, 16)), PLAIN, model="ForImageClassificationWithTeacher"),
    Network("ViTMSN", ((224, 16), (224, 7), (224, 4)), PLAIN),
    Network("IJepa", ((224, 14), (224, 16), (448, 16)), PLAIN),
    Network("Dinov2", ((518, 14),), NARROW, always=True),
    Network("Dinov2", ((518, 14),), NARROW, "cropped", crop=224, always=True),
    Network("Dinov2", ((518, 14),), GATED, "SwiGLU", crop=224, always=True),
    Network("Dinov2WithRegisters", ((518, 14),), NARROW, always=True),
    Network("Dinov2WithRegisters", ((518, 14),), NARROW, "cropped", crop=224, always=True),
    Network("Dinov2WithRegisters", ((518, 14),), GATED, "SwiGLU", crop=224, always=True),
    Network("Beit", ((224, 16), (384, 16), (512, 16)), RELATIVE, "bias of each layer"),
    Network("Beit", ((224, 16), (384, 16)), SHARED, "shared bias"),
    Network("Beit", ((224, 16),), RELATIVE | SHARED | CLASS_TOKEN, "both biases, class token"),
    Network("Beit", ((224, 16), (384, 16)), ABSOLUTE, "absolute positions"),
    Network("Data2VecVision", ((224, 16),), RELATIVE, "bias of each layer"),
    Network("Data2VecVision", ((224, 16),), SHARED, "shared bias"),
    Network("DINOv3ViT", ((224, 16),), REGISTERS, "embedding", "Model", always=True),
    Network("DINOv3ViT", ((224, 16),), REGISTERS | {"use_gated_mlp": True}, "embedding, SwiGLU", "Model", always=True),
    Network("DINOv3ViT", ((224, 16),), PLAIN, "embedding, no registers", "Model", always=True),
    Network("DINOv3ViT", ((224, 16),), SEVEN_B, "embedding, biases and SwiGLU of the 7B", "Model", always=True),
    Network("DINOv3ViT", ((224, 16),), UNBIASED, "embedding, no biases", "Model", always=True),
    Network("Dinov2WithRegisters", ((518, 14),), {**NARROW, "num_register_tokens": 0}, "no registers", always=True),
    Network("ViT", ((224, 16),), PLAIN, "embedding", "Model"),
    Network("ViT", ((224, 16),), PLAIN | {"pooler_act": "linear", "pooler_output_size": 32}, "linear pooler", "Model"),
    Network("ViTMAE", ((224, 16),), PLAIN, "embedding", "Model"),
    Network("DeiT", ((224, 16),), PLAIN | {"pooler_act": "gelu"}, "GELU pooler", "Model"),
    Network("Dinov2", ((518, 14),), NARROW, "embedding, cropped", "Model", crop=224, always=True),
    Network("CLIP", ((224, 32), (224, 16), (224, 14), (336, 14)), PLAIN, tower=True),
    Network("CLIP", ((224, 32), (336, 14)), PLAIN, "embedding", "Model", tower=True),
    Network("CLIP", ((224, 14),), PLAIN | {"hidden_act": "gelu"}, "embedding, as OpenCLIP's", "Model", tower=True),
    Network("MetaClip2", ((224, 14), (378, 14)), PLAIN, tower=True),
    Network("MetaClip2", ((224, 14),), PLAIN, "embedding", "Model", tower=True),
    Network("Siglip", ((224, 16), (256, 16), (384, 16), (512, 16), (384, 14), (256, 32)), PLAIN, tower=True),
    Network("Siglip", ((224, 16), (384, 14)), PLAIN, "embedding", "Model", tower=True),
)


def rows() -> Iterator[Row]:
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    for network in NETWORKS:
        for side, patch in network.grids:
            for version in (4, 5):
                with tempfile.TemporaryDirectory() as folder:
                    yield compare(network, side, patch, version, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield trained(Path(folder))


def compare(network: Network, side: int, patch: int, version: int, folder: Path) -> Row:
    import transformers

    stated = {**network.stated, "image_size": side, "patch_size": patch}
    if network.tower:
        stated = {"vision_config": stated, "text_config": TEXT, "id2label": stated.pop("id2label")}
    config = getattr(transformers, f"{network.kind}Config")(**stated)
    model = randomise(getattr(transformers, f"{network.kind}{network.model}")(config))
    if network.kind == "ViTMAE":  # it masks and shuffles patches outside of training too
        model.embeddings.random_masking = lambda tokens, noise=None: (tokens, None, None)
    save(model, folder, version=version)
    processor(network.crop or side, squash=not network.always).save_pretrained(folder)
    name = ", ".join(filter(None, (f"{type(model).__name__} {side}/{patch}", network.note, f"version {version}")))
    return row(name, model, folder, always=network.always)


def trained(folder: Path) -> Row:
    """The one network that has learned, of its own width and depth."""
    from transformers import Dinov2Model

    make_network(folder)
    saved = folder / "network"
    return row("Dinov2Model 518/14, ViT-S as trained", Dinov2Model.from_pretrained(saved).eval(), saved)


def row(name: str, model: Any, folder: Path, *, always: bool = True) -> Row:
    """Of a model that is saved in `folder`."""
    ours = load_checkpoint(folder)
    (rows, columns), own, patch = ours.model.config.grid, ours.preprocessing.cropped, ours.model.config.patch_size
    other = ((rows + 1) * patch, (columns + 3) * patch)
    resized = load_checkpoint(folder, overrides={"image_size": f"{other[0]},{other[1]}"})
    asked = {} if always else {"interpolate_pos_encoding": True}
    theirs = (answers(model), answers(model, **asked))
    heads = [getattr(model, head) for head in HEADS if hasattr(model, head)]
    return Row(
        name=name,
        tokens=of_tokens(ours, own, partial(tokens_of, model)),
        receipt=of_receipt(ours, own, read_by(heads, theirs[0]) if heads else theirs[0]),
        **difference((own, other), (seen(ours), resized.model), theirs),
    )


def tokens_of(model: Any, images: Tensor) -> tuple[Tensor, Tensor]:
    """CLIP's own `last_hidden_state` is the stream after the last block, of which its classifier reads the mean: its
    norm is before the projection alone. That of all others is after the norm.
    """
    whole = type(model).__name__.endswith("Model")
    tower = getattr(model, "vision_model", model if whole else model.base_model)
    found = tower(images, output_hidden_states=True)
    last = found.last_hidden_state
    if whole and tower is not model and not type(model).__name__.startswith("Siglip"):
        (norm,) = (layer for name, layer in tower.named_modules() if name.endswith("post_layernorm"))
        last = norm(last)
    return last, found.hidden_states[1]


def processor(side: int, *, squash: bool) -> Any:
    from transformers import BitImageProcessorPil, ViTImageProcessorPil

    square = {"height": side, "width": side}
    if squash:
        return ViTImageProcessorPil(size=square)
    return BitImageProcessorPil(size={"shortest_edge": side}, crop_size=square)


def answers(model: Any, **options: bool) -> Callable[[Tensor], Tensor]:
    if hasattr(model, "text_model"):
        return lambda images: model.get_image_features(images, **options).pooler_output
    if type(model).__name__ == "ViTMAEModel":
        return lambda images: model(images, **options).last_hidden_state[:, 0]
    if not any(hasattr(model, head) for head in HEADS):
        return lambda images: model(images, **options).pooler_output
    return lambda images: model(images, **options).logits
