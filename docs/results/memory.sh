#!/usr/bin/env bash
# Makes docs/results/memory.md: the bytes that each recipe states and the process takes, for a hundred neurons and for a
# thousand, at s = 1000 weights and d = 100 inputs. Runs are cut short, since what they hold is allocated before the first
# step: searches after a second, the others after an epoch.
# usage: cargo build --release && docs/results/memory.sh      (needs python3)
set -euo pipefail
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for n in ${ROWS:-2000 50000}; do
    "$tamis" generate planted --samples "$n" --inputs 100 --hidden 100 --nnz 1000 --seed 1 -o "$work/one" --quiet
    "$tamis" generate planted --samples "$n" --inputs 100 --hidden 100 --nnz 1000 --outputs 10 --seed 1 -o "$work/ten" --quiet
    python3 - "$n" "$work/classes.csv" <<'PY'
import sys
rows, path = int(sys.argv[1]), sys.argv[2]
open(path, "w").write("class\n" + "\n".join(str(k % 10) for k in range(rows)) + "\n")
PY
    budget="--ram 1M"
    [ "$n" -gt 2000 ] && budget="--ram 8M"
    for memory in "" "$budget"; do
        for m in 100 1000; do
            run() {
                name=$1
                shift
                # A budget that is too small for these sizes is refused; that row is left out.
                if "$tamis" train "$@" --hidden "$m" --nnz 1000 $memory --json -o "$work/m.tamis" > "$work/out" 2> "$work/err"; then
                    printf '%s\t%s\t%s\t%s\t' "$name" "$n" "$m" "${memory:-usual}" >> "$work/rows"
                    cat "$work/out" >> "$work/rows"
                elif ! grep -q "memory budget is too small" "$work/err"; then
                    cat "$work/err" >&2
                    exit 1
                fi
            }
            one=(--data "$work/one/X.npy" --labels "$work/one/y.npy" --task regression)
            run "lm" "${one[@]}" --recipe lm --time-limit 1
            run "lm, 10 outputs" --data "$work/ten/X.npy" --labels "$work/ten/y.npy" --task regression --recipe lm --time-limit 1
            run "anneal, 10 classes" --data "$work/one/X.npy" --labels "$work/classes.csv" --task multiclass --recipe anneal --epochs 1
            run "paper" "${one[@]}" --recipe paper --epochs 1 --trials 1
        done
    done
done
python3 - "$work/rows" "$(git rev-parse --short HEAD)" "$(rustc --version | cut -d' ' -f1-2)" <<'PY'
import json, sys
from pathlib import Path
rows, commit, rustc = sys.argv[1:]
runs = [line.split("\t") for line in Path(rows).read_text().splitlines()]
order = {name: k for k, name in enumerate(dict.fromkeys(run[0] for run in runs))}
memories = {name: k for k, name in enumerate(["usual", "--ram 1M", "--ram 8M"])}
runs.sort(key=lambda run: (order[run[0]], int(run[1]), memories[run[3]], int(run[2])))
lines = ["| recipe | n | memory | m | s | panel | gates held | state, bytes | workspace, bytes | data, bytes | peak RSS, bytes |",
         "|---|---|---|---|---|---|---|---|---|---|---|"]
for name, n, m, memory, text in runs:
    r = json.loads(text)
    held = "yes" if r["hold"] else "no"
    flag = memory if memory == "usual" else f"`{memory}`"
    lines.append(f"| {name} | {n} | {flag} | {m} | {r['requested_nnz']} | {r['panel']} | {held} | {r['state_bytes']} "
                 f"| {r['workspace_bytes']} | {r['data_bytes']} | {r['peak_rss_bytes']} |")
Path("docs/results/memory.md").write_text(f"""# Memory at a hundred neurons and at a thousand

s = 1000 weights, d = 100 inputs. Made by `docs/results/memory.sh` at commit {commit} with {rustc}. State and workspace are
what the run states before it starts; `tests/tests/search_memory.rs` counts with an allocator that this is what it holds, to
the byte, and that nothing is allocated from step to step. The peak of the process has the program, the reading of the files
and the threads in it as well.

**State** has no term of m: all weights that the recipe holds. It is 94 bytes per nonzero for `lm`, plus 16 per input and output;
16 for `paper`; for `anneal` 20 per entry of the first support, here ten times s, and 4 per nonzero.

**What grows with m** is in the workspace. Gates are held as bits where there is memory for it: one bit per row and
neuron, rounded up to whole tiles, n m / 8 bytes; `lm` keeps the activations of the last network as floats, four megabytes
at most. The gradient panel grows up to 128 neurons, and no further. `--panel P` bounds the panel; `--ram BYTES` bounds
everything, and gives up the held gates first where it must, for more time a step. **What grows with n** is the residual
and single columns, 4 bytes a row and output each.

""" + "\n".join(lines) + "\n")
PY
