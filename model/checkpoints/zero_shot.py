"""Labels that a person types as classes of CLIP or SigLIP: the text tower's features of prompts become a cosine head.

A prompt is a sentence with {} in place of the label. The features of several prompts are normalised, averaged and
normalised again (CLIP, arXiv 2103.00020, section 3.1.4; notebooks/Prompt_Engineering_for_ImageNet.ipynb of its code).
The text tower is transformers' own, and the texts are tokenised as in its pipelines/zero_shot_image_classification.py.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description, Origin
from model.checkpoints.labels import NONE, PLACE, PROMPT, check_prompts, from_file

PIPELINE = "transformers' zero-shot-image-classification"  # where PROMPT is the default
BATCH = 64  # texts
VOCABULARIES = ("tokenizer.json", "vocab.json", "*.model")  # without one, transformers makes an empty tokeniser
SIGLIP_TOKENS = 64  # of every text, padded or cut, as in its training


def with_classes(description: Description, *, given: str, prompts: tuple[str, ...]) -> Description:
    """The labels of the file `given` as classes. Raises CheckpointError for labels or prompts that cannot be used."""
    if given == NONE:
        raise CheckpointError(f"--labels none: {description.architecture} has no classes to number, only your labels")
    check_prompts(prompts)
    labels = from_file(Path(given))
    if not labels.names:
        raise CheckpointError(f"{Path(given).name} has no labels")
    if len(labels.names) == 1 and description.score == "softmax":
        raise CheckpointError(
            f"{Path(given).name} has one label: {description.architecture} compares labels, and one alone would always "
            "score 1"
        )
    twice = [name for name, count in Counter(labels.names).items() if count > 1]
    if twice:
        raise CheckpointError(f"{Path(given).name} has the label {twice[0]} more than once")
    return replace(
        description,
        config=replace(description.config, num_classes=len(labels.names), head="cosine"),
        labels=labels.names,
        wordnet=labels.wordnet,
        labels_from=f"{labels.origin}, with the text tower",
        prompts=prompts or (PROMPT,),
        origins={
            **description.origins,
            **dict.fromkeys(("labels", "num_classes"), Origin("by hand", labels.origin)),
            "prompts": Origin("by hand", "--prompt") if prompts else Origin.guessed(PIPELINE),
        },
    )


def head(folder: Path, description: Description) -> dict[str, Tensor]:
    """`head.weight` (C, F), each row as long as the scale of the comparison, and SigLIP's `head.bias` (C,).

    `folder` has the checkpoint and its tokeniser. Raises CheckpointError if transformers is missing or cannot run them.
    """
    tower, tokeniser = text_tower(folder)
    with torch.inference_mode():
        prompts, labels = description.prompts, description.labels
        texts = [[prompt.replace(PLACE, label) for label in labels] for prompt in prompts]
        mean = torch.stack([features(tower, tokeniser, of_prompt) for of_prompt in texts]).mean(0)
        weight = tower.logit_scale.exp() * mean / mean.norm(dim=-1, keepdim=True)
        bias = {"head.bias": tower.logit_bias.expand(len(weight)).clone()} if description.config.head_bias else {}
    return {"head.weight": weight.clone(), **bias}


def text_tower(folder: Path) -> tuple[Any, Any]:
    """transformers' own model and tokeniser in a folder. Raises CheckpointError."""
    try:
        # Imported here: nothing else needs it, and it is installed for this alone.
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError:
        raise CheckpointError("labels of CLIP and SigLIP need transformers, which the extra export has") from None
    if not any(file for pattern in VOCABULARIES for file in folder.glob(pattern)):
        raise CheckpointError("there is no tokeniser (tokenizer.json) beside these weights: download it too")
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        tower = AutoModel.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
        return tower.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (ImportError, OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(f"transformers cannot load the text tower and tokeniser of {folder}: {reason}") from None


def features(tower: Any, tokeniser: Any, texts: Sequence[str]) -> Tensor:
    """Of length 1, (texts, F)."""
    batches = (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))
    outputs = [tower.get_text_features(**_tokens(tower, tokeniser, list(batch))) for batch in batches]
    found = torch.cat([output.pooler_output for output in outputs])
    return found / found.norm(dim=-1, keepdim=True)


def _tokens(tower: Any, tokeniser: Any, texts: list[str]) -> Any:
    """Raises CheckpointError for a text that is too long."""
    if "siglip" in tower.config.model_type:
        return tokeniser(texts, padding="max_length", max_length=SIGLIP_TOKENS, truncation=True, return_tensors="pt")
    tokens = tokeniser(texts, padding=True, return_tensors="pt")
    most = tower.config.text_config.max_position_embeddings
    if tokens["input_ids"].shape[1] > most:
        longest = max(texts, key=lambda text: len(tokeniser(text)["input_ids"]))
        raise CheckpointError(f'the text tower reads at most {most} tokens, and "{longest}" has more')
    return tokens
