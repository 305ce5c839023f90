"""Writes docs/results/covertype.md: sparse networks on Covertype beside dense ones and trees of as many bytes.

usage: covertype.py covtype.data[.gz|.xz] >docs/results/covertype.md      (numpy, scikit-learn; TAMIS is the program)

Columns are as the file has them, 10 numbers and 44 that are 0 or 1, standardised. A fifth of the rows, drawn by seed 0, is the test; nothing is chosen by it.
"""

import gzip
import json
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

TAMIS = os.environ.get("TAMIS", "target/release/tamis")
SIZES = (500, 2000, 8000)
SEEDS = (0, 1, 2)
# Of a node: its feature, its threshold, and where the other child is; of a leaf of boosted trees a number. Classes of a tree are free.
NODE, LEAF = 8, 4
BOOSTED_LEAVES = 8


def load(path):
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(pathlib.Path(path).suffix, open)
    with opened(path, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    held = len(rows) // 5
    mean, size = rows[held:, :-1].mean(0, dtype=np.float64), rows[held:, :-1].std(0, dtype=np.float64)
    scaled = lambda part: ((part[:, :-1] - mean) / size).astype(np.float32)
    return [(scaled(part), part[:, -1].astype(np.int32) - 1) for part in (rows[held:], rows[:held])]


def tamis(folder, *flags):
    line = f"{TAMIS} train --data {folder}/train.npy --labels {folder}/train-labels.npy --task multiclass --threads 1 --json -q"
    line += f" --test-data {folder}/test.npy --test-labels {folder}/test-labels.npy -o {folder}/m.tamis"
    made = subprocess.run([*line.split(), *flags], capture_output=True, text=True)
    if made.returncode:
        sys.exit(made.stderr)
    return json.loads(made.stdout)


def command(*words):
    made = subprocess.run([TAMIS, *words], capture_output=True, text=True)
    if made.returncode:
        sys.exit(made.stderr)
    return made.stdout


def scored(folder, name):
    rows = ["--data", f"{folder}/test.npy", "--labels", f"{folder}/test-labels.npy"]
    return json.loads(command("eval", f"{folder}/{name}.tamis", *rows, "--json", "-q"))["accuracy"]


def row(size, what, how, stored, scores, seconds=None):
    each = ", ".join(f"{100 * score:.2f}" for score in scores)
    took = "" if seconds is None else f"{seconds:.0f}"
    print(f"| {size} | {what} | {how} | {stored} | {100 * np.mean(scores):.2f} % | {each} | {took} |", flush=True)


def main(path):
    (x, y), (tx, ty) = load(path)
    print(HEAD.format(train=len(x), test=len(tx), majority=100 * np.mean(ty == np.bincount(y).argmax())), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for part, data, labels in (("train", x, y), ("test", tx, ty)):
            np.save(f"{folder}/{part}.npy", data)
            np.save(f"{folder}/{part}-labels.npy", labels)
        for s in SIZES:
            floats, integers, seconds = [], [], []
            for seed in SEEDS:
                report = tamis(folder, "--recipe", "dynamic", "--nnz", str(s), "--seed", str(seed))
                floats.append(report["test_accuracy"])
                seconds.append(report["seconds"])
                command("quantize", f"{folder}/m.tamis", "--data", f"{folder}/train.npy", "-o", f"{folder}/q.tamis", "-q")
                integers.append(scored(folder, "q"))
            hidden = "-".join(map(str, report["hidden"]))
            stored = os.path.getsize(f"{folder}/m.tamis")
            row(stored, "Tamis", f"54-{hidden}-7, {s} nonzeros", stored, floats, np.mean(seconds))
            row(stored, "Tamis, 8 bits", "the same", os.path.getsize(f"{folder}/q.tamis"), integers)
            # Dense floats: weights and biases of 54-h-7.
            h = (stored // 4 - 7) // 62
            report = tamis(folder, "--recipe", "imp", "--hidden", str(h), "--density", "1", "--epochs", "20", "--batch", "512", "--rate", "0.005",
                           "--rate-falls", "10,15", "--rate-factor", "0.3")
            row(stored, "dense network", f"54-{h}-7", 4 * (62 * h + 7), [scored(folder, "m")], report["seconds"])
            leaves = stored // NODE + 1
            tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(x, y)
            row(stored, "tree", f"{leaves} leaves", NODE * (tree.get_n_leaves() - 1), [tree.score(tx, ty)])
            one = NODE * (BOOSTED_LEAVES - 1) + LEAF * BOOSTED_LEAVES
            turns = stored // (7 * one)
            if turns:
                boosted = HistGradientBoostingClassifier(max_iter=turns, max_leaf_nodes=BOOSTED_LEAVES, learning_rate=0.3, early_stopping=False, random_state=0)
                boosted.fit(x, y)
                row(stored, "boosted trees", f"7 times {turns} of {BOOSTED_LEAVES} leaves", 7 * one * turns, [boosted.score(tx, ty)])


HEAD = """# Covertype: sparse networks, dense ones and trees of as many bytes

Made by `docs/results/covertype.py covtype.data`. Forest cover of 30 m squares, seven classes; {train} rows to train, {test} drawn rows to
test, of which nothing was chosen; the most frequent class has {majority:.2f} %. Columns as the file has them (one-hot soil and area), standardised.

`bytes` are those of the float model of Tamis, which the others may have too: dense networks 4 a weight and bias; trees 8 a node that splits
(feature, threshold, other child) and none a leaf, boosted ones 4 a leaf. Tamis by recipe `dynamic`, all else by default ([the rule](defaults.md), which
rows of this file were among, but none of the test); dense networks by the same program, 20 epochs of Adam in batches of 512, the rate falling twice; trees
by scikit-learn.

| bytes | model | size | stored bytes | mean | seeds | seconds |
|---|---|---|---|---|---|---|"""

main(sys.argv[1])
