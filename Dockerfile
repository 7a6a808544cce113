# The service and a bundle, no PyTorch, no compiler. From the repository's root:
#
#   docker build -t vit-serve .                                          the demo model, on the CPU
#   docker build -t vit-serve --build-arg BUNDLE=bundles/mine .          a bundle exported before
#   docker build -t vit-serve --target checkpoint --build-arg CHECKPOINT=model.safetensors .
#   docker build -t vit-serve:cuda --build-arg DEVICE=cuda .             with the CUDA libraries, several GB
#   docker build -t vit-serve --build-arg OTEL=yes .                     with what sends spans
#   docker build -t mine --target bundle --build-arg BUNDLE=bundles/mine .
#                                                                        a bundle alone, for docker/kubernetes/bundle-image
#
# A bundle mounted at /bundle replaces the one inside. That of the target `bundle` lies at /models, as KServe and volumes
# of images expect.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG DEVICE=cpu

FROM ${PYTHON_IMAGE} AS compiled
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /srv
COPY app/images/compiler.py app/images/resize.c app/images/
RUN python3 -m app.images.compiler && ls app/images/*.so

FROM ${PYTHON_IMAGE} AS packages
ARG DEVICE
# yes: the group otel too, at its pinned versions
ARG OTEL=
COPY docker/requirements-${DEVICE}.lock /requirements.lock
COPY docker/requirements-otel.lock /requirements-otel.lock
RUN python3 -m venv --without-pip /venv \
 && python3 -m pip --python /venv/bin/python install --quiet --require-hashes --only-binary :all: --no-cache-dir \
    --no-compile --requirement /requirements.lock ${OTEL:+--requirement /requirements-otel.lock}
# Remove what is never imported or loaded: 284 MB of CUDA kernels that a CPU cannot use, OpenVINO's plugins for other devices and
# its readers of other formats, a second copy of libonnxruntime (the Python module carries its own), and the packages' tests. Not
# every architecture has all of them.
RUN cd /venv/lib/python3*/site-packages \
 && rm -rf onnxruntime/transformers onnxruntime/quantization onnxruntime/tools onnxruntime/capi/libonnxruntime.so.* \
 && if [ "$DEVICE" = cpu ]; then \
      rm -f onnxruntime/capi/libonnxruntime_providers_cuda.so onnxruntime/capi/libonnxruntime_providers_tensorrt.so \
      && rm -rf openvino_telemetry openvino/include openvino/cmake openvino/tools openvino/frontend/*/ \
      && find openvino/libs \( -name '*_gpu_plugin*' -o -name '*_npu_plugin*' -o -name cache.json \
         -o -name '*_frontend.so*' ! -name '*_onnx_frontend*' ! -name '*_ir_frontend*' \) -exec rm {} +; \
    fi \
 && find . -type d -name tests -prune -exec rm -r {} +
COPY app /srv/app
COPY --from=compiled /srv/app/images/*.so /srv/app/images/
RUN rm -r /srv/app/demo \
 && chmod -R a+rX /srv \
 && /venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /venv /srv

FROM ${PYTHON_IMAGE} AS exported
ARG CHECKPOINT
# Such as "--precision int8", without spaces in an option
ARG EXPORT_OPTIONS=
# May name the index of a PyTorch without CUDA
ARG PIP_EXTRA_INDEX_URL
WORKDIR /work
RUN python3 -m venv /venv && /venv/bin/pip install --quiet --no-cache-dir "pip>=25.1"
COPY pyproject.toml constraints.txt ./
RUN /venv/bin/pip install --quiet --no-cache-dir --no-compile --constraint constraints.txt --group export --group zero-shot
COPY . .
RUN /venv/bin/python -m export --checkpoint "$CHECKPOINT" --out /bundle $EXPORT_OPTIONS && chmod -R a+rX /bundle

FROM ${PYTHON_IMAGE} AS bundle
ARG BUNDLE=app/demo
COPY ${BUNDLE} /models
RUN chmod -R a+rX /models

FROM ${PYTHON_IMAGE} AS service
ARG DEVICE
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="vit-serve" \
      org.opencontainers.image.description="A Vision Transformer behind an HTTP API: labels and exact attention maps" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Process 1, which passes signals on and reaps orphans
RUN apt-get update && apt-get install --yes --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
COPY --from=packages /venv /venv
COPY --from=packages /srv /srv
WORKDIR /srv
ENV PATH=/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONUNBUFFERED=1 \
    ORT_DISABLE_TELEMETRY=1 \
    CUDA_CACHE_PATH=/tmp/cuda \
    VIT_BUNDLE=/bundle \
    VIT_DEVICE=${DEVICE} \
    VIT_HOST=0.0.0.0 \
    VIT_PORT=8000
# Writes the bytecode of the standard library's modules that are used. The running service writes nothing.
RUN if [ "$DEVICE" = cpu ]; then engine=openvino; else engine=cuda; fi && python -c "import app.server, app.inference.$engine"
ENV PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ['VIT_PORT'] + '/readyz', timeout=2)"]
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "app"]

FROM service AS checkpoint
COPY --from=exported /bundle /bundle

FROM service
COPY --from=bundle /models /bundle
