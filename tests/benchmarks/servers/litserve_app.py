"""LitServe: batching as in its guide, a picture as a form file (lightning.ai/docs/litserve/features/batching)."""

import litserve as ls

from tests.benchmarks.servers.vit import MAX_BATCH, MAX_WAIT_S, Classifier, decode, port


class ViT(ls.LitAPI):
    def setup(self, device):
        self.classify = Classifier()

    def decode_request(self, request):
        return decode(request["content"].file.read())

    def batch(self, inputs):
        return inputs

    def predict(self, pixels):
        return self.classify(pixels)

    def unbatch(self, output):
        return output

    def encode_response(self, predictions):
        return {"predictions": predictions}


if __name__ == "__main__":
    api = ViT(max_batch_size=MAX_BATCH, batch_timeout=MAX_WAIT_S)
    server = ls.LitServer(api, accelerator="cpu")
    server.run(host="127.0.0.1", port=port(), generate_client_file=False, log_level="warning")
