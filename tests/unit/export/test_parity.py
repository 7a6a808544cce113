"""export/parity.py: what is refused in which precision, with an engine that is off by a known share."""

import numpy as np
import pytest

from app.bundle import outputs_of
from app.inference.engine import MOST_LIKELY_CLASS
from export.graphs import EVIDENCE, MAPS
from export.image_spec import image_spec
from export.images import reference_pixels
from export.parity import ParityError, check_parity, compare
from export.reference import reference
from tests.support.familiar import knowing
from tests.support.toy import toy_checkpoint

LOGITS = ("logits", "evidence", "evidence_heads", "evidence_rest")


class Off:
    """PyTorch's own numbers, with those of `scaled` `factor` times as large, in both graphs or the lean one."""

    def __init__(self, checkpoint, factor, *, lean_alone, scaled):
        self.checkpoint, self.factor = checkpoint, np.float32(factor)
        self.lean_alone, self.scaled = lean_alone, scaled
        answers = {"logits": (), "embedding": (), **({"unlike": ()} if checkpoint.known else {})}
        explains = {**answers, **dict.fromkeys((*MAPS, "classes", *EVIDENCE, "lens"), (5,))}
        self.layout = outputs_of(explains, {"tokens": ()})

    def run(self, graph, images, asked=()):
        first = reference(self.checkpoint, images, np.zeros((len(images), 1), np.int64))
        likely = np.argsort(-first["logits"], axis=1)[:, :5]
        classes, directions = likely, None
        if asked:
            given, directions = (np.stack(each) for each in zip(*asked, strict=True))
            classes = np.where(given == MOST_LIKELY_CLASS, likely, given)
        outputs = reference(self.checkpoint, images, classes, directions)
        given = self.layout[graph]
        if self.lean_alone and graph != "classify":
            return {name: outputs[name] for name in given}
        return {name: outputs[name] * self.factor if name in self.scaled else outputs[name] for name in given}


def check(precision, factor, *, lean_alone=False, scaled=LOGITS):
    checkpoint = knowing(toy_checkpoint())
    engine = Off(checkpoint, factor, lean_alone=lean_alone, scaled=scaled)
    return check_parity(checkpoint, engine, precision)


@pytest.mark.parametrize(("precision", "factor"), [("fp32", 1.0), ("fp16", 1.01), ("int8", 1.1)])
def test_the_difference_within_tolerance_is_measured(precision, factor):
    parity, _ = check(precision, factor)
    assert parity.logits == pytest.approx(factor - 1, abs=1e-4)


def test_one_number_of_the_tokens_may_be_off_in_lower_precision_alone():
    class OneOff(Off):
        def run(self, graph, images, asked=()):
            outputs = super().run(graph, images, asked)
            if graph == "tokens":
                outputs["tokens"][0, 0, 0] += np.abs(outputs["tokens"]).max()
            return outputs

    toy = toy_checkpoint()
    image, engine = reference_pixels(image_spec(toy.preprocessing), 1), OneOff(toy, 1, lean_alone=False, scaled=())
    found, _ = compare(toy, engine, "int8", image)
    assert 0 < found["tokens"] < 0.5
    with pytest.raises(ParityError, match="tokens"):
        compare(toy, engine, "fp32", image)


def test_distances_over_many_patches_may_differ_by_more_than_over_few():
    many = toy_checkpoint(depth=1, image_size=(248, 248))
    (image,) = reference_pixels(image_spec(many.preprocessing), 1)
    near, far = (Off(many, factor, lean_alone=False, scaled=("distance",)) for factor in (1 + 9e-6, 1 + 2e-5))
    found, _ = compare(many, near, "fp32", image[np.newaxis])
    assert found["distance"] > 1e-4
    with pytest.raises(ParityError, match="distance"):
        compare(many, far, "fp32", image[np.newaxis])


def test_distances_are_those_of_every_reference_image():
    _, distance = check("fp32", 1.0)
    pixels = reference_pixels(image_spec(toy_checkpoint().preprocessing), 12)
    np.testing.assert_allclose(distance, reference(toy_checkpoint(), pixels, None)["distance"], atol=1e-5)


@pytest.mark.parametrize(("precision", "factor"), [("fp32", 1.01), ("fp16", 1.1), ("int8", 1.6), ("int8", np.nan)])
def test_a_difference_beyond_tolerance_is_refused(precision, factor):
    with pytest.raises(ParityError, match=r"differ by|most likely"):
        check(precision, factor)


@pytest.mark.parametrize(
    ("factor", "wrong", "quantity"),
    [
        *((factor, {"lean_alone": True}, "logits") for factor in (1.001, np.nan)),
        *((1.001, {"scaled": (output,)}, output.split("_")[0]) for output in ("evidence_rest", "evidence_heads")),
        *((1.001, {"scaled": (output,)}, output) for output in ("unlike", "distance", "lens")),
    ],
)
def test_a_lean_graph_or_an_output_that_is_wrong_alone_is_refused(factor, wrong, quantity):
    with pytest.raises(ParityError, match=rf"{quantity}: .* differ by"):
        check("fp32", factor, **wrong)
