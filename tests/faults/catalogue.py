"""Faults that a person could make, all over app/, model/ and export/. The tests have to find each of them.

They were chosen before it was known whether the tests do.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    file: str
    before: str  # is in the file once
    after: str
    breaks: str


FAULTS = {
    # Before the framework
    "admission-kept": Fault(
        "app/door/admission.py",
        "            self.images -= images",
        "            pass",
        "An answered image keeps its place among the images in work.",
    ),
    "admission-deadline": Fault(
        "app/door/admission.py",
        "images * self.image_s > deadline",
        "images * self.image_s < deadline",
        "The comparison of the predicted end with the deadline is flipped.",
    ),
    "body-kept": Fault(
        "app/door/body.py",
        "        self._bodies.bytes_in_work -= self._received\n",
        "",
        "The bytes of an answered request count as in work for ever.",
    ),
    "any-key": Fault(
        "app/door/keys.py",
        "if not any(matches):",
        "if not matches:",
        "Every key is right.",
    ),
    "top-k": Fault(
        "app/inference/scoring.py",
        'kind="stable")][:top_k]',
        'kind="stable")]',
        "Labels that tie with the last one make the list longer than top_k.",
    ),
    # Requests
    "json-escape": Fault(
        "app/api/body/json_body.py",
        'return (len(before) - len(before.rstrip(b"\\\\"))) % 2 == 1',
        "return True",
        "A string that ends with an escaped backslash does not end there.",
    ),
    "form-images": Fault(
        "app/api/body/form.py",
        "max_files=max_images,",
        "max_files=max_images + 1,",
        "A form may have one image too many.",
    ),
    "number-bound": Fault(
        "app/api/v2/numbers.py",
        "(values > 255).any()",
        "(values > 256).any()",
        "256 is taken for a byte, and becomes 0.",
    ),
    "page-policy": Fault(
        "app/api/routes/page.py",
        "script-src 'self';",
        "script-src 'self' 'unsafe-inline';",
        "The page's policy allows scripts in the page.",
    ),
    # Images
    "pixel-bound": Fault(
        "app/images/decode.py",
        "if width * height > limits.max_pixels:",
        "if width > limits.max_pixels:",
        "There is no upper bound for pixels.",
    ),
    "crop-offset": Fault(
        "app/images/preprocess.py",
        "pixels[top : top + rows, left : left + columns]",
        "pixels[left : left + rows, top : top + columns]",
        "The crop takes its left edge for its top one.",
    ),
    "large-pixels-kept": Fault(
        "app/images/lanes.py",
        "self._free_pixels += images * min(",
        "self._free_pixels += min(images, 0) * min(",
        "The pixels of a decoded large image stay reserved.",
    ),
    "no-quarantine": Fault(
        "app/images/intake.py",
        "            await self._quarantine.add(upload)\n",
        "",
        "An image that crashed a worker may crash the next one.",
    ),
    # The model's queue
    "late-run": Fault(
        "app/inference/batcher.py",
        "if ticket.deadline < now + model.expected(ticket.graph, 1)}",
        "if ticket.deadline < now}",
        "A run that cannot end before its deadline is begun.",
    ),
    "running-unanswered": Fault(
        "app/inference/batcher.py",
        "[*running, *self._waiting]",
        "[*self._waiting]",
        "When the engine breaks, the images of its batch are never answered.",
    ),
    "streams-beside-all-cores": Fault(
        "app/inference/batcher.py",
        "if self._running and not plan.streamed:",
        "if False:",
        "A run on all cores is begun beside others.",
    ),
    "streams-unchecked": Fault(
        "app/inference/model.py",
        "                    self._compare(graph, outputs)\n",
        "                    outputs\n",
        "Streams that compute wrong numbers answer images.",
    ),
    "wrong-row": Fault(
        "app/inference/runner.py",
        "{name: array[i] for name",
        "{name: array[0] for name",
        "Every image of a batch gets the outputs of the first.",
    ),
    "not-finite": Fault(
        "app/inference/runner.py",
        "[image if ok else InferenceFailed() for",
        "[image for",
        "NaN is an answer.",
    ),
    "paused-machine": Fault(
        "app/inference/batch_cost.py",
        "(min(seconds, MOST_RATIO * mean) - mean)",
        "(seconds - mean)",
        "A pause of the machine spoils the expected time of a run.",
    ),
    # Stores
    "memory-unswept": Fault(
        "app/stores/memory.py",
        "        if self._sweep is None:\n            self._sweep_later()\n",
        "",
        "Expired records stay in memory.",
    ),
    "redis-for-ever": Fault(
        "app/stores/redis.py",
        "envelope, px=self._ttl_ms)",
        "envelope)",
        "Redis keeps records for ever.",
    ),
    "breaker-sum": Fault(
        "app/stores/breaker.py",
        "    def succeeded(self) -> None:\n        self._failures = 0",
        "    def succeeded(self) -> None:\n        pass",
        "The breaker counts failures that were not in a row.",
    ),
    # Maps, the client, settings, metrics
    "insertion-order": Fault(
        "app/maps/faithfulness.py",
        "scores=of_orders[1, ::-1]",
        "scores=of_orders[1]",
        "The curve of insertion runs backwards.",
    ),
    "retry-after": Fault(
        "app/client/bulk.py",
        "max(after_s, random.uniform(0.5, 1) * wait_s)",
        "random.uniform(0.5, 1) * wait_s",
        "The client asks again sooner than Retry-After says.",
    ),
    "batch-bound": Fault(
        "app/settings.py",
        "        le=512,\n",
        "",
        "VIT_MAX_BATCH has no upper bound.",
    ),
    "metrics-methods": Fault(
        "app/telemetry/metrics.py",
        'method if method in METHODS else "OTHER"',
        "method",
        "Clients can make up any number of time series.",
    ),
    # The network
    "softmax-axis": Fault(
        "model/attention.py",
        "scores + bias).softmax(dim=-1)",
        "scores + bias).softmax(dim=-2)",
        "The softmax of attention is over queries and not over keys.",
    ),
    "registers-pooled": Fault(
        "model/vit.py",
        "patches = tokens[:, len(self.config.prefix) :, -self.config.width :]",
        "patches = tokens[:, int(self.config.class_token) :, -self.config.width :]",
        "Registers and the distillation token count as patches.",
    ),
    "oblong-positions": Fault(
        "model/positions.py",
        "positions.reshape(1, *old, -1)",
        "positions.reshape(1, *old[::-1], -1)",
        "The positions of an oblong grid are interpolated with rows and columns exchanged.",
    ),
    "query-key-value": Fault(
        "model/checkpoints/families/huggingface.py",
        '|k_proj)\\.", ".attn.k."),\n    (r"\\.attention\\.(attention\\.value|v_proj)',
        '|v_proj)\\.", ".attn.k."),\n    (r"\\.attention\\.(attention\\.value|k_proj)',
        "Keys and values of transformers 5 are exchanged.",
    ),
    "folder-lost": Fault(
        "model/durable.py",
        "                old.rename(path)\n",
        "                pass\n",
        "If the new folder cannot take its place, the old one is lost too.",
    ),
    # Learning
    "leverage": Fault(
        "model/fit/least_squares.py",
        "leverage = 1 / len(x) + u**2 @ shrunk",
        "leverage = u**2 @ shrunk",
        "A left-out image still counts in the bias.",
    ),
    "by-chance": Fault(
        "model/fit/choosing.py",
        "return lost - gained > math.sqrt(lost + gained)",
        "return lost > gained",
        "A difference within the standard error decides.",
    ),
    "crop-outside": Fault(
        "model/fit/augment.py",
        "(2 * down - 1) * (1 - along)",
        "(2 * down - 1) * (1 - across)",
        "A random crop reaches beyond the image.",
    ),
    "copy-learned": Fault(
        "export/fit/split.py",
        "kept, *others = sorted(group, key=lambda entry: not entry[1])",
        "kept, *others = group",
        "A held-out image is learned from, because a copy of it is in the other folder.",
    ),
    # Export
    "parity-nan": Fault(
        "export/parity.py",
        "if not difference <= allowed:",
        "if difference > allowed:",
        "NaN is within every tolerance.",
    ),
    "parity-lean": Fault(
        "export/parity.py",
        "            found[name] = largest_of(found[name], _relative(expected[name], values))\n",
        "            pass\n",
        "The lean graph is compared with nothing.",
    ),
    "agreement-fp32": Fault(
        "export/agreement.py",
        "accuracy_fp32=float(np.mean(expected == answers.labels))",
        "accuracy_fp32=float(np.mean(lean == answers.labels))",
        "The accuracy of float32 is that of the lean graph.",
    ),
    "own-temperature": Fault(
        "export/calibration.py",
        "temperature(logits[fitted], labels[fitted])",
        "temperature(logits[scored], labels[scored])",
        "The error after calibration is measured on the images that were fitted.",
    ),
    "rollout-order": Fault(
        "export/graphs.py",
        "for mean in reversed(means):",
        "for mean in means:",
        "Rollout multiplies the layers in the wrong order.",
    ),
    "smoothed-bias": Fault(
        "export/smoothing.py",
        "        norm.bias.div_(factors)\n",
        "        pass\n",
        "Smoothing for int8 forgets the bias of the norm.",
    ),
}
