#!/usr/bin/env bash
# Makes docs/results/quantise.md: what 8-bit integers cost in accuracy, on the ten classes of MNIST, and in bytes.
# usage: cargo build --release && docs/results/quantise.sh folder-of-the-four-files      (needs python3)
# CELLS="1000,35" limits the table to these s,m.
set -euo pipefail
mnist=$(realpath "${1:?folder of the four files of MNIST}")
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

out=docs/results/quantise.md
field() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(*(d[k] for k in sys.argv[2:]))' "$@"; }
files() { echo "--data $mnist/$1-images-idx3-ubyte.gz --labels $mnist/$1-labels-idx1-ubyte.gz"; }
# Test accuracy in per cent.
accuracy() {
    # shellcheck disable=SC2046
    "$tamis" eval "$1" $(files t10k) --json > "$work/eval.json"
    field "$work/eval.json" accuracy | awk '{ printf "%.2f", 100 * $1 }'
}

{
cat <<EOT
# What 8-bit integers cost

Made by \`docs/results/quantise.sh\` at commit $(git rev-parse --short HEAD). Networks for the ten classes of MNIST are trained with the
recipe \`anneal\` on all 60 000 rows (\`--validation 0\`), seeds 0 to 2, and tested on the official 10 000. \`tamis quantize\` takes its
scales from the rows of training and sees no label; pixels go in as the bytes that they are. Accuracies are of all three seeds; PSNR,
of the outputs against those of floats on the rows of training, and bytes are means. The largest loss over the seeds stands last.

| s | m | scales | encoding | f32, % | int8, % | outputs, dB | f32, bytes | int8, bytes | bytes a nonzero | most lost, points |
|---|---|---|---|---|---|---|---|---|---|---|
EOT
for cell in ${CELLS:-200,15 500,25 1000,35 2000,50}; do
    s=${cell%,*} m=${cell#*,}
    for seed in 0 1 2; do
        # shellcheck disable=SC2046
        "$tamis" train $(files train) --task multiclass --seed $seed --hidden "$m" --nnz "$s" --validation 0 --threads 2 \
            --quiet -o "$work/$seed.tamis"
        accuracy "$work/$seed.tamis" > "$work/$seed.floats"
    done
    for way in "per-layer smallest" "per-neuron smallest" "per-layer fastest"; do
        read -r scales encoding <<< "$way"
        : > "$work/way"
        for seed in 0 1 2; do
            "$tamis" quantize "$work/$seed.tamis" --data "$mnist/train-images-idx3-ubyte.gz" --"$scales" --encoding "$encoding" \
                --json -o "$work/q.tamis" > "$work/q.json"
            echo "$(cat "$work/$seed.floats") $(accuracy "$work/q.tamis")" \
                "$(field "$work/q.json" outputs_psnr_db model_bytes_before model_bytes nnz)" >> "$work/way"
        done
        awk -v s="$s" -v m="$m" -v scales="$scales" -v encoding="$encoding" '
            { floats = floats c $1; ints = ints c $2; c = ", "; db += $3; before += $4; after += $5; nnz += $6
              if (NR == 1 || $1 - $2 > worst) worst = $1 - $2 }
            END { printf "| %s | %s | %s | %s | %s | %s | %.1f | %.0f | %.0f | %.2f | %.2f |\n", s, m, scales, encoding, floats, ints,
                  db / NR, before / NR, after / NR, after / nnz, worst }' "$work/way"
    done
done
cat <<'EOT'

Bytes are those of the whole file. Both encodings give the same predictions. What `--tune` adds is in [tune.md](tune.md).
EOT
} | tee "$work/out.md"
mv "$work/out.md" "$out"
