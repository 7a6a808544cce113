"""A batch norm before a linear head: after training it is a factor and a shift, and both layers are one.

Linear probes of masked autoencoders have it: arXiv 2111.06377, A.1, and facebookresearch/mae main_linprobe.py.
"""

import re
from functools import partial

from torch import Tensor

from model.checkpoints.checkpoint import Origin
from model.checkpoints.facts import Facts
from model.checkpoints.source import Source
from model.checkpoints.weights import Stored

VARIANCE = re.compile(r"(?P<norm>(?P<around>.*\.)(?P<number>\d+)\.)running_var")  # in an nn.Sequential
OF_MAE = {"blr", "nb_classes", "global_pool"}  # arguments of main_linprobe.py
EPS, EPS_OF_MAE = 1e-5, 1e-6


def fold(source: Source, facts: Facts) -> None:
    """Join each batch norm with the linear layer behind it, which has to be the only one. Other layers stay, and are
    refused by name later. No file has the eps of the norm.
    """
    norms = [match for name in source.names if (match := VARIANCE.fullmatch(name))]
    for found in sorted(norms, key=lambda match: int(match["number"]), reverse=True):  # from the layer backwards
        if not (layer := _behind(source, found)):
            continue
        weight, bias, parts = f"{layer}weight", f"{layer}bias", _parts(source, found["norm"])
        classes, width = source.shape(weight)
        if len(parts) not in (2, 4) or any(source.shape(name) != (width,) for name in parts):
            continue
        if source.arguments.keys() >= OF_MAE:
            eps = facts.resolve("batch_norm_eps", EPS_OF_MAE, Origin.stated("mae main_linprobe.py"))
        else:
            why = f"no file says the eps of the batch norm of {source.names_in_file[parts[0]]}: PyTorch's is {EPS:g}"
            (eps,) = facts.need(
                {"batch_norm_eps": EPS}, why=f"{why}, MAE's {EPS_OF_MAE:g}. Give it, as in this example"
            )
        norm, layers = source.stored(parts), source.stored([name for name in (weight, bias) if name in source])
        made = {
            weight: Stored((classes, width), "float32", partial(_weight, norm, layers, eps)),
            bias: Stored((classes,), "float32", partial(_bias, norm, layers, eps)),
        }
        source.replace(parts, made)


def _behind(source: Source, found: re.Match[str]) -> str:
    """What stands before "weight" of the only linear layer, if the norm comes before it; else empty."""
    layers = re.compile(rf"(?P<layer>{re.escape(found['around'])}(?P<number>\d+)\.)weight")
    matches = [match for name in source.names if (match := layers.fullmatch(name)) and len(source.shape(name)) == 2]
    alone = len(matches) == 1 and int(matches[0]["number"]) > int(found["number"])
    return matches[0]["layer"] if alone else ""


def _parts(source: Source, norm: str) -> list[str]:
    """The tensors of the norm: mean and variance, and unless affine=False weight and bias."""
    return [f"{norm}{name}" for name in ("running_mean", "running_var", "weight", "bias") if f"{norm}{name}" in source]


def _factor_and_shift(norm: list[Stored], eps: float) -> tuple[Tensor, Tensor]:
    """Float64 (width,) each."""
    mean, variance, *affine = (stored.read().double() for stored in norm)
    factor = (variance + eps).rsqrt()
    if affine:
        scale, shift = affine
        return scale * factor, shift - mean * scale * factor
    return factor, -mean * factor


def _weight(norm: list[Stored], layer: list[Stored], eps: float) -> Tensor:
    factor, _ = _factor_and_shift(norm, eps)
    return (layer[0].read().double() * factor).float()


def _bias(norm: list[Stored], layer: list[Stored], eps: float) -> Tensor:
    weight, *bias = (stored.read().double() for stored in layer)
    _, shift = _factor_and_shift(norm, eps)
    return (weight @ shift + sum(bias)).float()
