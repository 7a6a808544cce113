"""Checkpoints in every layout that vit_jax and big_vision have used, and a second network for their numbers.

JAX need not be installed: `classify` is the documented forward pass (vit_jax `models_vit.py` and `models_resnet.py`,
big_vision `models/vit.py`) in NumPy and float64, on parameters as flax keeps them. Neither library has a Pillow
pipeline: vit_jax's pixels are by TensorFlow's formula, big_vision's are Pillow's nearest to theirs.
"""

import json
import math
from pathlib import Path

import numpy as np
from PIL import Image

Array = np.ndarray
Tree = dict[str, Array]

WIDTH, HEADS, MLP, DEPTH, CLASSES = 32, 4, 48, 2, 6
OLD_NAMES = {  # before flax.linen
    "MultiHeadDotProductAttention_0": "MultiHeadDotProductAttention_1",
    "LayerNorm_1": "LayerNorm_2",
    "MlpBlock_0": "MlpBlock_3",
}
BLOCK, MAP, UNIT = "Transformer/encoderblock", "MAPHead_0", "block1/unit1"
PICTURE = np.random.default_rng(1).integers(0, 256, (61, 83, 3), dtype=np.uint8)


def make(folder: Path) -> None:
    random = Random(0)

    tree = random.network(patch=8, cls=True, hidden=20) | random.positions(1 + 16)
    write(folder / "google-vit-jax", old_names(tree), tree, squashed(32), patch=8)

    tree = random.network(patch=8) | random.positions(16)
    write(folder / "google-vit-jax-gap", with_root("params/", tree), tree, squashed(32), patch=8)

    tree = random.network(patch=1, channels=256, cls=True) | random.positions(1 + 64) | random.stem()
    file = with_root("opt/target/", tree) | {"opt/target/pre_logits": {}, "opt/state/step": np.array(7)}
    write(folder / "google-hybrid", file, tree, squashed(32), patch=1)

    tree = random.network(patch=8, hidden=WIDTH)
    file = with_root("params/", scanned(tree)) | {"opt/0/count": np.array(7)}
    write(folder / "google-big-vision-sincos", file, tree, cropped(32), patch=8, image_size="(32, 32)")

    tree = random.network(patch=8, cls=True) | {"pos_embedding": random.normal(1, 16, WIDTH)}
    write(folder / "google-big-vision-token", with_root("params/", tree), tree, cropped(32), patch=8)

    tree = random.network(patch=8) | random.map_head() | {"pos_embedding": random.normal(1, 16, WIDTH)}
    file = {f"params/img/{name}": bfloat16(array) for name, array in tree.items()}
    tree = {name: from_bfloat16(file[f"params/img/{name}"]) for name in tree}
    file |= {"params/t": np.array([2.3], np.float32), "params/b": np.array([-10], np.float32)}
    write(folder / "google-siglip", file, tree, cropped(32), patch=8)

    tree = random.network(patch=8) | random.map_head() | {"pos_embedding": random.normal(1, 16, WIDTH)}
    file = {name.removeprefix(f"{MAP}/"): array for name, array in tree.items()}
    file["Transformer/pos_embedding"] = file.pop("pos_embedding")
    write(folder / "google-big-vision-old", file, tree, cropped(32), patch=8)


