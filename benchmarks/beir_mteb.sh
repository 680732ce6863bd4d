#!/bin/sh
# Install BEIR and MTEB, which need torch, in an environment of their own, and compare their nDCG@10 with ours:
#   benchmarks/beir_mteb.sh nf.safetensors nfcorpus --split dev
set -e
[ -x build/beir/bin/python ] || python3 -m venv build/beir
build/beir/bin/python -m pip install --quiet . beir mteb
build/beir/bin/python -m benchmarks.beir_mteb "$@"
