"""config.json of transformers: which of its keys say something about the network, and which change no number.

Every other key is refused by name, unless its value is empty: it may be a switch of a newer release or a person's own.
tests/unit/model/checkpoints/families/test_huggingface_keys.py compares this with the configuration classes.
"""

from typing import Any

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.huggingface_kinds import BACKBONE_ONLY, Json, Kind

TOWERS = ("vision_config_dict", "vision_config")  # an old `vision_config_dict` comes first
HEAD = ("architectures", "id2label", "model_type", "problem_type")  # read where the head is described
EMPTY: tuple[Any, ...] = (None, {}, [])
MOST_SHOWN = 40  # characters of a value

METADATA = """
    _attn_implementation _attn_implementation_autoset _attn_implementation_internal _commit_hash
    _experts_implementation_internal _name_or_path _num_labels attn_implementation dtype experts_implementation
    finetuning_task label2id loss_type name_or_path num_labels prefix task_specific_params tf_legacy_loss
    tokenizer_class torch_dtype torchscript transformers_version use_bfloat16 xla_device
"""
# What else is returned, and how the work is divided.
RETURNED = """
    _output_attentions chunk_size_feed_forward gradient_checkpointing output_attentions output_hidden_states
    output_scores return_dict return_dict_in_generate tie_last_hidden_states use_cache
"""
TRAINING = """
    attention_dropout attention_probs_dropout_prob drop_path_rate dropout hidden_dropout_prob initializer_factor
    initializer_range layerscale_value logit_scale_init_value pos_embed_jitter pos_embed_rescale pos_embed_shift
    use_mask_token
"""
# Of other heads than the one that is served: pixels under a mask, segmentation, feature maps.
OTHER_HEADS = """
    _out_features _out_indices add_fpn apply_layernorm auxiliary_channels auxiliary_concat_input auxiliary_loss_weight
    auxiliary_num_convs decoder_hidden_size decoder_intermediate_size decoder_num_attention_heads
    decoder_num_hidden_layers encoder_stride mask_ratio norm_pix_loss out_features out_indices pool_scales
    reshape_hidden_states return_class_token semantic_loss_ignore_index stage_names use_auxiliary_head vocab_size
"""
# Of text, and what every configuration of version 4 stated about generating it. A projection is as wide as its tensor.
TEXT = """
    add_cross_attention bad_words_ids begin_suppress_tokens bos_token_id cross_attention_hidden_size
    decoder_start_token_id diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
    encoder_repetition_penalty eos_token_id epsilon_cutoff eta_cutoff exponential_decay_length_penalty
    forced_bos_token_id forced_eos_token_id is_decoder is_encoder_decoder length_penalty max_length min_length
    no_repeat_ngram_size num_beam_groups num_beams num_return_sequences pad_token_id projection_dim
    remove_invalid_values repetition_penalty sep_token_id suppress_tokens temperature text_config text_config_dict
    tie_encoder_decoder tie_word_embeddings top_k top_p typical_p
"""
# Of published files, although no network of transformers reads them: how the original code resizes positions, and the
# shape of a hybrid's features at the published size.
LEGACY = "backbone_featmap_shape interpolate_antialias interpolate_offset"
WITHOUT_EFFECT = frozenset(" ".join((METADATA, RETURNED, TRAINING, OTHER_HEADS, TEXT, LEGACY)).split())


def tower_of(config: Json, kind: Kind) -> Json:
    """What config.json states about the image network: all of it, or one part where there is a text network too."""
    if not kind.nested:
        return config
    return next((config[key] for key in TOWERS if config.get(key) is not None), {})


def checked(config: Json, kind: Kind) -> Json:
    """The facts of the image network that are stated, with the defaults of its configuration class.

    Raises CheckpointError for a key that is not known, and for a value of another type.
    """
    tower = tower_of(config, kind)
    if not isinstance(tower, dict):
        raise CheckpointError(f"config.json has the {TOWERS[1]} {_shown(tower)}, which is not an object")
    read = {*kind.defaults, *HEAD}
    unknown = _unknown(tower, read | WITHOUT_EFFECT, kind.nested and f"{TOWERS[1]}.")
    if kind.nested:
        unknown |= _unknown(config, {*TOWERS, *HEAD} | WITHOUT_EFFECT)
    backbone = tower.get("backbone_config") if "backbone_config" in kind.defaults else None
    if isinstance(backbone, dict):
        unknown |= _unknown(backbone, {*BACKBONE_ONLY, *HEAD} | WITHOUT_EFFECT, "backbone_config.")
    if unknown:
        raise CheckpointError(
            f"config.json states {', '.join(f'{key} {value}' for key, value in unknown.items())}, and it is not known "
            "what that changes. If it changes no number, take it out of config.json"
        )
    stated = {**kind.defaults, **{key: value for key, value in tower.items() if key in kind.defaults}}
    for key, value in stated.items():
        if not _is_like(value, kind.defaults[key], sides=key in ("image_size", "patch_size")):
            raise CheckpointError(f"config.json has {key} {_shown(value)}: expected such as {kind.defaults[key]}")
    return stated


def _unknown(stated: Json, known: frozenset[str] | set[str], prefix: str | bool = "") -> dict[str, str]:
    """The keys that are neither known nor empty, and their values as text."""
    return {f"{prefix or ''}{key}": _shown(of) for key, of in stated.items() if key not in known and of not in EMPTY}


def _is_like(value: Any, default: Any, *, sides: bool) -> bool:
    """Whether the value has the type of the default. Sides of an image or a patch may be a height and a width."""
    if sides and isinstance(value, list):
        return len(value) == 2 and all(type(side) is int for side in value)
    if default is None or default == {}:
        return value is None or type(value) is (int if default is None else dict)
    if isinstance(default, float) or (isinstance(default, int) and not isinstance(default, bool)):
        return type(value) is int or (type(value) is float and isinstance(default, float))
    return type(value) is type(default)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
