#!/bin/sh
# Writes docs/results/deep.md: MNIST by recipe `dynamic`, three seeds, test rows looked at once. Needs the four files of MNIST.
# 80 epochs and augmentation take about a quarter of an hour on one core; EPOCHS="20" leaves them out. TAMIS is the program.
set -eu
data=${1:?"usage: docs/results/deep.sh MNIST_FOLDER"}
cd "$(dirname "$0")/../.."
if [ -z "${TAMIS:-}" ]; then
    cargo build --release --quiet -p tamis-host
    TAMIS=target/release/tamis
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
accuracy() {
    "$TAMIS" train --recipe dynamic --task multiclass --quiet --json --threads 1 -o "$out/m.tamis" \
        --data "$data/train-images-idx3-ubyte.gz" --labels "$data/train-labels-idx1-ubyte.gz" \
        --test-data "$data/t10k-images-idx3-ubyte.gz" --test-labels "$data/t10k-labels-idx1-ubyte.gz" "$@" |
        sed 's/.*"test_accuracy":\([0-9.]*\).*/\1/'
}
row() {
    how=$1
    shift
    values=
    for seed in 0 1 2; do values="$values $(accuracy --seed $seed "$@")"; done
    echo "$values" | awk -v how="$how" '{ printf "| %s | %.2f %% | %.2f, %.2f, %.2f |\n", how, 100 * ($1 + $2 + $3) / 3, 100 * $1, 100 * $2, 100 * $3 }'
}
{
    cat <<'TEXT'
# Deep sparse networks from nothing: recipe `dynamic` on MNIST

Made by `docs/results/deep.sh MNIST_FOLDER`. Official test rows, three seeds, all stored numbers counted (weights and biases), settings
by default but for what a row says; nothing was chosen by test rows here.

| nonzeros, hidden, epochs | mean | seeds 0, 1, 2 |
|---|---|---|
TEXT
    for epochs in ${EPOCHS:-20 80}; do
        row "1000, 100, $epochs" --nnz 1000 --hidden 100 --epochs "$epochs"
        row "2000, 100-50, $epochs" --nnz 2000 --hidden 100,50 --epochs "$epochs"
        row "5322, 300-100, $epochs" --nnz 5322 --hidden 300,100 --epochs "$epochs"
    done
    if [ -z "${EPOCHS:-}" ]; then
        row "1000, 100, 60, augmented" --nnz 1000 --hidden 100 --epochs 60 --augment images
        row "2000, 100-50, 60, augmented" --nnz 2000 --hidden 100,50 --epochs 60 --augment images
        row "5322, 300-100, 80, augmented" --nnz 5322 --hidden 300,100 --epochs 80 --augment images --weight-decay 0.05
    fi
} >"$out/deep.md"
mv "$out/deep.md" docs/results/deep.md
