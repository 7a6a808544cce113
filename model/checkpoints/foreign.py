"""What people give in place of a checkpoint that loads: how it is known, what it is called, and what to do about it.

Whatever has one of the signs of a kind is of that kind, and the first kind that fits is named.
"""

import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

INDEX = ".index.json"  # how the name of a list of shards ends
NEVER = r"(?!)"  # a pattern that nothing matches
SAMPLE = 512  # bytes from the start of a file
TEXT = rb"[^\x00-\x08\x0e-\x1f\x7f]+\Z"  # all of them


class Kind(NamedTuple):
    """Signs are regular expressions, which match the whole of a name or the start of a file."""

    what: str
    do: str
    starts: bytes = NEVER.encode()  # of the bytes of a file
    members: str = NEVER  # of a name in a zip archive
    files: str = NEVER  # of a name of a file or of a folder
    tensors: str = NEVER  # of a name of a tensor
    classes: str = NEVER  # of a Python class that a pickle names, with its modules
    keys: str = NEVER  # of a key of config.json


QUANTISED = Kind(
    "quantised",
    "give the model that it was made of, or save it with whole weights where it was made (in transformers "
    'model.dequantize().save_pretrained("FOLDER")). --precision int8 quantises at export',
    tensors=r".*\.(SCB|(nested_)?(absmax|quant_map)|quant_state\..*"  # bitsandbytes
    r"|qweight|qzeros|g_idx"  # GPTQ, AWQ
    r"|weight_(packed|scale\w*|zero_point|global_scale|shape)|(in|out)put_scale"  # compressed-tensors, fp8
    r"|W_q|weight\._(data|scale|shift|zeropoint)|weight_(qtype|format)"  # HQQ, Quanto, bitsandbytes
    r"|zero_point|_packed_params.*|.*fake_quant.*)"  # torch.ao
    r"|.*[._:]qdata",  # torchao
    classes=r"(torchao|optimum\.quanto|quanto|bitsandbytes|hqq|compressed_tensors|torch\.ao)\..*|torch\.\w*qint\w+",
    keys="quantization_config|compression_config",
)
NO_FLOATS = Kind("not made of floating-point numbers", "save it with these where it was made")
FORMS = {  # of tensors that are not numbers side by side
    "meta": Kind("without the values of its weights", "save it after they are loaded, and not from the device meta"),
    "sparse": Kind("of sparse tensors", "save each as tensor.to_dense()"),
    "nested": Kind("of nested tensors", "save each part of them as a tensor with a name of its own"),
}
KINDS = (
    Kind(
        "a pointer of Git LFS, without the weights",
        "`git lfs pull` gets them",
        starts=rb"version https?://(git-lfs|hawser)",
    ),
    Kind(
        "a model of PEFT with an adapter that is not merged",
        "where it was made, merge it with merge_and_unload(), and save what that returns",
        tensors=r".*\.(base_layer\..*|original_module\..*)",
    ),
    Kind(
        "an adapter",
        "load it with PEFT, merge it into its model with merge_and_unload(), save that with save_pretrained(), and "
        "give the new folder. Prompts cannot be merged, and are not supported",
        files=r"adapter_config\.json|(adapter_model|pytorch_adapter)\.(safetensors|bin)",
        tensors=r".*\.((lora|ia3|vera|oft|boft|hada|lokr|fourierft|shira|ln_tuning|adaption)_.*"
        r"|modules_to_save\..*)|(.*\.)?prompt_(embeddings|encoder\.default\..*)",
    ),
    QUANTISED,
    Kind(
        "a file of TensorFlow, Keras or Flax",
        'in transformers 4, from_pretrained("FOLDER", from_tf=True).save_pretrained("OTHER"), or from_flax, writes '
        "weights of PyTorch",
        starts=rb"\x89HDF\r\n\x1a\n|....TFL3",
        members=r"model\.weights\.h5",
        files=r".*\.(h5|hdf5|keras|tflite|msgpack(\.index\.json)?)|(saved|frozen|keras)_\w+\.pb|.*\.data-\d+-of-\d+"
        r"|.*ckpt.*\.(index|meta)",
    ),
    Kind(
        "a model of another program, such as ONNX, OpenVINO or Core ML",
        "give the PyTorch checkpoint that it was made of",
        starts=rb"\s*(<\?xml[^>]*>\s*)?<net |GGUF|lmgg|tjgg|[pf]trt",
        members=r"(.*\.mlpackage/.*)",
        files=r"openvino_model\w*\.(xml|bin)|.*\.(onnx([._]data)?|gguf|ggml|engine|plan|trt|mlmodel|mlpackage|mlmodelc"
        r"|pdparams|pdiparams|pdmodel|caffemodel|mnn|rknn|mar)",
    ),
    Kind(
        "a program of TorchScript",
        'its weights alone are a checkpoint: torch.save(torch.jit.load("FILE").state_dict(), "OTHER.pth")',
        members=r"([^/]*/)?(constants\.pkl|code/.*)",
    ),
    Kind(
        "a program of torch.export",
        'its weights alone are a checkpoint: torch.save(torch.export.load("FILE").state_dict, "OTHER.pth")',
        members=r"([^/]*/)?(archive_format|serialized_exported_program\.json)",
        files=r".*\.pt2",
    ),
    Kind(
        "of DeepSpeed, which splits the weights over files",
        "in the folder with zero_to_fp32.py, `python zero_to_fp32.py . OTHER` writes them whole; give that folder",
        files=r"zero_to_fp32\.py|(bf16_|fp16_)?zero_pp_rank_\d+_.*\.pt",
    ),
    Kind(
        "a checkpoint of torch.distributed (FSDP), which splits the weights over files",
        "`python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER FILE.pth` writes them into one",
        files=r".*\.distcp|\.metadata",
    ),
    Kind(
        "of FSDP, with the weights of a whole module in one flat tensor",
        "where it was made, save model.state_dict() inside FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT)",
        tensors=r"(.*\.)?_?flat_param(_\d+)?",
    ),
    Kind(
        "of OpenMMLab, whose names are not supported",
        "rename its tensors as in timm. Its mean and std, for pixels from 0 to 255, are in data_preprocessor",
        tensors=r"(.*\.)?layers\.\d+\.ffn\.layers\..*",
    ),
    Kind(
        "of a network with class attention, such as CaiT",
        "supported are plain Vision Transformers",
        tensors=r"(.*\.)?blocks_token_only\..*|.*\.attn\.proj_[lw]\.(weight|bias)",
    ),
    Kind(
        "of the evaluation of DINOv2 or DINOv3, with a linear classifier for each learning rate",
        "its results_eval_linear.json names the best. Save that one alone beside the backbone, with a NAME that has "
        'avgpool_True: torch.save({k.rpartition(".")[2]: v for k, v in torch.load("FILE")["model"].items() '
        'if "NAME." in k}, "FOLDER/head.pth"). --without "*classifiers_dict*" leaves all out',
        tensors=r"(.*\.)?classifiers_dict\..*",
    ),
    Kind(
        "a checkpoint of Orbax or TensorStore",
        "restore it where it was made, and save its parameters with numpy.savez, under the names of vit_jax or "
        "big_vision, joined by /",
        files=r"_CHECKPOINT_METADATA|manifest\.ocdbt|ocdbt\.process_\d+|_sharding|\.z(array|group)|zarr\.json|.*\.bv(-.*)?",
    ),
    Kind(
        "an archive",
        "unpack it, and give the folder or the file with the weights that is in it",
        starts=rb"\x1f\x8b|BZh|\xfd7zXZ\x00|7z\xbc\xaf\x27\x1c|Rar!|\x28\xb5\x2f\xfd|.{257}ustar",
        members=r"(?!.*data\.pkl$|.*\.npy$).*[^/.]\.\w{2,12}",
    ),
    Kind("a single array of NumPy", "give the file with all weights", starts=rb"\x93NUMPY"),
    Kind("nothing but zeros", "copy or download it again", starts=rb"\x00+\Z"),
    Kind(
        "text, such as a web page, a configuration or the answer of a server",
        "give the folder that it is in, or download the file itself, with the login that its site asks for. On the "
        "Hugging Face Hub its address has /resolve/ where that of its page has /blob/",
        starts=TEXT,
    ),
)


