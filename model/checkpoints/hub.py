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
    from huggingface_hub import constants, errors, snapshot_download

    name, _, revision = repository.partition("@")
    try:
        for weights in WEIGHTS:
            patterns = [*DESCRIPTIONS, *weights]
            folder = Path(snapshot_download(name, revision=revision or None, allow_patterns=patterns))
            if (folder / weights[0]).is_file():
                return folder
    except errors.GatedRepoError:
        why = "its owner admits who asks: accept the terms on its page and set HF_TOKEN"
    except errors.RepositoryNotFoundError:
        why = "there is none of that name, or it is private: set HF_TOKEN"
    except errors.RevisionNotFoundError:
        why = f"it has no revision {revision}"
    except errors.LocalEntryNotFoundError:
        offline = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} does not answer"
        why = f"it is not in the cache, and {offline}"
    except errors.HFValidationError:
        why = "a repository is named org/name or org/name@revision"
    except (errors.HfHubHTTPError, OSError) as error:
        why = str(error)
    else:
        why = f"it has none of {', '.join(weights[0] for weights in WEIGHTS)}"
    raise CheckpointError(f"{SCHEME}{repository} cannot be fetched from the Hugging Face Hub: {why}")
