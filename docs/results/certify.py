"""Writes docs/results/certify.md: how far smaller models of MNIST can be from the original, over boxes around test images.

usage: certify.py MNIST_FOLDER >docs/results/certify.md      (numpy; TAMIS is the program; about ten minutes)
"""

import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

TAMIS = os.environ.get("TAMIS", "target/release/tamis")
SEEDS = (0, 1, 2)
ROWS = 20
# Flags of the original, and whether half of its weights are pruned, too.
MODELS = (
    ("32", 1000, [], False),
    ("32", 4000, [], False),
    ("32", None, ["--recipe", "imp", "--density", "1"], True),
    ("64,32", 4000, [], False),
    ("64,32", None, ["--recipe", "imp", "--density", "1"], True),
    ("300,100", None, ["--recipe", "imp", "--density", "1"], False),
)


def tamis(*words, threads=2):
    made = subprocess.run([TAMIS, *map(str, words), "--json", "-q", "--threads", str(threads)], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{made.stderr}")
    return json.loads(made.stdout)


def load(mnist, name):
    x = gzip.decompress((mnist / f"{name}-images-idx3-ubyte.gz").read_bytes())
    y = gzip.decompress((mnist / f"{name}-labels-idx1-ubyte.gz").read_bytes())
    return np.frombuffer(x, np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255, np.frombuffer(y, np.uint8, offset=8).astype(np.int64)


def certified(a, b, folder, *more):
    """Medians of each bound over the lower one, the largest ratio, images whose class is certain, and seconds an image."""
    report = tamis("certify", a, b, "--box", f"{folder}/T.npy", *more, threads=1)
    rows = report["rows"]
    median = lambda key: statistics.median(row[key] / row["lower"] for row in rows)
    bounds = [median(key) for key in ("upper", "spectral", "crown", "difference")]
    most = max(row["upper"] / row["lower"] for row in rows)
    return [*bounds, most, sum(bool(row["class_certain"]) for row in rows), report["seconds"] / len(rows)]


def main(mnist):
    mnist = pathlib.Path(mnist)
    (x, y), (test, _) = load(mnist, "train"), load(mnist, "t10k")
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", x)
        np.save(f"{folder}/y.npy", y)
        np.save(f"{folder}/T.npy", test[:ROWS])
        for hidden, nnz, flags, has_half in MODELS:
            pairs, halves, plain = [], [], []
            for seed in SEEDS:
                size = [] if nnz is None else ["--nnz", nnz]
                rows = ["--data", f"{folder}/X.npy", "--labels", f"{folder}/y.npy", "--task", "multiclass"]
                tamis("train", *rows, "--hidden", hidden, *size, *flags, "--seed", seed, "-o", f"{folder}/m.tamis")
                tamis("quantize", f"{folder}/m.tamis", "--data", f"{folder}/X.npy", "-o", f"{folder}/q.tamis")
                box = ["--eps", "0.02", "--rows", ROWS]
                pairs.append(certified(f"{folder}/m.tamis", f"{folder}/q.tamis", folder, *box, "--range", "0,1"))
                plain.append(certified(f"{folder}/m.tamis", f"{folder}/q.tamis", folder, *box))
                if has_half:
                    tamis("export", f"{folder}/m.tamis", "--format", "safetensors", "-o", f"{folder}/m.safetensors")
                    tamis("import", f"{folder}/m.safetensors", "--density", "0.5", "-o", f"{folder}/h.tamis")
                    halves.append(certified(f"{folder}/m.tamis", f"{folder}/h.tamis", folder, *box, "--range", "0,1"))
            name = f"{hidden.replace(',', '-')}, {'dense' if nnz is None else nnz}"
            row("8-bit integers", name, pairs, plain)
            if halves:
                row("half of the weights", name, halves, None)


def row(second, name, found, plain):
    columns = list(zip(*found))
    ratios = lambda values: ", ".join(f"{value:.2f}" for value in values)
    # Two digits.
    wide = lambda values: f"{float(f'{statistics.median(values):.2g}'):g}"
    upper, spectral, crown, difference, most, certain, seconds = columns
    without = "" if plain is None else ratios([each[0] for each in plain])
    cells = [second, name, ratios(upper), ratios(most), wide(spectral), wide(crown), wide(difference), without, ", ".join(map(str, certain)), f"{statistics.median(seconds):.2f}"]
    print("| " + " | ".join(cells) + " |", flush=True)


HEAD = """# Certificates of smaller models on MNIST

Made by `docs/results/certify.py MNIST_FOLDER`. Pixels from 0 to 1, boxes of eps 0.02 around the first 20 test images, cut to 0 and 1
(`--range 0,1`; the last but two column without). Three seeds of each original: `tamis train` with --nnz, or `--recipe imp --density 1` (dense);
integers by `tamis quantize`, half of the weights by `tamis export` and `tamis import --density 0.5`. Medians over the images of a bound divided by
the lower bound, by seed; of spectral norms, CROWN and differences the middle seed; the largest `upper` over `lower`; images whose
class is certain; seconds an image, files included, on one core, of the middle seed.

| second model | original | upper | largest | spectral | CROWN | difference | without range | certain | seconds |
|---|---|---|---|---|---|---|---|---|---|"""

main(sys.argv[1])
