"""A new bundle in sentences: how exact it is, and what was measured."""

from collections.abc import Iterator
from pathlib import Path

from app.bundle import OF_TEXT, Manifest
from export.measured import Agreement, Calibration, Likeness, Parity


def written(out: Path, manifest: Manifest) -> str:
    parity = Parity.model_validate(manifest.parity)
    gives = f"{len(manifest.labels):,} labels" if manifest.labels else "embeddings alone, as there is no head"
    return (
        f"{out}: {manifest.name} in {manifest.precision}, {manifest.layers} layers, {gives}. Largest difference to "
        f"PyTorch on {parity.pictures} images: embedding {parity.embedding:.0e}"
        + (f" and logits {parity.logits:.0e} (both relative)" if parity.logits is not None else " (relative)")
        + f", attention {parity.attention:.0e}, rollout {parity.rollout:.0e}."
    )


def of_texts(out: Path, manifest: Manifest) -> Iterator[str]:
    if manifest.text:
        size = sum((out / name).stat().st_size for name in OF_TEXT)
        yield (
            f"The text tower takes {size / 1e6:.0f} MB. Largest difference to its library: {manifest.text.parity:.0e}."
        )


def measured(manifest: Manifest) -> Iterator[str]:
    if agreement := Agreement.of(manifest.agreement):
        other = "PyTorch" if manifest.precision == "fp32" else "fp32"
        yield (
            f"{manifest.precision} gives the same label as {other} on {agreement.top1:.1%} of {agreement.pictures} "
            f"images. Probabilities differ by {agreement.probability_mean:.1g} on average, at most "
            f"{agreement.probability_max:.1g}."
        )
        if agreement.accuracy is not None and agreement.accuracy_fp32 is not None:
            yield (
                f"The label is right on {agreement.accuracy:.2%} of them, and in PyTorch's float32 on "
                f"{agreement.accuracy_fp32:.2%}."
            )
            if manifest.recipe and agreement.source == "folder":
                yield (
                    "The model was learned from labelled images: if these are among them, its accuracy and its "
                    "calibration look better than they are."
                )
        elif agreement.source == "drawn":
            yield "This was measured on drawn shapes. --pictures FOLDER measures it on your images."
    if likeness := Likeness.of(manifest.likeness):
        yield (
            f"Embeddings of {likeness.pictures} images have a cosine of {likeness.cosine_mean:.4f} with PyTorch's in "
            f"fp32 in the mean, at least {likeness.cosine_least:.4f}. {likeness.neighbours:.0%} have the same nearest "
            "image."
        )
        if likeness.source == "drawn":
            yield "This was measured on drawn shapes. --pictures FOLDER measures it on your images."
    if known := manifest.familiarity:
        yield (
            f"It knows {known.pictures:,} images. The familiarity of another one is the share of {known.held_out:,} "
            "held-out images that are less like them."
        )
    if calibration := Calibration.of(manifest.calibration):
        yield (
            f"Calibration error of the scores on {calibration.pictures} images: {calibration.error_before:.2%}, and "
            f"{calibration.error_after:.2%} with a temperature, fitted to one half and measured on the other in turn. "
            f"The temperature of all of them is {calibration.temperature:.3g}; "
            + ("scores have it." if manifest.temperature != 1 else "--calibrate applies it to the scores.")
        )
