"""LitServe: batching as in its guide, an image as a form file (lightning.ai/docs/litserve/features/batching)."""

import litserve as ls

from lab.benchmarks.servers.vit import MAX_WAIT_S, Classifier, Pixels, Prediction, decode, number


class ViT(ls.LitAPI):
    def setup(self, device: str) -> None:
        self.classify = Classifier()

    def decode_request(self, request):  # type: ignore[no-untyped-def]  # LitServe makes its endpoint of this method's annotations
        return decode(request["content"].file.read())

    def predict(self, pixels: Pixels) -> list[Prediction]:
        return self.classify([pixels])[0]

    def encode_response(self, predictions):  # type: ignore[no-untyped-def]  # LitServe makes its endpoint of this method's annotations
        return {"predictions": predictions}


class Batched(ViT):
    def batch(self, inputs: list[Pixels]) -> list[Pixels]:
        return inputs

    def predict(self, pixels: list[Pixels]) -> list[list[Prediction]]:  # type: ignore[override]  # of what `batch` gives
        return self.classify(pixels)

    def unbatch(self, output: list[list[Prediction]]) -> list[list[Prediction]]:
        return output


if __name__ == "__main__":
    batch = number("BATCH")
    api = Batched(max_batch_size=batch, batch_timeout=MAX_WAIT_S) if batch > 1 else ViT()
    server = ls.LitServer(api, accelerator="cpu", workers_per_device=number("INSTANCES"), timeout=120)
    server.run(host="127.0.0.1", port=number("PORT"), generate_client_file=False, log_level="warning")
