# The service alone: no compiler, no test, no data. Mount a model with its index, and a folder that can be written:
#   docker build -t sparserank .
#   docker run -p 8000:8000 -v "$PWD/models:/models:ro" -v sparserank:/data -e SPARSERANK_TOKEN=... sparserank
FROM python:3.11-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin sparserank \
 && install --directory --owner sparserank --group sparserank --mode 0750 /data \
 && install --directory /models

COPY requirements/service.txt /build/requirements/service.txt
RUN python -m pip install --no-deps --require-hashes -r /build/requirements/service.txt

COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
COPY requirements/build.txt /build/requirements/build.txt
RUN python -m venv /build/venv \
 && /build/venv/bin/python -m pip install --no-deps --require-hashes -r /build/requirements/build.txt \
 && cd /build && /build/venv/bin/python -m hatchling build --target wheel \
 && python -m pip install --no-deps --no-index /build/dist/*.whl \
 && rm -rf /build

COPY deploy/container.toml /etc/sparserank/service.toml

# what is compiled on first use is kept here, not beside the package, which its user cannot write to
ENV NUMBA_CACHE_DIR=/data/compiled XDG_CACHE_HOME=/data/cache HOME=/data
USER sparserank
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8000

HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=2).read()"]

ENTRYPOINT ["sparserank", "serve", "--config", "/etc/sparserank/service.toml"]
CMD ["/models/model.safetensors", "--workers", "2"]
