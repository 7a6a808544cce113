"""What a file states about a timm network, and what becomes of it: nothing is left out in silence.

timm_network.py reads the arguments of the classes. Those of `create_model` (models/_factory.py) and
`build_model_with_cfg` (models/_builder.py) can stand beside them, and what train.py was given.
"""

from typing import Any

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.timm_architectures import Architecture
from model.checkpoints.source import Source

# Of a class: used in training, or when a network is made and has no weights yet.
OF_TRAINING = {
    *("drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate"),
    *("weight_init", "fix_init", "head_init_scale"),
    *("rope_shift_coords", "rope_jitter_coords", "rope_rescale_coords"),
}
# Of the factory: where weights come from, how they are loaded, and how the network runs.
OF_LOADING = {
    *("pretrained", "pretrained_strict", "pretrained_model_args", "checkpoint_path", "cache_dir"),
    *("scriptable", "exportable", "no_jit", "out_indices", "device", "dtype"),
}
# Of the factory: another network, or another preprocessing, than the class and its arguments say.
REFUSED = {
    "features_only": "features in place of labels",
    "feature_cls": "features in place of labels",
    "feature_cfg": "features in place of labels",
    "use_naflex": "another network, NaFlexVit",
    "pruned": "a pruned network",
    "model_cfg": "a network from a configuration of its own",
    "kwargs_filter": "a network without some of its arguments",
    "pretrained_filter_fn": "tensors that are converted first",
    "pretrained_cfg": "a preprocessing of its own",
    "pretrained_cfg_overlay": "a preprocessing of its own",
}
# Fields of PretrainedCfg (models/_pretrained.py), in config.json. The others are where weights come from, what they are
# called, how other heads and other channels are adapted, and sizes for tests, which timm takes where a person asks.
READ = {
    *("input_size", "fixed_input_size", "interpolation", "crop_pct", "crop_mode", "mean", "std"),
    *("tag", "num_classes", "label_offset", "label_names", "label_descriptions", "labels"),
}
OF_SOURCES = {
    *("url", "file", "state_dict", "hf_hub_id", "hf_hub_filename", "source", "architecture", "custom_load"),
    *("license", "description", "origin_url", "paper_name", "paper_ids", "notes"),
    *("first_conv", "classifier", "pool_size", "test_pool_size"),
    *("test_input_size", "min_input_size", "test_crop_pct"),
}


def with_arguments(architecture: Architecture, changes: dict[str, Any]) -> Architecture:
    """The same with some arguments changed. Raises CheckpointError for one that its class does not have, or that makes
    something else of it.
    """
    for name, meaning in REFUSED.items():
        if changes.get(name):
            raise CheckpointError(f"{name}={changes[name]!r} makes {meaning}, which is not supported")
    known = {name: value for name, value in changes.items() if name not in OF_LOADING | REFUSED.keys()}
    if unknown := sorted(known.keys() - architecture.arguments.keys()):
        raise CheckpointError(f"{architecture.name} has no argument {', '.join(unknown)}")
    return architecture._replace(arguments={**architecture.arguments, **known})


def stated_arguments(source: Source, config: dict[str, Any]) -> dict[str, Any]:
    """Arguments that change the architecture's, from config.json and, before it, the command line of train.py."""
    places = (
        {"global_pool": config.get("global_pool") or None},
        config.get("model_args") or {},
        {"global_pool": source.arguments.get("gp") or None},
        source.arguments.get("model_kwargs") or {},
    )
    absent = [("global_pool", None), ("img_size", None)]
    return {name: value for place in places for name, value in place.items() if (name, value) not in absent}


def check_stated(source: Source, config: dict[str, Any]) -> None:
    """Raises CheckpointError for what is stated beside the arguments and is not known, or contradicts the tensors."""
    if unknown := sorted(config.get("pretrained_cfg", {}).keys() - READ - OF_SOURCES):
        raise CheckpointError(f"pretrained_cfg of config.json has {', '.join(unknown)}, which timm does not know")
    named, proj = config.get("num_features"), "patch_embed.proj.weight"
    if named is not None and proj in source and named != (width := source.shape(proj)[0]):
        raise CheckpointError(f"config.json says num_features {named}, the file has {width}")
    if source.arguments.get("naflex_loader"):
        raise CheckpointError(f"args in the file say naflex_loader, which makes {REFUSED['use_naflex']}")
    if (mode := source.arguments.get("input_img_mode")) not in (None, "RGB"):
        raise CheckpointError(f"args in the file say input_img_mode {mode}: supported is RGB")


def check_classes(source: Source, config: dict[str, Any], stated: dict[str, Any], classes: int) -> None:
    """Raises CheckpointError where another number of classes is stated than the head has."""
    said = {
        "config.json says": config.get("num_classes", stated.get("num_classes")),
        "model_args say": (config.get("model_args") or {}).get("num_classes"),
        "args in the file say": source.arguments.get("num_classes"),
        "model_kwargs in the file say": (source.arguments.get("model_kwargs") or {}).get("num_classes"),
    }
    for who, number in said.items():
        if number not in (None, -1, classes):  # timm's -1 stands for any number
            raise CheckpointError(f"{who} {number} classes, the head has {classes}")
