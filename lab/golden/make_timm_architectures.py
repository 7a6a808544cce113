"""Writes model/checkpoints/families/timm_architectures.json from timm's own entry points.

`PYTHONPATH=. python lab/golden/make_timm_architectures.py` with timm installed. Every entry point is called on the
meta device with a factory in place of timm's that keeps the arguments, so nothing here is typed by hand.
"""

import dataclasses
import functools
import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import torch

from lab.golden import torchvision_operators

DECLARED = torchvision_operators.declare()
import timm
from timm.data import resolve_data_config
from timm.models._builder import build_model_with_cfg
from timm.models._pretrained import PretrainedCfg
from timm.models._registry import (
    _deprecated_models,
    _module_to_models,
    get_arch_pretrained_cfgs,
    model_entrypoint,
    split_model_name_tag,
)
from timm.models.resnetv2 import ResNetV2

TABLE = Path("model/checkpoints/families/timm_architectures.json")
MODULES = ("vision_transformer", "deit", "vision_transformer_hybrid", "vision_transformer_relpos", "beit", "eva")
RECIPE = ("input_size", "crop_pct", "crop_mode", "interpolation", "mean", "std")
ACTIVATIONS = {"SiLU": "silu", "GELU": "gelu"}
FACTORY = ("feature_cfg", "pretrained_strict", "pretrained_filter_fn", "pretrained_cfg")  # arguments of no model


def main() -> None:
    table = made()
    lines = [f'  "{key}": {rows(value)}' for key, value in table.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    published = sum(len(a["tags"]) for a in table["architectures"].values())
    print(f"{TABLE}: {len(table['architectures'])} architectures, {published} tags")


def made() -> dict[str, Any]:
    """The content of the JSON, of the timm that is installed."""
    classes: dict[str, dict[str, Any]] = {}
    architectures: dict[str, dict[str, Any]] = {}
    aliases: dict[str, str] = {}
    recipes: list[dict[str, Any]] = []
    for module in MODULES:
        for name in sorted(_module_to_models[module]):
            if name in _deprecated_models:  # stands for another name with a tag
                aliases[name] = _deprecated_models[name]
                continue
            model_class, kwargs = called(importlib.import_module(f"timm.models.{module}"), name)
            usual = classes.setdefault(model_class.__name__, defaults(model_class))
            arguments = {key: plain(key, value) for key, value in kwargs.items() if key not in FACTORY}
            architectures[name] = {
                "class": model_class.__name__,
                **{key: value for key, value in arguments.items() if value != usual[key]},
                **position_resize(kwargs.get("pretrained_filter_fn")),
                "tags": tags(name, recipes),
            }
    return {
        "timm": timm.__version__,
        "classes": classes,
        "factory": factory(),
        "pretrained_cfg": [field.name for field in dataclasses.fields(PretrainedCfg)],
        "data_config": sorted(set(re.findall(r"\bargs(?:\.get\(|\[)'(\w+)'", inspect.getsource(resolve_data_config)))),
        "recipes": recipes,
        "aliases": aliases,
        "architectures": architectures,
    }


def factory() -> list[str]:
    """Arguments of create_model, of build_model_with_cfg and of what calls it, beside those of a class."""
    modules = [importlib.import_module(f"timm.models.{module}") for module in MODULES]
    named = [value for module in modules for name, value in vars(module).items() if name.startswith("_create_")]
    creators = [function for function in named if "build_model_with_cfg(" in inspect.getsource(function)]
    names: set[str] = set()
    for function in (timm.create_model, build_model_with_cfg, *creators):
        names |= {
            name
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not parameter.empty
        }
        names |= set(re.findall(r"\bkwargs\.pop\('(\w+)'", inspect.getsource(function)))
    return sorted(names)


def called(module: Any, name: str) -> tuple[type, dict[str, Any]]:
    """What an entry point hands to timm's factory: the class and its arguments."""
    calls: list[tuple[type, dict[str, Any]]] = []
    original = module.build_model_with_cfg
    module.build_model_with_cfg = lambda model_class, *_, **kwargs: calls.append((model_class, kwargs))
    try:
        with torch.device("meta"):
            model_entrypoint(name)()
    finally:
        module.build_model_with_cfg = original
    return calls[0]


def defaults(model_class: type) -> dict[str, Any]:
    """Arguments of a class and their defaults. VisionTransformerDistilled passes all arguments on to its base."""
    parameters = inspect.signature(model_class).parameters
    if "kwargs" in parameters:
        return defaults(model_class.__base__)
    named = {name: parameter.default for name, parameter in parameters.items()}
    return {name: plain(name, value) for name, value in named.items() if name not in ("device", "dtype")}


def plain(name: str, value: Any) -> Any:
    """An argument as JSON, a layer in timm's own word for it."""
    if name == "norm_layer":
        return norm_layer(value or timm.layers.LayerNorm)
    if name == "embed_norm_layer":
        return None if value is None else norm_layer(value)
    if name == "act_layer":
        return value if isinstance(value, str) else ACTIVATIONS["GELU" if value is None else value.__name__]
    if name == "embed_layer":
        return stem(value)
    if isinstance(value, functools.partial):  # SwiGLUPacked has no name of its own
        return next(name for name, layer in vars(timm.layers).items() if layer is value)
    return value.__name__ if callable(value) else value


def norm_layer(layer: Any) -> str | list[Any]:
    """Its name, or name and eps where that is not timm's default of 1e-6."""
    if isinstance(layer, str):
        return layer
    built = layer(8)
    name = {"LayerNorm": "layernorm", "RmsNorm": "rmsnorm"}[type(built).__name__]
    return name if built.eps == 1e-6 else [name, built.eps]


def stem(embed_layer: Any) -> list[int] | str | None:
    """Units in each stage of a hybrid's ResNetV2, [] for its root alone, another stem's class, None for no stem."""
    backbone = getattr(embed_layer, "keywords", {}).get("backbone")
    if isinstance(backbone, ResNetV2):
        return [len(stage.blocks) for stage in backbone.stages]
    if backbone is not None and [name for name, _ in backbone.named_children()] == ["conv", "norm", "pool"]:
        return []
    return None if backbone is None else type(backbone).__name__


def position_resize(checkpoint_filter: Any) -> dict[str, str]:
    """How timm interpolates positions of this architecture's files, where that is not its usual way."""
    message = getattr(checkpoint_filter, "keywords", {})
    if "interpolation" not in message:
        return {}
    assert message["interpolation"] == "bilinear"
    assert message["antialias"] is False
    return {"position_resize": "bilinear_corners" if message.get("align_corners") else "bilinear"}


def tags(name: str, recipes: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Outputs of each published head and the number of its recipe, timm's default first."""
    published = {}
    for full, config in get_arch_pretrained_cfgs(name).items():
        recipe = {key: getattr(config, key) for key in RECIPE}
        if recipe not in recipes:
            recipes.append(recipe)
        published[split_model_name_tag(full)[1]] = [config.num_classes, recipes.index(recipe)]
    return published


def rows(value: Any) -> str:
    """JSON with one entry a line."""
    if not isinstance(value, dict | list):
        return json.dumps(value)
    items = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()] if isinstance(value, dict) else None
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = ",\n    ".join(items if items is not None else [json.dumps(v) for v in value])
    return f"{opening}\n    {lines}\n  {closing}"


if __name__ == "__main__":
    main()
