"""Repositories of the Hugging Face Hub as folders.

huggingface_hub downloads them, so its cache, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE work as usual.
"""

from pathlib import Path

from model.checkpoints import foreign
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.class_names import FILES
from model.checkpoints.files import ADAPTER, SHARDS, WEIGHT_FILES, may_hold_weights

SCHEME = "hf://"
# What loaders read beside weights.
CONFIGS = ("config.json", "preprocessor_config.json", "processor_config.json", "open_clip_config.json")
DESCRIPTIONS = [*CONFIGS, ADAPTER, *FILES]
TOKENISER = ["tokenizer*.json", "special_tokens_map.json", "vocab.*", "merges.txt", "*.model"]


def fetch(repository: str, *, tokeniser: bool = False) -> Path:
    """The folder of "org/name" or "org/name@revision", downloaded unless it is in the cache. Raises CheckpointError.

    With the files of the tokeniser if it is asked for and the repository has one.
    """
    # Imported here: it reads its environment at import, and a local file can be loaded without it.
    from huggingface_hub import constants, list_repo_files, snapshot_download

    name, _, tag = repository.partition("@")
    revision = tag or None
    try:
        for weights in WEIGHT_FILES:
            patterns = [*DESCRIPTIONS, weights, *SHARDS.get(weights, ()), *(TOKENISER if tokeniser else ())]
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
            if (folder / weights).is_file():
                return folder
        cached = constants.HF_HUB_OFFLINE
        files = [file.name for file in folder.iterdir()] if cached else list_repo_files(name, revision=revision)
        lone = [file for file in files if "/" not in file and may_hold_weights(file)]
        if lone and (len(lone) == 1 or cached):
            return Path(snapshot_download(name, revision=revision, allow_patterns=[*DESCRIPTIONS, *lone]))
    except Exception as error:  # of the network, the server or the disk
        raise CheckpointError(f"{SCHEME}{repository} cannot be downloaded: {_reason(error)}") from error
    if lone:
        among = f"; download one of {', '.join(sorted(lone))} and give its path"
        raise CheckpointError(f"{SCHEME}{repository} has none of {', '.join(WEIGHT_FILES)}{among}")
    others = foreign.of_names(f"{SCHEME}{repository}", files)
    raise CheckpointError(others or f"{SCHEME}{repository} has none of {', '.join(WEIGHT_FILES)}")


def _reason(error: Exception) -> str:
    from huggingface_hub import constants, errors

    unreachable = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} does not answer"
    reasons: dict[type[Exception], str] = {
        errors.GatedRepoError: "it is gated: accept its terms on its page and set HF_TOKEN",
        errors.RepositoryNotFoundError: "there is no repository of that name, or it is private: set HF_TOKEN",
        errors.RevisionNotFoundError: "it has no such revision",
        errors.LocalEntryNotFoundError: f"it is not in the cache, and {unreachable}. Download its files on another "
        "machine and give the path of their folder, or set HF_ENDPOINT to a mirror that this machine can reach",
        errors.HFValidationError: "the name of a repository is org/name or org/name@revision",
    }
    return next((why for kind, why in reasons.items() if isinstance(error, kind)), f"{type(error).__name__}: {error}")
