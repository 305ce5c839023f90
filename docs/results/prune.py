"""Writes docs/results/prune.md: MNIST 784-300-100-10 pruned by groups, beside other ways to as many nonzeros.

usage: prune.py MNIST_FOLDER >docs/results/prune.md      (TAMIS is the program; about half an hour on two cores)

A dense network of three seeds, each pruned with its seed. All settings by default but for what a row says; test rows choose nothing.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TAMIS = os.environ.get("TAMIS", "target/release/tamis")
SEEDS = (0, 1, 2)


def tamis(*words):
    made = subprocess.run([TAMIS, *map(str, words), "--json", "-q"], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{made.stderr}")
    return json.loads(made.stdout)


def scored(model, x, y):
    return tamis("eval", model, "--data", x, "--labels", y)["accuracy"]


def shown(scores):
    return " ".join("" if score is None else f"{100 * score:.2f}" for score in scores)


def main(mnist):
    mnist = pathlib.Path(mnist)
    part = lambda name: [mnist / f"{name}-images-idx3-ubyte.gz", mnist / f"{name}-labels-idx1-ubyte.gz"]
    (x, y), (tx, ty) = part("train"), part("t10k")
    rows = ["--data", x, "--labels", y, "--task", "multiclass"]
    test = ["--test-data", tx, "--test-labels", ty]
    with tempfile.TemporaryDirectory() as folder:
        dense = []
        for seed in SEEDS:
            flags = ["--recipe", "imp", "--hidden", "300,100", "--density", 1, "--epochs", 20, "--seed", seed, "-o", f"{folder}/{seed}.tamis"]
            tamis("train", *rows, *flags)
            dense.append(scored(f"{folder}/{seed}.tamis", tx, ty))
        print(HEAD.format(dense=shown(dense)))
        for asked in (["--neurons", "18,12"], *(["--nnz", s] for s in (500, 1000, 2000, 4000))):
            found = [
                tamis("prune", f"{folder}/{seed}.tamis", *rows, *test, *asked, "--seed", seed, "-o", f"{folder}/p.tamis") for seed in SEEDS
            ]
            widths = "-".join(map(str, found[0]["widths"][1:-1]))
            nnz = found[0]["nnz"]
            of = lambda key: shown([(report[key] or {}).get("accuracy") for report in found])
            cells = [f"`{' '.join(map(str, asked))}`: {widths}, {nnz} nonzeros", shown([report["accuracy"] for report in found])]
            cells += [of("unstructured"), of("scratch"), of("scratch_pruned")]
            print("| " + " | ".join(cells) + " |", flush=True)
        print(BESIDE)
        for s in (500, 1000, 2000, 4000):
            widths = "100" if s <= 1000 else "100,50"
            moved = [tamis("train", *rows, *test, "--nnz", s, "--hidden", widths, "--seed", seed, "-o", f"{folder}/m.tamis") for seed in SEEDS]
            took = sum(report["seconds"] for report in moved) / len(moved)
            group = ["--recipe", "group", "--hidden", "300,100", "--nnz", s]
            grouped = [tamis("train", *rows, *test, *group, "--seed", seed, "-o", f"{folder}/g.tamis")["accuracy"] for seed in SEEDS if s in (500, 2000)]
            print(f"| {s} | {shown([report['test_accuracy'] for report in moved])} | {took:.1f} | {shown(grouped)} |", flush=True)


HEAD = """# Pruning 784-300-100-10 on MNIST

Made by `docs/results/prune.py MNIST_FOLDER`. A dense network without biases of three seeds ({dense} % of the test rows), each pruned with
its seed; per cent of the 10 000 test rows, by seed. `unstructured` is magnitude alone over as many epochs as groups have in all, with the same
rounds and weight decay; `scratch` a dense network of the widths that are left, from nothing, `scratch_pruned` the same pruned to the same nonzeros.

| asked for | groups | `unstructured` | `scratch` | `scratch_pruned` |
|---|---|---|---|---|"""

BESIDE = """
Beside `tamis train`, which never holds the dense network, and recipe `group`, which trains it from nothing first:

| nonzeros | `dynamic` (the default), 20 epochs | its seconds | `--recipe group --hidden 300,100` |
|---|---|---|---|"""

main(sys.argv[1])