class Random:
    """Parameters, in steps of 1/64: that compresses."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def normal(self, *shape: int, mean: float = 0, std: float = 0.25) -> Array:
        return (np.round(self.generator.normal(mean, std, shape) * 64) / 64).astype(np.float32)

    def dense(self, path: str, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Tree:
        return {f"{path}/kernel": self.normal(*inputs, *outputs), f"{path}/bias": self.normal(*outputs)}

    def norm(self, path: str, *shape: int) -> Tree:
        return {f"{path}/scale": self.normal(*shape, mean=1), f"{path}/bias": self.normal(*shape)}

    def attention(self, path: str) -> Tree:
        split, tree = (HEADS, WIDTH // HEADS), {}
        for name in ("query", "key", "value"):
            tree |= self.dense(f"{path}/{name}", (WIDTH,), split)
        return tree | self.dense(f"{path}/out", split, (WIDTH,))

    def mlp(self, path: str) -> Tree:
        return self.dense(f"{path}/Dense_0", (WIDTH,), (MLP,)) | self.dense(f"{path}/Dense_1", (MLP,), (WIDTH,))

    def network(self, *, patch: int, channels: int = 3, cls: bool = False, hidden: int = 0) -> Tree:
        tree = self.dense("embedding", (patch, patch, channels), (WIDTH,))
        for i in range(DEPTH):
            tree |= self.norm(f"{BLOCK}_{i}/LayerNorm_0", WIDTH) | self.norm(f"{BLOCK}_{i}/LayerNorm_1", WIDTH)
            tree |= self.attention(f"{BLOCK}_{i}/MultiHeadDotProductAttention_0")
            tree |= self.mlp(f"{BLOCK}_{i}/MlpBlock_0")
        tree |= self.norm("Transformer/encoder_norm", WIDTH)
        if cls:
            tree["cls"] = self.normal(1, 1, WIDTH)
        if hidden:
            tree |= self.dense("pre_logits", (WIDTH,), (hidden,))
        return tree | self.dense("head", (hidden or WIDTH,), (CLASSES,))

    def positions(self, count: int) -> Tree:
        return {"Transformer/posembed_input/pos_embedding": self.normal(1, count, WIDTH)}

    def map_head(self) -> Tree:
        tree = self.attention(f"{MAP}/MultiHeadDotProductAttention_0") | self.mlp(f"{MAP}/MlpBlock_0")
        return tree | self.norm(f"{MAP}/LayerNorm_0", WIDTH) | {f"{MAP}/probe": self.normal(1, 1, WIDTH)}

    def stem(self) -> Tree:
        """One unit of one stage."""
        tree = {"conv_root/kernel": self.normal(7, 7, 3, 64)} | self.norm("gn_root", 1, 1, 1, 64)
        sizes = {"1": (1, 1, 64, 64), "2": (3, 3, 64, 64), "3": (1, 1, 64, 256), "_proj": (1, 1, 64, 256)}
        for name, size in sizes.items():
            tree[f"{UNIT}/conv{name}/kernel"] = self.normal(*size)
            tree |= self.norm(f"{UNIT}/gn{name}", size[-1])
        return tree


def classify(tree: Tree, image: Array, *, patch: int) -> Array:
    """Logits (C,) of an image (height, width, 3) from -1 to 1."""
    x = image.astype(np.float64)
    if "conv_root/kernel" in tree:
        x = features(tree, x)
    x = convolve(x, tree["embedding/kernel"], patch) + tree["embedding/bias"]
    rows, columns, width = x.shape
    x = x.reshape(-1, width)
    table = tree.get("Transformer/posembed_input/pos_embedding")
    if table is None:  # big_vision: positions for the patches alone
        x = x + tree.get("pos_embedding", sincos2d(rows, columns, width))[0]
    if "cls" in tree:
        x = np.concatenate([tree["cls"][0], x])
    if table is not None:  # vit_jax: for the class token too
        x = x + table[0]
    for i in range(DEPTH):
        block = f"{BLOCK}_{i}"
        y = layer_norm(tree, f"{block}/LayerNorm_0", x)
        x = x + attend(tree, f"{block}/MultiHeadDotProductAttention_0", y, y)
        x = x + mlp(tree, f"{block}/MlpBlock_0", layer_norm(tree, f"{block}/LayerNorm_1", x))
    x = layer_norm(tree, "Transformer/encoder_norm", x)
    if f"{MAP}/probe" in tree:
        y = attend(tree, f"{MAP}/MultiHeadDotProductAttention_0", tree[f"{MAP}/probe"][0], x)
        x = (y + mlp(tree, f"{MAP}/MlpBlock_0", layer_norm(tree, f"{MAP}/LayerNorm_0", y)))[0]
    else:
        x = x[0] if "cls" in tree else x.mean(0)
    if "pre_logits/kernel" in tree:
        x = np.tanh(dense(tree, "pre_logits", x))
    return dense(tree, "head", x)


def dense(tree: Tree, path: str, x: Array) -> Array:
    return x @ tree[f"{path}/kernel"].astype(np.float64) + tree[f"{path}/bias"]


def layer_norm(tree: Tree, path: str, x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-6) * tree[f"{path}/scale"] + tree[f"{path}/bias"]


def attend(tree: Tree, path: str, queries: Array, keys: Array) -> Array:
    q, k, v = (
        np.einsum("td,dhk->htk", x, tree[f"{path}/{name}/kernel"]) + tree[f"{path}/{name}/bias"][:, None]
        for name, x in (("query", queries), ("key", keys), ("value", keys))
    )
    scores = np.exp(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1]))
    mixed = scores / scores.sum(-1, keepdims=True) @ v  # (H, T, D / H)
    return np.einsum("htk,hkd->td", mixed, tree[f"{path}/out/kernel"]) + tree[f"{path}/out/bias"]


def mlp(tree: Tree, path: str, x: Array) -> Array:
    x = dense(tree, f"{path}/Dense_0", x)
    x = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))  # flax's gelu is approximate
    return dense(tree, f"{path}/Dense_1", x)


def sincos2d(rows: int, columns: int, width: int) -> Array:
    y, x = np.mgrid[:rows, :columns]
    omega = 1 / 10_000 ** (np.arange(width // 4) / (width // 4 - 1))
    y, x = (np.outer(place.flatten(), omega) for place in (y, x))
    return np.concatenate([np.sin(x), np.cos(x), np.sin(y), np.cos(y)], axis=1)[None]


def convolve(x: Array, kernel: Array, stride: int, *, stem: bool = False) -> Array:
    """(height, width, in) to (height, width, out) with a kernel (height, width, in, out), which a stem standardises."""
    side = kernel.shape[0]
    if stem:
        kernel = kernel.astype(np.float64)
        kernel = (kernel - kernel.mean((0, 1, 2))) / (kernel.std((0, 1, 2)) + 1e-5)
        x = pad_same(x, side, stride)
    windows = np.lib.stride_tricks.sliding_window_view(x, (side, side), axis=(0, 1))[::stride, ::stride]
    return np.einsum("xyihw,hwio->xyo", windows, kernel, optimize=True)


def pad_same(x: Array, side: int, stride: int) -> Array:
    """TensorFlow's: as many outputs as strides fit in, more of the padding at the end."""
    margins = [max((math.ceil(n / stride) - 1) * stride + side - n, 0) for n in x.shape[:2]]
    return np.pad(x, [*((margin // 2, margin - margin // 2) for margin in margins), (0, 0)])


def group_norm(tree: Tree, path: str, x: Array) -> Array:
    groups = x.reshape(-1, 32, x.shape[-1] // 32)
    centred = groups - groups.mean((0, 2), keepdims=True)
    x = (centred / np.sqrt(groups.var((0, 2), keepdims=True) + 1e-6)).reshape(x.shape)
    return x * tree[f"{path}/scale"].flatten() + tree[f"{path}/bias"].flatten()


def features(tree: Tree, x: Array) -> Array:
    """The ResNet of a hybrid."""
    x = np.maximum(group_norm(tree, "gn_root", convolve(x, tree["conv_root/kernel"], 2, stem=True)), 0)
    pooled = np.lib.stride_tricks.sliding_window_view(pad_same(x, 3, 2), (3, 3), axis=(0, 1))  # never below 0
    x = pooled[::2, ::2].max((-2, -1))

    def layer(name: str, x: Array) -> Array:
        y = convolve(x, tree[f"{UNIT}/conv{name}/kernel"], 1, stem=True)
        return group_norm(tree, f"{UNIT}/gn{name}", y)

    y = np.maximum(layer("1", x), 0)
    y = np.maximum(layer("2", y), 0)
    return np.maximum(layer("_proj", x) + layer("3", y), 0)


def old_names(tree: Tree) -> Tree:
    return {"/".join(OLD_NAMES.get(part, part) for part in name.split("/")): array for name, array in tree.items()}


def with_root(root: str, tree: Tree) -> Tree:
    return {root + name: array for name, array in tree.items()}


def scanned(tree: Tree) -> Tree:
    """Blocks stacked along a first axis, as flax's `nn.scan` keeps them."""
    leaves = [name.removeprefix(f"{BLOCK}_0") for name in tree if name.startswith(f"{BLOCK}_0/")]
    rest = {name: array for name, array in tree.items() if not name.startswith(f"{BLOCK}_")}
    return rest | {BLOCK + leaf: np.stack([tree[f"{BLOCK}_{i}{leaf}"] for i in range(DEPTH)]) for leaf in leaves}


def bfloat16(array: Array) -> Array:
    """Truncated to 16 bits; NumPy has no such type and saves two bytes an element."""
    return (array.view(np.uint32) >> 16).astype(np.uint16).view("V2")


def from_bfloat16(array: Array) -> Array:
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def squashed(size: int) -> Array:
    """tf.image.resize with half-pixel centres and no antialiasing, rounded to 8 bits as the service takes them."""
    height, width, _ = PICTURE.shape
    image = np.empty((size, size, 3))
    for row, column in np.ndindex(size, size):
        y, x = (row + 0.5) * height / size - 0.5, (column + 0.5) * width / size - 0.5
        top, left = math.floor(y), math.floor(x)
        corner = PICTURE[top : top + 2, left : left + 2].astype(np.float64)
        weights = np.outer([top + 1 - y, y - top], [left + 1 - x, x - left])
        image[row, column] = (corner * weights[..., None]).sum(axis=(0, 1))
    return np.rint(image).astype(np.uint8)


def cropped(size: int) -> Array:
    height, width, _ = PICTURE.shape
    ratio = round(size * 256 / 224) / min(height, width)
    image = Image.fromarray(PICTURE).resize((round(width * ratio), round(height * ratio)), Image.Resampling.HAMMING)
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return np.asarray(image.crop((left, top, left + size, top + size)))


def write(case: Path, file: dict, tree: Tree, image: Array, *, patch: int, **overrides: str) -> None:
    case.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(case / "checkpoint.npz", **file)
    if overrides:
        (case / "overrides.json").write_text(json.dumps(overrides) + "\n")
    pixels = (image / 127.5 - 1).astype(np.float32)
    logits = classify(tree, pixels, patch=patch).astype(np.float32)
    np.savez_compressed(case / "expected.npz", picture=PICTURE, pixels=pixels.transpose(2, 0, 1), logits=logits)
