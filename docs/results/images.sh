#!/usr/bin/env bash
# Makes docs/results/images.md: the recipe and the published method on the picture of figure 4, five seeds, more passes than the figure has.
# usage: cargo build --release && docs/results/images.sh DATA      (needs python3; DATA is the folder with mnist/)
set -euo pipefail
data=$(realpath "$1")
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for cell in 10,100 20,200 50,500; do
    m=${cell%,*} s=${cell#*,}
    cat > "$work/spec.toml" <<TOML
name = "images-$m-$s"
title = "Implicit image, MNIST"
source = "the picture of figure-4"
[[part]]
name = "one"
title = "one hidden layer"
hidden = 1
m = [$m]
s = [$s]
epochs = 100
batch = 0
methods = ["paper", "recipe"]
seeds = [0, 1, 2, 3, 4]
metric = "psnr"
on = "train"
range = [0, 50]
passes = 420000
data = { kind = "image", from = "mnist", index = 1000, features = 1500, deviation = 2 }
TOML
    "$tamis" run "$work/spec.toml" --data-dir "$data" -o "$work/$m-$s" --quiet
done
python3 - "$work" "$(git rev-parse --short HEAD)" "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//')" <<'PY'
import json, sys
from pathlib import Path
work, commit, cpu = sys.argv[1:]
def find(record, key):
    if isinstance(record, dict):
        if key in record:
            return record[key]
        return next((found for value in record.values() if (found := find(value, key)) is not None), None)
rows = ["| m, s | method | PSNR, seeds 0 to 4, dB | seconds | passes |", "|---|---|---|---|---|"]
for cell in ("10-100", "20-200", "50-500"):
    runs = [json.loads(line) for line in Path(work, cell, "results.jsonl").read_text().splitlines()]
    for method in ("paper", "recipe"):
        own = sorted((run for run in runs if find(run, "method") == method), key=lambda run: find(run, "seed"))
        column = lambda key, form: " ".join(format(find(run, key), form) for run in own)
        rows.append(f"| {cell.replace('-', ', ')} | {method} | {column('psnr_db', '.1f')} | {column('seconds', '.1f')} | {column('passes', '.0f')} |")
Path("docs/results/images.md").write_text(
    "# Implicit images\n\nThe picture of figure 4, 784 rows of 1500 Fourier features, one hidden layer, at most 420000 passes, of which a search leaves 20000 for turns of published steps. "
    f"Made by `docs/results/images.sh` at commit {commit} on {cpu}.\n\n" + "\n".join(rows) + "\n")
PY
