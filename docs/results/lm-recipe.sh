#!/usr/bin/env bash
# Makes docs/results/lm-recipe.md and the table in README.md: the `lm` recipe with its defaults on planted problems, all
# cores. The seeds, 300 to 319 (to 304 in the largest cell), are used for nothing else: no setting was chosen on them. Then the
# same with output signs of both kinds, half of them -1, that the search is not told (`--signs free`), seeds 400 to 419.
# usage: cargo build --release && docs/results/lm-recipe.sh      (needs python3)
set -euo pipefail
cd "$(dirname "$0")/../.."
tamis=${TAMIS:-target/release/tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Prints 1 where model and planted weights are one to one: the same columns in every neuron, values to a thousandth. Neurons
# come in any order, those of one direction count as one, since no data tell them apart, and weights below a millionth as none.
cat > "$work/compare.py" <<'PY'
import math, struct, sys, zipfile
def array(archive, name):
    raw = archive.read(name + ".npy")
    length, = struct.unpack_from("<H", raw, 8)
    kind = {"<f4": "f", "<u4": "I", "<i4": "i", "<u8": "Q", "<i8": "q", "<f8": "d"}[eval(raw[10:10 + length].decode())["descr"]]
    body = raw[10 + length:]
    return struct.unpack(f"<{len(body) // struct.calcsize(kind)}{kind}", body)
def directions(neurons):
    found = {}
    for weights in neurons:
        norm = math.hypot(*weights.values()) if weights else 0
        if norm:
            unit = sorted((j, v / norm) for j, v in weights.items())
            for key in found:
                if [j for j, _ in key] == [j for j, _ in unit] and all(abs(a[1] - b[1]) < 1e-3 for a, b in zip(key, unit)):
                    found[key] += norm
                    break
            else:
                found[tuple(unit)] = norm
    return found
archive = zipfile.ZipFile(sys.argv[1])
inputs = int(array(archive, "shape")[1])
planted = {}
for at, value in zip(array(archive, "index"), array(archive, "value")):
    planted.setdefault(int(at) // inputs, {})[int(at) % inputs] = value
raw = open(sys.argv[2], "rb").read()[32:]
_, outputs, nonzeros = struct.unpack_from("<III", raw)
at = 20
counts = struct.unpack_from(f"<{outputs}H", raw, at)
at = (at + 2 * outputs + 3) // 4 * 4
columns = struct.unpack_from(f"<{nonzeros}H", raw, at)
values = iter(zip(columns, struct.unpack_from(f"<{nonzeros}f", raw, (at + 2 * nonzeros + 3) // 4 * 4)))
model = [dict(next(values) for _ in range(count)) for count in counts]
# What two planted neurons of one direction leave over of the budget is filled with weights of no size.
least = 1e-6 * max(abs(v) for weights in model for v in weights.values())
model = [{j: v for j, v in weights.items() if abs(v) > least} for weights in model]
a, b = directions(planted.values()), directions(model)
def match(key, norm):
    for other, size in b.items():
        if [j for j, _ in other] == [j for j, _ in key] and all(abs(p[1] - q[1]) < 1e-3 for p, q in zip(key, other)):
            return abs(size - norm) < 1e-3 * norm
    return False
print(int(len(a) == len(b) and all(match(*entry) for entry in a.items())))
PY
for cell in ${CELLS:-5,5 10,10 10,50 20,100 50,200 100,500}; do
    m=${cell%,*} s=${cell#*,}
    last=319
    [ "$cell" = 100,500 ] && last=304
    for seed in ${SEEDS:-$(seq 300 $last)}; do
        "$tamis" generate planted --samples 50000 --inputs 100 --hidden "$m" --nnz "$s" --seed "$seed" -o "$work/p" --quiet
        "$tamis" train --data "$work/p/X.npy" --labels "$work/p/y.npy" --task regression --hidden "$m" --nnz "$s" \
            --recipe lm --time-limit 60 --seed "$seed" --json -o "$work/m.tamis" >> "$work/$m,$s"
        python3 "$work/compare.py" "$work/p/weights.npz" "$work/m.tamis" >> "$work/same-$m,$s"
    done
done
for cell in ${FREE_CELLS:-10,50 20,100}; do
    m=${cell%,*} s=${cell#*,}
    for seed in ${FREE_SEEDS:-$(seq 400 419)}; do
        "$tamis" generate planted --samples 50000 --inputs 100 --hidden "$m" --nnz "$s" --signs balanced --seed "$seed" \
            -o "$work/p" --quiet
        "$tamis" train --data "$work/p/X.npy" --labels "$work/p/y.npy" --task regression --hidden "$m" --nnz "$s" \
            --recipe lm --signs free --time-limit 60 --seed "$seed" --json -o "$work/m.tamis" >> "$work/free-$m,$s"
    done
done
python3 - "$work" "$(git rev-parse --short HEAD)" "$(rustc --version | cut -d' ' -f1-2)" \
    "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//')" <<'PY'
import json, statistics, sys
from pathlib import Path
work, commit, rustc, cpu = sys.argv[1:]
rows = ["| m, s | exact | one to one | PSNR, least, dB | seconds, median | most | passes, median | state, bytes |", "|---|---|---|---|---|---|---|---|"]
for path in sorted(Path(work).glob("[0-9]*,*"), key=lambda p: [int(x) for x in p.name.split(",")]):
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    median = lambda key: statistics.median(run[key] for run in runs)
    exact = sum(run["exact"] for run in runs)
    same = sum(map(int, path.with_name("same-" + path.name).read_text().split()))
    rows.append(f"| {path.name.replace(',', ', ')} | **{exact} of {len(runs)}** | {same} of {len(runs)} | {min(r['psnr_db'] for r in runs):.1f} "
                f"| {median('seconds'):.2f} | {max(r['seconds'] for r in runs):.2f} | {median('passes'):.0f} | {runs[0]['state_bytes']} |")
table = "\n".join(rows) + "\n"
free = ["| m, s | exact | nonzeros, most | PSNR, least, dB | seconds, median | most | passes, median | state, bytes |", "|---|---|---|---|---|---|---|---|"]
for path in sorted(Path(work).glob("free-*"), key=lambda p: [int(x) for x in p.name[5:].split(",")]):
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    median = lambda key: statistics.median(run[key] for run in runs)
    free.append(f"| {path.name[5:].replace(',', ', ')} | **{sum(run['exact'] for run in runs)} of {len(runs)}** | {max(r['nnz'] for r in runs)} "
                f"| {min(r['psnr_db'] for r in runs):.1f} | {median('seconds'):.2f} | {max(r['seconds'] for r in runs):.2f} "
                f"| {median('passes'):.0f} | {runs[0]['state_bytes']} |")
Path("docs/results/lm-recipe.md").write_text(
    "# The `lm` recipe on planted problems\n\nn = 50000, d = 100, seeds from 300 on, on which no setting was chosen; defaults, all cores. "
    "Exact: the search ended at its goal. Made by "
    f"`docs/results/lm-recipe.sh` at commit {commit} with {rustc} on {cpu}.\n\n" + table
    + "\n## Signs of both kinds\n\nHalf of the planted output weights are -1, and the search is not told which (`--signs free`).\n\n"
    + "\n".join(free) + "\n")
readme = Path("README.md").read_text()
start = readme.index("<!-- recovery -->\n") + len("<!-- recovery -->\n")
Path("README.md").write_text(readme[:start] + table + readme[readme.index("<!-- end -->", start):])
PY
