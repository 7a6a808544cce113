"""export/other_engine.py: whether both engines of a CPU run a bundle, and what is said if one does not."""

import pytest

from app.bundle import load_bundle
from app.inference.onnxruntime import OnnxEngine
from app.inference.openvino import OpenVinoEngine
from app.settings import DEMO_BUNDLE
from export.other_engine import LONGEST, OTHERS, other_engine

each_engine = pytest.mark.parametrize("precision", ["fp32", "bf16"])  # OpenVINO, ONNX Runtime


def said(precision):
    """Of the demo bundle, as if it were in this precision."""
    return other_engine(DEMO_BUNDLE, load_bundle(DEMO_BUNDLE).manifest.model_copy(update={"precision": precision}))


def failing(words):
    def fail(*_, **__):
        raise RuntimeError(words)

    return fail


@each_engine
def test_nothing_is_said_of_an_engine_that_gives_the_known_answer(precision):
    assert said(precision) is None


@each_engine
@pytest.mark.parametrize("step", ["__init__", "_rows"])
def test_an_engine_that_fails_is_named_with_what_follows_for_the_service(monkeypatch, precision, step):
    kind, name, without = OTHERS[precision]
    monkeypatch.setattr(kind, step, failing("[Fusion] THROWN:\n" + "Check 'ok' failed\n" * 200))
    sentence = said(precision)
    assert sentence.startswith(f"{name} cannot run this bundle ([Fusion] THROWN: Check 'ok' failed Check 'ok' ")
    assert sentence.endswith(f" .... {without}")
    assert len(sentence) <= LONGEST + len(f". {without}")


@each_engine
@pytest.mark.parametrize("graph", ["classify", "explain"])
def test_an_engine_with_other_numbers_is_named_with_the_first_that_differs(monkeypatch, precision, graph):
    kind, name, without = OTHERS[precision]
    right = kind._rows

    def rows(engine, inputs, *, beside):
        return right(engine, inputs, beside=beside) * (2 if inputs["explain"] == (graph == "explain") else 1)

    monkeypatch.setattr(kind, "_rows", rows)
    sentence = said(precision)
    assert sentence.startswith(f"The model computes wrong numbers on {name}: for the bundle's known image, ")
    assert f"of the {graph} graph differs from PyTorch by" in sentence
    assert sentence.endswith(without)


def test_a_bundle_for_cuda_is_opened_in_no_engine_of_a_cpu(monkeypatch):
    for kind in (OnnxEngine, OpenVinoEngine):
        monkeypatch.setattr(kind, "__init__", failing("opened"))
    assert said("fp16") is None
