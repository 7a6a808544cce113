"""Faults that a person could make, all over the project. The tests have to find each of them.

They were chosen before it was known whether the tests do.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    file: str
    before: str  # is in the file once
    after: str


FAULTS = {
    # Before the framework
    "admission-kept": Fault(  # An answered image keeps its place among the images in work.
        "app/http/admission.py", "            self.images -= images", "            pass"
    ),
    "admission-deadline": Fault(  # The comparison of the predicted end with the deadline is flipped.
        "app/http/admission.py", "images * self.image_s > deadline", "images * self.image_s < deadline"
    ),
    "body-kept": Fault(  # The bytes of an answered request count as in work for ever.
        "app/http/body.py", "        self._limits.bytes_in_work -= self._received\n", ""
    ),
    "bodies-unbounded": Fault(  # All bodies together may take any memory.
        "app/http/body.py", "        self._limits.check_room()\n        if message", "        if message"
    ),
    "prefix-lost": Fault(  # The framework does not learn of the path under which the service is.
        "app/http/guard.py", '{**scope, "root_path": root_path', '{**scope, "root_path": ""'
    ),
    "left-goes-on": Fault(  # The work for a client that has left goes on.
        "app/http/protocol.py", "            RequestState.of(self._in_work.scope).leave()\n", ""
    ),
    "any-key": Fault(  # Every key is right.
        "app/http/keys.py", "if not any(matches):", "if not matches:"
    ),
    "top-k": Fault(  # Labels that tie with the last one make the list longer than top_k.
        "app/inference/scoring.py", 'kind="stable")][:count]', 'kind="stable")]'
    ),
    # Requests
    "json-bytes": Fault(  # True is taken for a byte of pixels.
        "app/images/json_body.py",
        "if set(map(type, values)) != {int}:",
        "if not set(map(type, values)) <= {int, bool}:",
    ),
    "form-images": Fault(  # A form may have one image too many.
        "app/api/form.py", "<= max_images:", "<= max_images + 1:"
    ),
    "cut-form": Fault(  # What arrived of a form that was cut off is taken for all of it.
        "app/api/form.py", "    if not parser.ended:\n", "    if False:\n"
    ),
    "json-place": Fault(  # Of several large values in JSON, the second begins too early.
        "app/images/json_body.py", "at += size\n            place", "at += size - 1\n            place"
    ),
    "page-policy": Fault(  # The page's policy allows scripts in the page.
        "app/api/routes/page.py", "script-src 'self';", "script-src 'self' 'unsafe-inline';"
    ),
    "etag-of-any": Fault(  # A client that has a map as JSON gets 304 for the PNG.
        "app/api/render.py", "repr((*recipe, kind))", "repr(recipe)"
    ),
    "drawings-kept": Fault(  # What was drawn keeps its place among the drawings in work.
        "app/api/render.py", "        drawing.add_done_callback(lambda _: self._places.release())\n", ""
    ),
    "least-ignored": Fault(  # A request's own least familiarity is ignored.
        "app/api/results.py",
        "return settings.least_familiarity if self.least_familiarity is None else self.least_familiarity",
        "return settings.least_familiarity",
    ),
    # The page
    "older-map": Fault(  # Of two maps the one that arrives last is shown, and not the one that was asked for last.
        "app/page/latest.js", "    this.#controller.abort();", "    // nothing"
    ),
    "label-by-index": Fault(  # A label that is a number is asked for by the index that another one's text is.
        "app/page/classes.js",
        "return this.#byLabel.has(String(index)) ? this.labels[index] : String(index);",
        "return String(index);",
    ),
    "long-image": Fault(  # The pointer reads patches of a long image where they are not.
        "app/page/view.js", "(from + to - length) / 2", "from"
    ),
    # Images
    "pixel-bound": Fault(  # There is no upper bound for pixels.
        "app/images/decode.py", "if width * height > limits.max_pixels:", "if width > limits.max_pixels:"
    ),
    "crop-offset": Fault(  # The crop takes its left edge for its top one.
        "app/images/preprocess.py",
        "pixels[top : top + rows, left : left + columns]",
        "pixels[left : left + rows, top : top + columns]",
    ),
    "large-pixels-kept": Fault(  # The pixels of a decoded large image stay reserved.
        "app/images/turns.py", "self._free_pixels += by * min(", "self._free_pixels += min(by, 0) * min("
    ),
    "stopped-is-slow": Fault(  # An image whose worker was stopped from outside counts as one that takes too long.
        "app/images/pool.py", "SIGKILL: WorkerKilled", "SIGKILL: WorkerTimedOut"
    ),
    "file-outside": Fault(  # A bundle may name a file that lies outside of its folder.
        "app/bundle.py", "if not exists or not file.resolve().is_relative_to(self.folder.resolve()):", "if not exists:"
    ),
    # The model's queue
    "late-run": Fault(  # A run that cannot end before its deadline is begun.
        "app/inference/batcher.py",
        "if ticket.deadline < soonest[ticket.graph]}",
        "if ticket.deadline < now}",
    ),
    "running-unanswered": Fault(  # When the engine breaks, the images of its batch are never answered.
        "app/inference/batcher.py", "[*running, *self._waiting]", "[*self._waiting]"
    ),
    "beside-all-cores": Fault(  # A run on all cores is begun beside others.
        "app/inference/batcher.py",
        "if beside else not self._running",
        "if beside else True",
    ),
    "beside-unchecked": Fault(  # Runs side by side that compute wrong numbers answer images.
        "app/inference/engine.py",
        "        if self.side_by_side > 1:\n            with",
        "        if False:\n            with",
    ),
    "wrong-row": Fault(  # Every image of a batch gets the outputs of the first.
        "app/inference/runner.py", "{name: array[i] for name", "{name: array[0] for name"
    ),
    "not-finite": Fault(  # NaN is an answer.
        "app/inference/runner.py", "[image if ok else InferenceFailed() for", "[image for"
    ),
    "paused-machine": Fault(  # A pause of the machine spoils the expected time of a run.
        "app/inference/model.py", "(min(seconds, MOST_RATIO * mean) - mean)", "(seconds - mean)"
    ),
    # Stores
    "memory-unswept": Fault(  # Expired records stay in memory.
        "app/stores/memory.py", "        if self._sweep is None:\n            self._sweep_later()\n", ""
    ),
    "redis-for-ever": Fault(  # Redis keeps records for ever.
        "app/stores/redis.py", "value, px=self._ttl_ms)", "value)"
    ),
    "breaker-sum": Fault(  # The breaker counts failures that were not in a row.
        "app/stores/breaker.py",
        "    def succeeded(self) -> None:\n        self._failures = 0",
        "    def succeeded(self) -> None:\n        pass",
    ),
    # Maps, the client, settings, metrics
    "several-flights": Fault(  # Each of those who ask for an image's maps at once has a run of its own.
        "app/maps/explainer.py", "(running := self._running.get(key)) is None", "(running := None) is None"
    ),
    "maps-unread": Fault(  # Maps that are kept are made again for each who asks.
        "app/maps/explainer.py",
        "if (found := await self._read(key, self.records.unpack_maps)) is not None:",
        "if (found := None) is not None:",
    ),
    "maps-of-another": Fault(  # The maps of one image are kept under a key that others have too.
        "app/maps/explainer.py", "key = f\"{id}/{'-'.join", "key = f\"{'-'.join"
    ),
    "heads-last": Fault(  # With the mean of layers, the largest head is one of means over layers.
        "app/maps/attention.py",
        """layers, of_head = one_of(maps.attention.swapaxes(0, 1), head, axis="head")
    row, of_layer = one_of(layers, layer, axis="layer")""",
        """heads, of_layer = one_of(maps.attention, layer, axis="layer")
    row, of_head = one_of(heads, head, axis="head")""",
    ),
    "judged-apart": Fault(  # A map that is behind on every image seems not surely behind, as images differ.
        "export/judge/table.py", "differences.std(", "figures.std("
    ),
    "judged-another": Fault(  # The table of maps of another model is believed.
        "app/maps/judgement.py", "if found.digest != bundle.digest:", "if False:"
    ),
    "mean-forgotten": Fault(  # Without PICTURES= a bundle has no mean of the images that its checkpoint knows.
        "export/familiarity.py", "elif known and not known.changed_by:", "elif False:"
    ),
    "insertion-order": Fault(  # The curve of insertion runs backwards.
        "app/maps/faithfulness.py", "scores=of_orders[1, ::-1]", "scores=of_orders[1]"
    ),
    "retry-after": Fault(  # The client asks again sooner than Retry-After says.
        "client/vit_serve_client/bulk.py",
        "max(after_s, random.uniform(0.5, 1) * wait_s)",
        "random.uniform(0.5, 1) * wait_s",
    ),
    "busy-recorded": Fault(  # An image for which the service was too busy is recorded as one that cannot be used.
        "client/vit_serve_client/bulk.py", "if result.error and result.error.status in TEMPORARY:", "if False:"
    ),
    "half-an-image": Fault(  # An image of which a run wrote some labels before it was killed is not sent again.
        "client/vit_serve_client/output.py", "self._entries[-1].labels < labels", "self._entries[-1].labels < 1"
    ),
    "formulas": Fault(  # A spreadsheet runs a label that begins with @.
        "client/vit_serve_client/rows.py", "[=+\\-@", "[=+\\-"
    ),
    "heatmaps-sent": Fault(  # The second run classifies the heatmaps that the first has put beside the images.
        "client/vit_serve_client/files.py", "return home in folders and image", "return False and image"
    ),
    "batch-bound": Fault(  # VIT_MAX_BATCH has no upper bound.
        "app/settings.py", "Field(ge=0, le=512)", "Field(ge=0)"
    ),
    "metrics-methods": Fault(  # Clients can make up any number of time series.
        "app/telemetry/metrics.py", 'method if method in METHODS else "OTHER"', "method"
    ),
    # The network
    "softmax-axis": Fault(  # The softmax of attention is over queries and not over keys.
        "model/attention.py", "scores + bias).softmax(dim=-1)", "scores + bias).softmax(dim=-2)"
    ),
    "fixed-batch": Fault(  # The export of one kind of block is for as many images as the exporter's example has.
        "model/blocks.py",
        "return self.norm2(self.mlp(tokens))",
        "return self.norm2(self.mlp(tokens)).reshape(int(tokens.shape[0]), *tokens.shape[1:])",
    ),
    "registers-pooled": Fault(  # Registers and the distillation token count as patches.
        "model/vit.py",
        "patches = tokens[:, len(self.config.prefix) :, -self.config.width :]",
        "patches = tokens[:, int(self.config.class_token) :, -self.config.width :]",
    ),
    "oblong-positions": Fault(  # The positions of an oblong grid are interpolated with rows and columns exchanged.
        "model/positions.py", "positions.reshape(1, *old, -1)", "positions.reshape(1, *old[::-1], -1)"
    ),
    "query-key-value": Fault(  # Keys and values of transformers 5 are exchanged.
        "model/checkpoints/families/huggingface.py",
        '|k_proj)\\.", ".attn.k."),\n    (r"\\.attention\\.(attention\\.value|v_proj)',
        '|v_proj)\\.", ".attn.k."),\n    (r"\\.attention\\.(attention\\.value|k_proj)',
    ),
    "write-in-place": Fault(  # A run that is killed while it writes leaves half of a file.
        "model/durable.py",
        "        yield temporary\n        temporary.chmod",
        "        yield path\n        temporary.chmod",
    ),
    "folder-lost": Fault(  # If the new folder cannot take its place, the old one is lost too.
        "model/durable.py", "                old.rename(path)\n", "                pass\n"
    ),
    # Learning
    "leverage": Fault(  # A left-out image still counts in the bias.
        "model/fit/least_squares.py", "of_block.mT + roots @ roots.mT / len(x)", "of_block.mT"
    ),
    "near-copy": Fault(  # A left-out image is learned from by its near-copy.
        "model/fit/least_squares.py", "torch.arange(len(x)) if groups is None else groups", "torch.arange(len(x))"
    ),
    "by-chance": Fault(  # A difference within the standard error decides.
        "model/fit/choosing.py", "return lost - gained > math.sqrt(lost + gained)", "return lost > gained"
    ),
    "crop-outside": Fault(  # A random crop reaches beyond the image.
        "model/fit/augment.py", "(2 * down - 1) * (1 - along)", "(2 * down - 1) * (1 - across)"
    ),
    "copy-learned": Fault(  # A held-out image is learned from, because a copy of it is in the other folder.
        "export/fit/split.py", "kept, *others = sorted(group, key=lambda entry: not entry[1])", "kept, *others = group"
    ),
    # Export
    "parity-nan": Fault(  # NaN is within every tolerance.
        "export/parity.py", "if not difference <= allowed:", "if difference > allowed:"
    ),
    "parity-lean": Fault(  # The lean graph is compared with nothing.
        "export/parity.py",
        "            found[name] = largest_of(found[name], _relative(expected[name], answers[name]))\n",
        "            pass\n",
    ),
    "agreement-fp32": Fault(  # The accuracy of float32 is that of the lean graph.
        "export/agreement.py",
        "accuracy_fp32=float(np.mean(expected == answers.labels))",
        "accuracy_fp32=float(np.mean(lean == answers.labels))",
    ),
    "own-temperature": Fault(  # The error after calibration is measured on the images that were fitted.
        "export/calibration.py",
        "temperature(logits[fitted], labels[fitted])",
        "temperature(logits[scored], labels[scored])",
    ),
    "rollout-order": Fault(  # Rollout multiplies the layers in the wrong order.
        "export/graphs.py", "in reversed(layers):", "in layers:"
    ),
    "moved-bias": Fault(  # What the values' bias adds after attention is lost in graphs for a GPU.
        "export/fuse.py", "own + passed.astype(np.float64) @ matrix.astype(np.float64)", "own"
    ),
    "smoothed-bias": Fault(  # Smoothing for int8 forgets the bias of the norm.
        "export/smoothing.py", "        norm.bias.div_(factors)\n", "        pass\n"
    ),
    # A deployment
    "cover-repeated": Fault(  # nginx hands long work on to the next replica when one has failed under it.
        "docker/nginx.conf", "/(verify|cover)$ {", "/(verify)$ {"
    ),
    "metrics-outside": Fault(  # HAProxy lets everybody read metrics at /%6detrics.
        "docker/haproxy.cfg", "status 404 if { path,url_dec -m", "status 404 if { path -m"
    ),
    "value-lost": Fault(  # The most replicas of the site's values arrive as the least.
        "docker/kubernetes/site/kustomization.yaml", "[spec.maxReplicaCount]", "[spec.minReplicaCount]"
    ),
    "no-endpoints": Fault(  # The Service of Kubernetes finds no pod.
        "docker/kubernetes/base/service.yaml",
        "selector: { app.kubernetes.io/name: vit-serve }",
        "selector: { app.kubernetes.io/name: vit }",
    ),
    "alert-silent": Fault(  # No alert tells that Redis is not asked any more.
        "docker/kubernetes/monitoring/alerts.yaml", "vit_store_breaker_open == 1", "vit_store_breaker_open > 1"
    ),
}
