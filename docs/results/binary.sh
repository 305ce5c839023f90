#!/usr/bin/env bash
# Makes docs/results/binary.md and the table in README.md: `--task binary` with its defaults on the zeros and ones of MNIST.
# usage: cargo build --release && MNIST=folder-of-the-four-files docs/results/binary.sh      (needs python3)
set -euo pipefail
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
mnist=${MNIST:-../shared/data/mnist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

out=docs/results/binary.md
x=$mnist/train-images-idx3-ubyte.gz,$mnist/t10k-images-idx3-ubyte.gz
y=$mnist/train-labels-idx1-ubyte.gz,$mnist/t10k-labels-idx1-ubyte.gz
files() { echo "--data $mnist/$1-images-idx3-ubyte.gz --labels $mnist/$1-labels-idx1-ubyte.gz --keep-labels 0,1"; }
joined() { echo "--data $x --labels $y --keep-labels 0,1 --rows-per-label $1"; }
# A row of the table: neurons, weights, the flags of the rows to train on and of those to test on.
row() {
    local m=$1 s=$2 train=$3 test=$4
    rm -f "$work"/*.cell
    for seed in 0 1 2 3 4 5 6 7 8 9; do
        # shellcheck disable=SC2086
        "$tamis" train $train --task binary --hidden "$m" --nnz "$s" --seed $seed --time-limit 60 --json -q \
            -o "$work/m.tamis" > "$work/train.json"
        # shellcheck disable=SC2086
        "$tamis" eval "$work/m.tamis" $test --json > "$work/eval.json"
        python3 - "$work/train.json" "$work/eval.json" >> "$work/row.cell" <<'PY'
import json, sys
train, test = (json.load(open(name)) for name in sys.argv[1:])
print(train["recipe"], train["nnz"], 100 * test["accuracy"], train["seconds"], train["model_bytes"])
PY
    done
    python3 - "$m" "$s" "$work/row.cell" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[3])]
right = sorted(float(row[2]) for row in rows)
seconds = statistics.median(float(row[3]) for row in rows)
recipe, nnz = ("/".join(sorted({row[at] for row in rows})) for at in (0, 1))
print(f"| {sys.argv[2]} | {sys.argv[1]} | `{recipe}` | {right[0]:.2f} % | {statistics.median(right):.2f} % | {right[-1]:.2f} % | {nnz} | {seconds:.1f} | {rows[0][4]} |")
PY
}
table() {
    echo '| s | m | recipe | accuracy, least | median | most | nonzeros | seconds | model, bytes |'
    echo '|---|---|---|---|---|---|---|---|---|'
    for cell in 1,1 10,10 20,10 50,10 100,10; do
        row "${cell#*,}" "${cell%,*}" "$1" "$2"
    done
}
{
cat <<EOT
# Two classes: the zeros and ones of MNIST

\`--task binary\` with its defaults, ten seeds a row; the rows of the test set decide nothing. Weights of both layers count in s,
there are no biases. Made by \`docs/results/binary.sh\` at commit $(git rev-parse --short HEAD) with $(rustc --version | cut -d' ' -f1-2) on
$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//'), two threads. Seconds are medians.

## The official split: 12 665 rows to train, 2115 to test

EOT
table "$(files train)" "$(files t10k)" | tee "$work/official"
cat <<'EOT'

## The published split: 5000 rows of each class to train, the next 1000 of each to test

EOT
table "$(joined 0..5000)" "$(joined 5000..6000)"
} > "$work/new.md"
mv "$work/new.md" "$out"
python3 - "$work/official" <<'PY'
import re, sys
table = open(sys.argv[1]).read()
text = open("README.md").read()
part = re.compile(r"(<!-- binary -->\n).*?(<!-- end binary -->)", re.S)
assert part.search(text), "README.md has no place for the table"
open("README.md", "w").write(part.sub(lambda found: found[1] + table + found[2], text))
PY
