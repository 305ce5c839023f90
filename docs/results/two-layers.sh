#!/usr/bin/env bash
# Makes docs/results/two-layers.md: the `lm` recipe, which searches for two hidden layers together, on planted networks of two
# hidden layers; at most 40000 passes a run, all cores.
# usage: cargo build --release && docs/results/two-layers.sh      (needs python3)
set -euo pipefail
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
work=${WORK:-$(mktemp -d)}
cat > "$work/spec.toml" <<TOML
name = "two-layers"
title = "Planted, one output, two hidden layers"
source = "as figure-1-right, seeds that chose nothing"

[[part]]
name = "planted"
title = "Planted network, one output, two hidden layers"
hidden = 2
sizes = [${CELLS:-[10, 50], [20, 100]}]
epochs = 15
batch = 0
methods = ["paper", "recipe"]
seeds = [${SEEDS:-$(seq -s, 400 409)}]
metric = "psnr"
on = "train"
range = [-20, 50]
passes = 40000
data = { kind = "planted", samples = 50000, inputs = 100, outputs = 1, test = 5000 }
TOML
"$tamis" run "$work/spec.toml" -o "$work/out" --jobs 1 --quiet
python3 - "$work/out/results.jsonl" "$(git rev-parse --short HEAD)" "$(rustc --version | cut -d' ' -f1-2)" \
    "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//')" <<'PY'
import json, statistics, sys
from pathlib import Path
results, commit, rustc, cpu = sys.argv[1:]
cells = {}
for line in Path(results).read_text().splitlines():
    record = json.loads(line)
    if record["status"] == "done":
        cells.setdefault((record["m"], record["s"]), {}).setdefault(record["method"], []).append(record["solved"])
rows = ["| m, s | 110 dB or more | PSNR of every seed, dB | `paper`, median | seconds, median | most | passes, median |", "|---|---|---|---|---|---|---|"]
for (m, s), methods in sorted(cells.items()):
    runs, paper = methods["recipe"], methods["paper"]
    decibels = [run["train"]["psnr_db"] for run in runs]
    median = lambda key: statistics.median(run[key] for run in runs)
    rows.append(f"| {m}, {s} | **{sum(db >= 110 for db in decibels)} of {len(runs)}** | {' '.join(f'{db:.1f}' for db in decibels)} "
                f"| {statistics.median(run['train']['psnr_db'] for run in paper):.1f} "
                f"| {median('seconds'):.1f} | {max(run['seconds'] for run in runs):.1f} | {median('passes'):.0f} |")
Path("docs/results/two-layers.md").write_text(
    "# Two hidden layers by one search\n\nn = 50000, d = 100, s/2 weights in each layer, relu after both, then the sum; at most 40000 "
    f"passes. A seed whose planted network gives 0 everywhere is left out. Made by `docs/results/two-layers.sh` at commit {commit} "
    f"with {rustc} on {cpu}, all cores.\n\n" + "\n".join(rows) + "\n")
PY
