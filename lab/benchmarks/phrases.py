"""What typed labels cost: milliseconds of a request with them, less those of one that asks for the bundle's labels.

A CLIP ViT-B/16 of random weights with its text tower, in fp32; one client, whose requests take turns. The tokeniser is
that of the tests, which reads letters: a phrase has about 30 tokens.
"""

import random
import shutil
import statistics
import string
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import httpx
import torch

from lab.benchmarks.record import ROOT, Rows
from lab.benchmarks.rounds import quartiles
from tests.support.pictures import jpeg
from tests.support.server import PATIENT, Process, running

SOURCE = ROOT / "tests" / "golden" / "checkpoints" / "huggingface-clip"
FILES = ("tokenizer.json", "tokenizer_config.json", "labels.txt")
ROUNDS = 30
PHRASES = 10
B_16 = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "patch_size": 16}


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as client:
        times: dict[str, list[float]] = {"labels of the bundle": [], "10 new phrases": [], "the same 10 again": []}
        for _ in range(ROUNDS):
            phrases = ",".join("".join(random.choices(string.ascii_lowercase, k=7)) for _ in range(PHRASES))
            typed = {"labels": phrases, "prompt": "a photo of a {}"}
            for runs, asked in zip(times.values(), ({}, typed, typed), strict=True):
                runs.append(asking(client, asked))
    bundle = times["labels of the bundle"]
    return [
        {
            "labels, CLIP ViT-B/16 in fp32": name,
            "ms": quartiles(runs, 0),
            "more than labels of the bundle, ms": round(
                statistics.median(a - b for a, b in zip(runs, bundle, strict=True)), 1
            ),
        }
        for name, runs in times.items()
    ]


@contextmanager
def served(folder: Path) -> Iterator[httpx.Client]:
    checkpoint, bundle = folder / "checkpoint", folder / "bundle"
    save(checkpoint)
    command = [sys.executable, "-m", "export", "--checkpoint", str(checkpoint), "--text", "--out", str(bundle)]
    subprocess.run([*command, "--labels", str(checkpoint / "labels.txt")], check=True, stdout=subprocess.DEVNULL)
    with running(bundle, **PATIENT) as server, client_of(server) as client:
        yield client


def client_of(server: Process) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60)


def save(folder: Path) -> None:
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    torch.manual_seed(0)
    small = CLIPConfig.from_pretrained(SOURCE).text_config
    ends = {name: getattr(small, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    CLIPModel(CLIPConfig(text_config=ends, vision_config=B_16)).save_pretrained(folder)
    CLIPImageProcessor().save_pretrained(folder)
    for name in FILES:
        shutil.copy(SOURCE / name, folder)


def asking(client: httpx.Client, asked: dict[str, str]) -> float:
    """Milliseconds until the answer."""
    start = perf_counter()
    client.post("/classify", params={"attention": "false", **asked}, content=jpeg()).raise_for_status()
    return 1000 * (perf_counter() - start)
