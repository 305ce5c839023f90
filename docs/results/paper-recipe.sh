#!/usr/bin/env bash
# Makes docs/results/paper-recipe.md and the table in README.md: the `paper` recipe on planted problems, medians over
# seeds 0 to 4, one thread.
# usage: cargo build --release && docs/results/paper-recipe.sh      (needs python3)
set -euo pipefail
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

out=docs/results/paper-recipe.md
field() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(*(d[k] for k in sys.argv[2:]))' "$@"; }
median() { sort -g | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }

{
cat <<EOF
# The \`paper\` recipe on planted problems

n = 50000, d = 100, 15 full-batch epochs, one thread, medians over seeds 0 to 4. *Published* is the published method to the
letter (\`--trials 1\`), *trials* the default: 32 random starts on 2000 rows first. Made by \`docs/results/paper-recipe.sh\` at
commit $(git rev-parse --short HEAD) with $(rustc --version | cut -d' ' -f1-2) on $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//').
*Rest* is the peak memory of the process less its data.

| m | s | published, dB | trials, dB | trials, seeds 0 to 4 | published, s | trials, s | state, bytes | rest, MB |
|---|---|---|---|---|---|---|---|---|
EOF
for cell in ${CELLS:-1,1 5,5 10,10 10,50 20,100 50,200 100,500}; do
    m=${cell%,*} s=${cell#*,}
    rm -f "$work"/*.json
    for seed in 0 1 2 3 4; do
        "$tamis" generate planted --samples 50000 --inputs 100 --hidden "$m" --nnz "$s" --seed "$seed" -o "$work/p" --quiet
        for trials in 1 32; do
            "$tamis" train --data "$work/p/X.npy" --labels "$work/p/y.npy" --task regression --hidden "$m" --nnz "$s" \
                --epochs 15 --recipe paper --trials $trials --seed "$seed" --threads 1 --json -o "$work/m.tamis" \
                > "$work/$trials.$seed.json"
        done
    done
    of() { for f in "$work/$1".*.json; do field "$f" "$2"; done; }
    seeds=$(of 32 psnr_db | awk '{printf "%s%.1f", (NR > 1 ? ", " : ""), $1}')
    rest=$(for f in "$work"/*.json; do field "$f" peak_rss_bytes data_bytes; done | awk '{r = ($1 - $2) / 1e6; if (r > x) x = r} END {printf "%.1f", x}')
    printf '| %s | %s | %.1f | %.1f | %s | %.2f | %.2f | %s | %s |\n' "$m" "$s" \
        "$(of 1 psnr_db | median)" "$(of 32 psnr_db | median)" "$seeds" \
        "$(of 1 seconds | median)" "$(of 32 seconds | median)" "$(of 32 state_bytes | median)" "$rest"
done
} | tee "$work/out.md"
mv "$work/out.md" "$out"

# The same medians, in the README between its two marks.
python3 - "$out" README.md <<'EOF'
import sys
out, readme = sys.argv[1:]
rows = [line.strip("|\n").split("|") for line in open(out) if line.startswith("| ") and line[2].isdigit()]
table = ["| m, s | published method, dB | with trials, dB | published, s | with trials, s |", "|---|---|---|---|---|"]
for m, s, plain, tried, _, plain_s, tried_s, *_ in ([c.strip() for c in row] for row in rows):
    table.append(f"| {m}, {s} | {plain} | **{tried}** | {plain_s} | {tried_s} |")
text = open(readme).read()
start, end = "<!-- paper-recipe -->\n", "<!-- end -->"
head, rest = text.split(start)
open(readme, "w").write(head + start + "\n".join(table) + "\n" + end + rest.split(end, 1)[1])
EOF
