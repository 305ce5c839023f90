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
# Of the model of the last row, seed 2, as 8-bit integers: accuracy, and bytes on a Cortex-M4F as tables in C.
deployed() {
    "$TAMIS" quantize "$out/m.tamis" --data "$data/train-images-idx3-ubyte.gz" -o "$out/q.tamis" --quiet
    right=$("$TAMIS" eval "$out/q.tamis" --data "$data/t10k-images-idx3-ubyte.gz" --labels "$data/t10k-labels-idx1-ubyte.gz" \
        --json --quiet | sed 's/.*"accuracy":\([0-9.]*\),"confusion".*/\1/')
    "$TAMIS" inspect "$out/q.tamis" --mcu cortex-m4f |
        awk -v how="$1" -v right="$right" '$1 == "c:" { gsub(/[<=]/, ""); sub(/.*-O2\) */, ""); gsub(/ B/, "B"); split($0, n, /B */)
            gsub(/ /, "", n[1]); gsub(/ /, "", n[2]); gsub(/ /, "", n[3])
            printf "| %s | %.2f %% | %s | %s | %s |\n", how, 100 * right, n[2], n[3], n[1] }' >>"$out/deployed.md"
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
        row "500, 100, $epochs" --nnz 500 --hidden 100 --epochs "$epochs"
        row "1000, 100, $epochs" --nnz 1000 --hidden 100 --epochs "$epochs"
        row "2000, 100-50, $epochs" --nnz 2000 --hidden 100,50 --epochs "$epochs"
        row "4000, 100-50, $epochs" --nnz 4000 --hidden 100,50 --epochs "$epochs"
        row "5322, 300-100, $epochs" --nnz 5322 --hidden 300,100 --epochs "$epochs"
    done
    if [ -z "${EPOCHS:-}" ]; then
        row "1000, 100, 60, augmented" --nnz 1000 --hidden 100 --epochs 60 --augment images
        deployed "1000, 100"
        row "2000, 100-50, 60, augmented" --nnz 2000 --hidden 100,50 --epochs 60 --augment images
        deployed "2000, 100-50"
        row "3800, 300-100, 80, augmented" --nnz 3800 --hidden 300,100 --epochs 80 --augment images --weight-decay 0.05
        deployed "3800, 300-100"
        row "5322, 300-100, 80, augmented" --nnz 5322 --hidden 300,100 --epochs 80 --augment images --weight-decay 0.05
        deployed "5322, 300-100"
        cat <<'TEXT'

The augmented networks of seed 2 as 8-bit integers, and what they take of a Cortex-M4F's flash as tables in C (estimates, upper bounds):

| nonzeros, hidden | test rows right | bytes of the model | of code | together |
|---|---|---|---|---|
TEXT
        cat "$out/deployed.md"
    fi
} >"$out/deep.md"
mv "$out/deep.md" docs/results/deep.md