def of_file(file: Path) -> str:
    """A sentence on a file that cannot be a checkpoint, by its content or its name; empty for any other."""
    with file.open("rb") as content:
        start = content.read(SAMPLE)
    names: list[str] = []
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    # The length of a safetensors header may begin like anything. A list of shards is JSON.
    is_safetensors = start[8:9] == b"{" and int.from_bytes(start[:8], "little") < file.stat().st_size
    for kind in KINDS:
        inside = not (is_safetensors or file.name.endswith(INDEX)) and re.match(kind.starts, start, re.DOTALL)
        if inside or _any(kind.members, names) or re.fullmatch(kind.files, file.name):
            return _sentence(file.name, kind)
    return ""


def of_names(where: str, names: Iterable[str]) -> str:
    """A sentence on a folder or repository that has these files and folders, none of them with weights; or empty."""
    names = sorted(names)
    for kind in KINDS:
        if found := next((name for name in names if re.fullmatch(kind.files, name.rpartition("/")[2])), None):
            return _sentence(f"{found} in {where}", kind)
    return ""


def of_tensors(file: str, types: Mapping[str, str], config: Mapping[str, Any]) -> str:
    """A sentence on weights that need more than a state dict: by the names and types of their tensors, and config.json
    beside them; or empty.
    """
    stated = {key for key, value in config.items() if value}
    for kind in KINDS:
        if found := next((name for name in types if re.fullmatch(kind.tensors, name)), None):
            return _sentence(f"{file}, with its tensor {found},", kind)
        if _any(kind.keys, stated):
            return _sentence(file, kind)
    for name, dtype in types.items():
        if dtype in FORMS:
            return _sentence(f"{file}, with its tensor {name},", FORMS[dtype])
        if re.search(r"\b(weight|kernel)$", name) and not is_plain(dtype):
            kind = NO_FLOATS if re.match("bool|complex", dtype) else QUANTISED
            return _sentence(f"{file}, whose {name} has numbers of the type {dtype},", kind)
    return ""


def of_classes(file: str, error: BaseException | None) -> str:
    """A sentence on a pickle that torch refuses to read, by the class in its error; or empty."""
    named = set(re.findall(r"[A-Za-z_][\w.]*\.\w+", str(error)))
    return next((_sentence(file, kind) for kind in KINDS if _any(kind.classes, named)), "")


def is_named(file: str) -> bool:
    """Whether a file has the name of one that cannot be a checkpoint."""
    return any(re.fullmatch(kind.files, file) for kind in KINDS)


def is_plain(dtype: str) -> bool:
    """Whether a number of this type stands for itself: not a part of one, a code or a scale."""
    return bool(re.fullmatch(r"b?float(16|32|64)|float8_e(4m3|5m2)(fn)?(uz)?|", dtype))


def _any(pattern: str, names: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, name) for name in names)


def _sentence(subject: str, kind: Kind) -> str:
    return f"{subject} is {kind.what}: {kind.do}"
