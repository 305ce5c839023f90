#!/usr/bin/env bash
# Makes docs/results/tune.md: what tuning of rounded weights is worth on the ten classes of MNIST, and a dense network of
# scikit-learn whose scaler is folded into its weights.
# usage: cargo build --release && docs/results/tune.sh folder-of-the-four-files      (needs python3)
# PYTHON=V/bin/python names a Python with numpy and scikit-learn; without them the dense network is left out. SEEDS="0" for fewer.
set -euo pipefail
mnist=$(realpath "${1:?folder of the four files of MNIST}")
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

train="--data $mnist/train-images-idx3-ubyte.gz --labels $mnist/train-labels-idx1-ubyte.gz"
t10k="--data $mnist/t10k-images-idx3-ubyte.gz --labels $mnist/t10k-labels-idx1-ubyte.gz"
# Test accuracy in per cent, of a model on the options that name the test rows.
accuracy() {
    # shellcheck disable=SC2086
    "$tamis" eval "$1" $2 --json | python3 -c 'import json, sys; print("%.2f" % (100 * json.load(sys.stdin)["accuracy"]))'
}
# A line of the table: name, model, options that name the rows to quantise on, those of the test rows.
line() {
    for scales in per-layer per-neuron; do
        # shellcheck disable=SC2086
        "$tamis" quantize "$2" $3 --$scales -o "$work/plain.tamis" --quiet
        # shellcheck disable=SC2086
        "$tamis" quantize "$2" $3 --$scales --tune 10 -o "$work/tuned.tamis" --json > "$work/tuned.json"
        losses=$(python3 -c 'import json, sys; d = json.load(open(sys.argv[1]))
print(" | ".join("%.4f" % d[k]["loss"] for k in ("before", "untuned", "after")), "| %.0f" % d["tune"]["seconds"])' "$work/tuned.json")
        echo "| $1 | $scales | $(accuracy "$2" "$4") | $(accuracy "$work/plain.tamis" "$4") |" \
            "$(accuracy "$work/tuned.tamis" "$4") | $losses |"
    done
}

{
cat <<EOT
# What tuning of rounded weights is worth

Made by \`docs/results/tune.sh\` at commit $(git rev-parse --short HEAD). Networks of ten neurons for the ten classes of MNIST, trained by
\`tamis train --task multiclass --hidden 10 --nnz S\`, and a dense network of scikit-learn, 784-32-16-10, whose \`StandardScaler\` is
folded into its first layer: pixels that are all but constant give weights that are thousands of times the others. \`tamis
quantize --tune 10\` trains on the 60 000 rows of training; accuracy is on the official 10 000, losses are mean cross-entropies on the
rows of training. The time is that of the ten epochs.

| network | scales | f32, % | int8, % | int8 tuned, % | loss of f32 | of int8 | of int8 tuned | s |
|---|---|---|---|---|---|---|---|---|
EOT
for s in 500 1000; do
    for seed in ${SEEDS:-0 1 2}; do
        # shellcheck disable=SC2086
        "$tamis" train $train --task multiclass --hidden 10 --nnz "$s" --seed "$seed" --quiet -o "$work/m.tamis"
        line "s = $s, seed $seed" "$work/m.tamis" "$train" "$t10k"
    done
done
if "$python" -c 'import numpy, sklearn' 2> /dev/null; then
    "$python" docs/results/quantise-scaled.py "$mnist" "$work"
    "$tamis" import "$work/scaled.npz" --task multiclass --quiet -o "$work/m.tamis"
    line "scikit-learn, scaled" "$work/m.tamis" "--data $work/train.npy --labels $work/train-labels.npy" \
        "--data $work/test.npy --labels $work/test-labels.npy"
fi
} | tee "$work/out.md"
mv "$work/out.md" docs/results/tune.md
