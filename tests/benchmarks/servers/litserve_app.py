"""LitServe: batching as in its guide, an image as a form file (lightning.ai/docs/litserve/features/batching)."""

import litserve as ls

from tests.benchmarks.servers.vit import MAX_BATCH, MAX_WAIT_S, Classifier, Pixels, Prediction, decode, port


class ViT(ls.LitAPI):
    def setup(self, device: str) -> None:
        self.classify = Classifier()

    def decode_request(self, request):  # type: ignore[no-untyped-def]  # LitServe makes its endpoint of this method's annotations
        return decode(request["content"].file.read())

    def batch(self, inputs: list[Pixels]) -> list[Pixels]:
        return inputs

    def predict(self, pixels: list[Pixels]) -> list[list[Prediction]]:
        return self.classify(pixels)

    def unbatch(self, output: list[list[Prediction]]) -> list[list[Prediction]]:
        return output

    def encode_response(self, predictions):  # type: ignore[no-untyped-def]  # LitServe makes its endpoint of this method's annotations
        return {"predictions": predictions}


if __name__ == "__main__":
    api = ViT(max_batch_size=MAX_BATCH, batch_timeout=MAX_WAIT_S)
    server = ls.LitServer(api, accelerator="cpu")
    server.run(host="127.0.0.1", port=port(), generate_client_file=False, log_level="warning")
