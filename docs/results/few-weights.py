"""Writes docs/results/few-weights.md: two classes that are hard to tell apart, with 5 to 20 weights, by several recipes.

usage: few-weights.py MNIST_FOLDER FASHION_FOLDER >docs/results/few-weights.md      (TAMIS is the program; a quarter of an hour on two cores)

Three seeds. All settings by default but for what a row says; test rows choose nothing.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

TAMIS = os.environ.get("TAMIS", "target/release/tamis")
SEEDS = (0, 1, 2)
SIZES = (5, 10, 15, 20)
RECIPES = ("lm", "dynamic", "imp")
PAIRS = [
    ("mnist", "4,9", "Fours and nines of MNIST"),
    ("mnist", "3,8", "Threes and eights of MNIST"),
    ("fashion", "2,4", "Pullovers and coats of Fashion-MNIST"),
    ("fashion", "0,6", "T-shirts and shirts of Fashion-MNIST"),
]

HEAD = """# Two classes and few weights

Made by `docs/results/few-weights.py MNIST_FOLDER FASHION_FOLDER`. Two classes that are hard to tell apart, 12 000 rows or so, one hidden layer of 10
neurons; per cent of the test rows that are right, by seed, and the median of the seconds of training. By default `tamis train` takes recipe `lm` up
to 20 weights and `dynamic` from there on; `imp` is iterative magnitude pruning of the dense network of 7850 weights.
Seconds are of two cores that had other work meanwhile: they compare the recipes, and are up to three times what a machine takes by itself."""


def tamis(*words):
    made = subprocess.run([TAMIS, *map(str, words), "--json", "-q"], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{made.stderr}")
    return json.loads(made.stdout)


def main(*folders):
    folders = dict(zip(("mnist", "fashion"), map(pathlib.Path, folders)))
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/m.tamis"
        for data, labels, title in PAIRS:
            part = lambda name: [folders[data] / f"{name}-images-idx3-ubyte.gz", folders[data] / f"{name}-labels-idx1-ubyte.gz"]
            (x, y), (tx, ty) = part("train"), part("t10k")
            print(f"\n## {title}\n\n| weights |" + "".join(f" `{recipe}` | s |" for recipe in RECIPES))
            print("|---|" + "---|---|" * len(RECIPES))
            for s in SIZES:
                cells = [str(s)]
                for recipe in RECIPES:
                    right, seconds = [], []
                    for seed in SEEDS:
                        rows = ["--data", x, "--labels", y, "--keep-labels", labels, "--task", "binary"]
                        own = ["--hidden", 10, "--nnz", s, "--recipe", recipe, "--seed", seed, "-o", model]
                        seconds.append(tamis("train", *rows, *own)["seconds"])
                        scored = tamis("eval", model, "--data", tx, "--labels", ty, "--keep-labels", labels)
                        right.append(f"{100 * scored['accuracy']:.2f}")
                        os.remove(model)
                    cells += [" ".join(right), f"{statistics.median(seconds):.1f}"]
                print("| " + " | ".join(cells) + " |", flush=True)


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
