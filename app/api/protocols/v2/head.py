"""The JSON of a request to `/infer` in the Open Inference Protocol: its input tensors and its requested outputs.

kserve/open-inference-protocol, `specification/protocol/inference_rest.md`; parameters for tensors in binary and for
classification as in Triton's `docs/protocol/extension_binary_data.md` and `extension_classification.md`.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from app.api.parameters import unknown
from app.errors import MalformedRequest

Name = Annotated[StrictStr, Field(max_length=256)]  # messages repeat it
Size = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]  # messages repeat it
Parameters = Annotated[dict[StrictStr, Any], BeforeValidator(lambda given: {} if given is None else given)]


# The protocol leaves parameters open. These change nothing here: the model keeps no state, no request goes before
# another, and MLServer's clients say with each tensor how their side decodes it.
WITHOUT_EFFECT = {"priority", "sequence_id", "sequence_start", "sequence_end", "content_type", "headers"}


class Part(BaseModel):
    """What has parameters, and the names of those that it takes."""

    model_config = ConfigDict(extra="allow")
    takes: ClassVar[tuple[str, ...]]
    called: ClassVar[str]

    parameters: Parameters = Field(default_factory=dict)

    def check_names(self) -> None:
        """Raises MalformedRequest for a member or a parameter that would be ignored."""
        if any(name.startswith("shared_memory") for name in self.parameters):
            raise MalformedRequest("Shared memory is not supported: send the tensor with the request.")
        for name in self.model_extra or ():
            raise MalformedRequest(unknown(name, type(self).model_fields, of=self.called, kind="member"))
        for name in self.parameters:
            if name not in (*self.takes, *WITHOUT_EFFECT):
                raise MalformedRequest(unknown(name, self.takes, of=self.called))


class RequestedOutput(Part):
    """A requested output."""

    takes = ("classification", "binary_data")
    called = "an output"

    name: Name


class InputTensor(Part):
    """An input. Its numbers are in `data`, or they are `binary_data_size` bytes after the head."""

    takes = ("binary_data_size", "content_type")
    called = "an input"

    name: Name
    datatype: Name
    shape: list[Size] = Field(min_length=1, max_length=8, fail_fast=True)
    data: list[Any] | None = None


class Head(Part):
    takes = ("attention", "timeout", "binary_data_output")
    called = "a request"

    id: StrictStr | None = None
    model_name: Name | None = None  # KServe's own client repeats the path so
    model_version: Literal["", "1"] | None = None  # as in gRPC
    inputs: list[InputTensor] = Field(min_length=1, fail_fast=True)
    outputs: Annotated[list[RequestedOutput], Field(fail_fast=True)] | None = None


def read_head(text: bytes | bytearray) -> Head:
    """Raises MalformedRequest."""
    try:
        head = Head.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "JSON"
        raise MalformedRequest(f"The request is not what the protocol describes: {place}: {first['msg']}.") from None
    for part in (head, *head.inputs, *(head.outputs or ())):
        part.check_names()
    return head


def flag(parameters: Parameters, name: str, *, default: bool = False) -> bool:
    """`default` where it is not there. Raises MalformedRequest."""
    value = parameters.get(name)
    if value is not None and not isinstance(value, bool):
        raise MalformedRequest(f"The parameter {name} must be true or false.")
    return default if value is None else value


def count(parameters: Parameters, name: str) -> int:
    """0 where it is not there. Raises MalformedRequest."""
    value = parameters.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise MalformedRequest(f"The parameter {name} must be a whole number from 0 to 2^64 - 1.")
    return value
