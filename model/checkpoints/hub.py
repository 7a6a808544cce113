"""Repositories of the Hugging Face Hub as folders.

huggingface_hub does it: its cache, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are as everywhere.
"""

from pathlib import Path

from model.checkpoints.checkpoint import CheckpointError

SCHEME = "hf://"
# All that loaders read beside the weights; then the weights, the first that a repository has.
DESCRIPTIONS = ["config.json", "preprocessor_config.json", "processor_config.json", "open_clip_config.json"]
WEIGHTS = (
    ["model.safetensors"],
    ["model.safetensors.index.json", "model-?????-of-?????.safetensors"],
    ["open_clip_model.safetensors"],
    ["pytorch_model.bin"],
    ["open_clip_pytorch_model.bin"],
)


def fetch(repository: str) -> Path:
    """The folder of "org/name" or "org/name@revision", downloaded unless it is in the cache. Raises CheckpointError."""
    # Imported where it is used: it reads its environment at import, and loading a file does without it.
    from huggingface_hub import snapshot_download

    name, _, revision = repository.partition("@")
    try:
        for weights in WEIGHTS:
            patterns = [*DESCRIPTIONS, *weights]
            folder = Path(snapshot_download(name, revision=revision or None, allow_patterns=patterns))
            if (folder / weights[0]).is_file():
                return folder
    except Exception as error:  # of the network, of the server, of the disk
        raise CheckpointError(f"{SCHEME}{repository} cannot be fetched: {_reason(error)}") from error
    raise CheckpointError(f"{SCHEME}{repository} has none of {', '.join(weights[0] for weights in WEIGHTS)}")


def _reason(error: Exception) -> str:
    from huggingface_hub import constants, errors

    unreachable = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} does not answer"
    reasons: dict[type[Exception], str] = {
        errors.GatedRepoError: "it is gated: accept its terms on its page and set HF_TOKEN",
        errors.RepositoryNotFoundError: "there is none of that name, or it is private: set HF_TOKEN",
        errors.RevisionNotFoundError: "it has no such revision",
        errors.LocalEntryNotFoundError: f"it is not in the cache, and {unreachable}",
        errors.HFValidationError: "a repository is named org/name or org/name@revision",
    }
    return next((why for kind, why in reasons.items() if isinstance(error, kind)), f"{type(error).__name__}: {error}")
