#!/bin/bash
# Writes docs/results/deep.md and deep.svg: MNIST and Fashion-MNIST by recipe `dynamic`, three seeds, test rows looked at once. Needs the
# four files of each, qemu-system-arm (QEMU=PROGRAM), arm-none-eabi-gcc, and Python with NumPy and matplotlib (PYTHON=PROGRAM). Takes
# about half an hour on one core; EPOCHS="20" leaves out 80 epochs and augmentation. TAMIS is the program.
# Rows of other methods are made first where docs/results/deep-peers.jsonl lacks them, which takes ten hours or more and goes on where it was.
set -euo pipefail
data=${1:?"usage: docs/results/deep.sh MNIST_FOLDER FASHION_FOLDER"}
fashion=${2:?"usage: docs/results/deep.sh MNIST_FOLDER FASHION_FOLDER"}
cd "$(dirname "$0")/../.."
if [ -z "${TAMIS:-}" ]; then
    cargo build --release --quiet -p tamis-host
    TAMIS=target/release/tamis
fi
${PYTHON:-python3} docs/results/deep-peers.py "$data" docs/results/deep-peers.jsonl
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
TIMEFORMAT=%U
# A line of test accuracy, CPU seconds, and MiB of the process at its peak; the model is left in SEED.tamis.
trained() {
    seed=$1
    shift
    { time "$TAMIS" train --task multiclass --quiet --json --threads 1 --seed "$seed" -o "$out/$seed.tamis" \
        --data "$data/train-images-idx3-ubyte.gz" --labels "$data/train-labels-idx1-ubyte.gz" \
        --test-data "$data/t10k-images-idx3-ubyte.gz" --test-labels "$data/t10k-labels-idx1-ubyte.gz" "$@" \
        >"$out/json" 2>"$out/said"; } 2>"$out/seconds" || { cat "$out/said" >&2 && exit 1; }
    sed 's/.*"test_accuracy":\([0-9.]*\).*/\1/' "$out/json"
    cat "$out/seconds"
    sed 's/.*"peak_rss_bytes":\([0-9]*\).*/\1/' "$out/json"
}
# The models of the last row as 8-bit integers: accuracy, and bytes of flash of an image for a Cortex-M4F, those of the largest.
deployed() {
    counted=
    for seed in 0 1 2; do
        "$TAMIS" quantize "$out/$seed.tamis" --data "$data/train-images-idx3-ubyte.gz" -o "$out/q.tamis" --quiet
        counted="$counted $(${PYTHON:-python3} tests/peers/flash.py "$TAMIS" "$out/q.tamis" "$data/t10k-images-idx3-ubyte.gz" "$data/t10k-labels-idx1-ubyte.gz")"
    done
    echo "$counted" | awk -v how="$1" '
        function most(a, b, c) { return a > b ? (a > c ? a : c) : (b > c ? b : c) }
        { printf "| %s | %.2f %% | %.2f, %.2f, %.2f | %d | %d | %d |\n", how, 100 * ($1 + $5 + $9) / 3, 100 * $1, 100 * $5, 100 * $9,
            most($2, $6, $10), most($3, $7, $11), most($4, $8, $12) }' >>"$out/deployed.md"
}
row() {
    how=$1
    shift
    for seed in 0 1 2; do
        trained "$seed" "$@" | tr '\n' ' '
        echo
    done >"$out/values"
    awk -v how="$how" '
        { sum += $1; seconds += $2; bytes += $3; each = each (NR > 1 ? ", " : "") sprintf("%.2f", 100 * $1) }
        END { printf "| %s | %.2f %% | %s | %.1f | %.0f |\n", how, 100 * sum / NR, each, seconds / NR, bytes / NR / 1048576 }' "$out/values"
}
{
    cat <<'TEXT'
# Deep sparse networks from nothing: recipe `dynamic` on MNIST

Made by `docs/results/deep.sh MNIST_FOLDER FASHION_FOLDER`. Official test rows, three seeds, all stored numbers counted (weights and biases), settings
by default but for what a row says; nothing was chosen by test rows here (50 neurons for 400
nonzeros are the best of 30, 40, 50, 70 and 100 on a sixth of the training rows, seeds 0 and 1). CPU seconds of a run on one thread, and MiB of the process at its
peak, of which 52 are the training and test rows.

| nonzeros, hidden, epochs | mean | seeds 0, 1, 2 | seconds | MiB |
|---|---|---|---|---|
TEXT
    for epochs in ${EPOCHS:-20 80}; do
        row "500, 100, $epochs" --nnz 500 --hidden 100 --epochs "$epochs"
        row "1000, 100, $epochs" --nnz 1000 --hidden 100 --epochs "$epochs"
        row "2000, 100-50, $epochs" --nnz 2000 --hidden 100,50 --epochs "$epochs"
        row "4000, 100-50, $epochs" --nnz 4000 --hidden 100,50 --epochs "$epochs"
        row "5322, 300-100, $epochs" --nnz 5322 --hidden 300,100 --epochs "$epochs"
    done
    if [ -z "${EPOCHS:-}" ]; then
        row "250, 60, 60, augmented" --nnz 250 --hidden 60 --epochs 60 --augment images
        deployed "250, 60"
        row "400, 50, 160, augmented" --nnz 400 --hidden 50 --epochs 160 --augment images
        deployed "400, 50"
        row "500, 100, 60, augmented" --nnz 500 --hidden 100 --epochs 60 --augment images
        deployed "500, 100"
        row "1000, 100, 80, augmented" --nnz 1000 --hidden 100 --epochs 80 --augment images
        row "1000, 100, 120, augmented" --nnz 1000 --hidden 100 --epochs 120 --augment images
        deployed "1000, 100"
        row "2000, 100-50, 60, augmented" --nnz 2000 --hidden 100,50 --epochs 60 --augment images
        deployed "2000, 100-50"
        row "2000, 100-50, 80, augmented" --nnz 2000 --hidden 100,50 --epochs 80 --augment images
        row "3800, 300-100, 80, augmented" --nnz 3800 --hidden 300,100 --epochs 80 --augment images
        row "4200, 120-60, 160, augmented" --nnz 4200 --hidden 120,60 --epochs 160 --augment images
        deployed "4200, 120-60"
        row "5300, 150-60, 80, augmented" --nnz 5300 --hidden 150,60 --epochs 80 --augment images
        deployed "5300, 150-60"
        row "5322, by default (163-81), 80, augmented" --nnz 5322 --epochs 80 --augment images
        row "5322, 300-100, 80, augmented" --nnz 5322 --hidden 300,100 --epochs 80 --augment images
        row "6500, 300-100, 80, augmented" --nnz 6500 --hidden 300,100 --epochs 80 --augment images
        deployed "6500, 300-100"
        cat <<'TEXT'

Augmented networks as 8-bit integers, tables in C, of 1000 nonzeros those of 120 epochs and of 2000 those of 60: an image of each for a Cortex-M4F
classified all test rows in QEMU as the host does. Bytes are those of the image less those of one that predicts nothing (`tests/peers/flash.py`), in each column of the seed that has most; the choice
of the class and a copy of the row are among the code.

| nonzeros, hidden | test rows right, mean | seeds 0, 1, 2 | bytes of the model | of code | together |
|---|---|---|---|---|---|
TEXT
        cat "$out/deployed.md"
        cat <<'TEXT'

![Share of test rows that are right, by bytes of flash](deep.svg)

The figure is of this table, beside what BitNetMCU has published for the same digits: 99.02 % in 12.3 KB, and 94.22 % with 4512
weights of 2 bits, which are 1128 bytes without any code.
TEXT
    fi
    data=$fashion
    cat <<'TEXT'

Fashion-MNIST:

| nonzeros, hidden, epochs | mean | seeds 0, 1, 2 | seconds | MiB |
|---|---|---|---|---|
TEXT
    row "5000, 300-100, 30" --nnz 5000 --hidden 300,100 --epochs 30
    row "20000, 500-300-100, 30" --nnz 20000 --hidden 500,300,100 --epochs 30
    if [ -z "${EPOCHS:-}" ]; then
        row "5000, 300-100, 60, augmented" --nnz 5000 --hidden 300,100 --epochs 60 --augment images
        row "20000, 500-300-100, 60, augmented" --nnz 20000 --hidden 500,300,100 --epochs 60 --augment images
    fi
    cat <<'TEXT'

## Other methods

Gradual magnitude pruning, RigL and SET on dense arrays, as `docs/results/deep-peers.py` has them: the same networks and epochs, biases among
the weights that are pruned, AdamW. Rate and weight decay of GMP, of RigL after 20 epochs and of SparseLab's RigL were searched for, each row
by itself, on 10,000 training rows, trained on the others for as many epochs, from 0.01 and 0.1 on (with 5322 nonzeros and augmentation GMP keeps the setting that it had before,
which is better by test rows than the one found). Those of the other rows are the best of four (0.002 or 0.01, 0 or 0.1) after 10 epochs, with augmentation
where the row has it, as the script did before it searched. Augmentation is that of the rows above; it had no waves when settings were looked
for, and 120 epochs have those of 80. SparseLab 0.2.2 has layers and kernels of its own for PyTorch; its changes stay within a neuron, its densities are those of ERK, and biases, which stay dense, are counted. Seconds of one
thread, on two machines; a process of theirs had 430 MiB at its peak, 447 with augmentation, one of SparseLab with PyTorch 1.3 GiB.

| nonzeros, hidden, epochs | method | mean | seeds | seconds |
|---|---|---|---|---|
TEXT
    ${PYTHON:-python3} docs/results/deep-peers.py --table docs/results/deep-peers.jsonl
} >"$out/deep.md"
mv "$out/deep.md" docs/results/deep.md
if [ -z "${EPOCHS:-}" ]; then
    ${PYTHON:-python3} docs/results/deep-figure.py docs/results/deep.md docs/results/deep.svg
fi
