#!/usr/bin/env bash
# Makes docs/results/images.md: the recipe and the published method on the picture of figure 4, five seeds, more passes than the figure has,
# and on pictures 0 to 3 of the folder of CIFAR-10.
# usage: cargo build --release && docs/results/images.sh DATA      (needs python3; DATA is the folder with mnist/ and cifar/)
set -euo pipefail
data=$(realpath "$1")
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# name m s seeds passes data
run() {
    cat > "$work/spec.toml" <<TOML
name = "images-$1"
title = "Implicit image"
source = "the pictures of figures 4 and 5"
[[part]]
name = "one"
title = "one hidden layer"
hidden = 1
m = [$2]
s = [$3]
epochs = 100
batch = 0
methods = ["paper", "recipe"]
seeds = $4
metric = "psnr"
on = "train"
range = [0, 50]
passes = $5
data = { kind = "image", features = 1500, $6 }
TOML
    "$tamis" run "$work/spec.toml" --data-dir "$data" -o "$work/$1" --jobs 1 --quiet
}
for cell in 10,100 20,200 50,500; do
    m=${cell%,*} s=${cell#*,}
    run "mnist-$m-$s" "$m" "$s" "[0, 1, 2, 3, 4]" 420000 'from = "mnist", index = 1000, deviation = 2'
done
for cell in 5,50 20,200 50,500; do
    m=${cell%,*} s=${cell#*,}
    for index in 0 1 2 3; do
        run "cifar-$m-$s-$index" "$m" "$s" "[0]" 100000 "from = \"cifar\", index = $index, deviation = 5, channel_deviation = 0.05"
    done
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
def table(what, cells, folders):
    rows = [f"| m, s | method | PSNR, {what}, dB | seconds | passes |", "|---|---|---|---|---|"]
    for cell in cells:
        runs = []
        for folder in folders(cell):
            lines = Path(work, folder, "results.jsonl").read_text().splitlines()
            runs += sorted(map(json.loads, lines), key=lambda run: find(run, "seed"))
        for method in ("paper", "recipe"):
            own = [run for run in runs if find(run, "method") == method]
            column = lambda key, form: " ".join(format(find(run, key), form) for run in own)
            rows.append(f"| {cell.replace('-', ', ')} | {method} | {column('psnr_db', '.1f')} | {column('seconds', '.1f')} | {column('passes', '.0f')} |")
    return "\n".join(rows) + "\n"
Path("docs/results/images.md").write_text(
    "# Implicit images\n\nOne hidden layer on 1500 Fourier features of every place. "
    f"Made by `docs/results/images.sh` at commit {commit} on {cpu}.\n\n"
    "The picture of figure 4, 784 rows, at most 420000 passes, of which a search leaves 20000 for turns of published steps:\n\n"
    + table("seeds 0 to 4", ("10-100", "20-200", "50-500"), lambda cell: [f"mnist-{cell}"])
    + "\nPictures 0 to 3 of the folder of CIFAR-10, seed 0, 3072 rows, at most 100000 passes:\n\n"
    + table("pictures 0 to 3", ("5-50", "20-200", "50-500"), lambda cell: [f"cifar-{cell}-{index}" for index in range(4)]))
PY
