"""Every architecture of timm_architectures.json in full structure, but narrow and two blocks deep.

It is saved by timm, and loaded by timm and by us, at its own size and at one that is not square. The JSON has to come
from this timm: a switch that a new release adds ends the run.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lab.parity.comparison import Row, difference, of_receipt, of_tokens, randomise, seen
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.timm_architectures import table
from model.positions import resize

MAKE = "PYTHONPATH=. python lab/golden/make_timm_architectures.py"
SMALL = {"embed_dim": 48, "depth": 2, "num_heads": 3, "num_classes": 7}
OWN: dict[str, dict[str, Any]] = {
    "vit_base_mci_224": {"embed_dim": 768},  # its stem has no projection
    **{f"vit_{size}_patch16_sapiens2": {"num_kv_heads": [3, 1]} for size in ("base", "large", "huge", "giant", "5b")},
}


def rows() -> Iterator[Row]:
    from lab.golden import make_timm_architectures

    made = json.loads(json.dumps(make_timm_architectures.made()))
    if stale := sorted(key for key in made if made[key] != table().get(key)):
        sys.exit(f"timm_architectures.json is not that of this timm: {', '.join(stale)}. {MAKE} writes it")
    for name in table()["architectures"]:
        with tempfile.TemporaryDirectory() as folder:
            yield compare(name, Path(folder))


def compare(name: str, folder: Path) -> Row:
    import timm
    from timm.models import save_for_hf
    from timm.models._registry import _model_to_module

    module = _model_to_module[name]
    small = SMALL | OWN.get(name, {})
    theirs = randomise(timm.create_model(name, **small))
    save_for_hf(theirs, folder, safe_serialization=True)
    try:
        loaded = load_checkpoint(folder)
    except CheckpointError as reason:
        return Row(name=name, module=module, refused=str(reason).removeprefix(name).lstrip(": "))

    ours = loaded.model
    rows, columns = ours.config.grid
    patch, own = ours.config.patch_size, loaded.preprocessing.cropped
    other = ((rows + 1) * patch, (columns + 3) * patch)
    weights = {"file": str(folder / "model.safetensors"), "num_classes": SMALL["num_classes"]}
    theirs_resized = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=weights, img_size=other, **small)
    if ours.config.position_resize == "none":
        ours_resized = load_checkpoint(folder, overrides={"image_size": str(other)}).model
    else:
        ours_resized = resize(ours, other)
    # A ResNet of random weights multiplies rounding a thousandfold: in float64 the two sides differ by 2e-8 at most.
    rounding = {} if ours.config.stem_layers is None else {"rounding": 1e-4}
    found = difference((own, other), (seen(loaded), ours_resized), (theirs, theirs_resized.eval()))
    tokens = of_tokens(loaded, own, partial(tokens_of, theirs))
    receipt = of_receipt(
        loaded, own, lambda images: theirs.forward_head(theirs.forward_features(images), pre_logits=True)
    )
    return Row(name=name, module=module, tokens=tokens, receipt=receipt, **rounding, **found)


def tokens_of(model: Any, images: Tensor) -> tuple[Tensor, Tensor]:
    asked = {"indices": [0], "output_fmt": "NLC", "intermediates_only": True}
    prefix = bool(model.num_prefix_tokens)  # without any, one of its modules fails when it is asked for them
    (first,) = model.forward_intermediates(images, return_prefix_tokens=prefix, **asked)
    if isinstance(first, tuple):  # the patches, and those before them
        first = torch.cat(first[::-1], dim=1)
    return model.forward_features(images), first
