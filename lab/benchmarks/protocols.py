"""Images served per second by each protocol: the same JPEG at 16 connections, labels alone, the protocols in turn."""

import base64
import json
import statistics
from functools import partial
from io import BytesIO

from PIL import Image

from app.bundle import load_bundle
from app.images.preprocess import preprocess
from app.settings import DEMO_BUNDLE
from lab.benchmarks.record import Rows
from lab.benchmarks.rounds import in_turn
from lab.benchmarks.under_load import under_load
from tests.support.connection import JPEG, JSON, post, tensor
from tests.support.pictures import jpeg
from tests.support.server import PATIENT, running

CONNECTIONS = 16
ROUNDS = 7
SECONDS = 4.0
FIRST = "POST /classify, the JPEG as body"


def requests() -> dict[str, bytes]:
    manifest = load_bundle(DEMO_BUNDLE).manifest
    infer = f"/v2/models/{manifest.name}/infer"
    picture = jpeg()
    in_json = json.dumps({"image": base64.b64encode(picture).decode()}).encode()
    pixels, _ = preprocess(Image.open(BytesIO(picture)).convert("RGB"), manifest.image)
    element = len(picture).to_bytes(4, "little") + picture
    return {
        FIRST: post(picture, JPEG, path="/classify?attention=false"),
        "POST /classify, base64 in JSON": post(in_json, JSON, path="/classify?attention=false"),
        "POST /, the JPEG as body (Hugging Face)": post(picture, JPEG, path="/"),
        "POST /v2/.../infer, BYTES": tensor(infer, [1], "BYTES", element),
        "POST /v2/.../infer, UINT8 pixels": tensor(infer, [1, *pixels.shape], "UINT8", pixels.tobytes()),
    }


def measure() -> Rows:
    with running(**PATIENT) as server:
        load = partial(under_load, server, seconds=SECONDS, connections=CONNECTIONS)
        served = in_turn({name: partial(load, request) for name, request in requests().items()}, ROUNDS)
    rates = {name: statistics.median(s["images_per_s"] for s in runs) for name, runs in served.items()}
    return [
        {
            "protocol, demo model": name,
            "images/s": round(rates[name], 1),
            "relative": round(rates[name] / rates[FIRST], 2),
            "p50, ms": round(statistics.median(s["p50_ms"] for s in runs), 1),
            "CPU ms per image, server": round(1000 * statistics.median(s["cpu_s"] / s["images"] for s in runs), 2),
        }
        for name, runs in served.items()
    ]
