"""MLServer: a custom runtime with adaptive batching (docs.seldon.ai/mlserver, user-guide/custom and adaptive-batching).

Images travel as its content type "base64" and predictions as JSON strings, because it splits batches by their first
dimension.
"""

import json

from mlserver import MLModel
from mlserver.codecs import Base64Codec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

from lab.benchmarks.servers.vit import Classifier, decode


class ViT(MLModel):
    async def load(self) -> bool:
        self.classify = Classifier()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        predictions = self.classify([decode(jpeg) for jpeg in Base64Codec.decode_input(payload.inputs[0])])
        answers = [json.dumps(prediction) for prediction in predictions]
        return InferenceResponse(model_name=self.name, outputs=[StringCodec.encode_output("predictions", answers)])
