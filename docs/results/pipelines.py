"""Networks of scikit-learn behind a scaler, cut to fewer weights, for docs/results/pipelines.md.

usage: pipelines.py TAMIS > pipelines.md      (needs scikit-learn, skl2onnx)

A pipeline of a scaler and an MLP goes to ONNX on raw columns and through `tamis import --nnz S`; beside it stands the same cut of the MLP
itself, on scaled columns: the S largest weights, biases among the S. Then both are fine-tuned by `tamis finetune`, the one on raw rows, the other
on scaled ones.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from skl2onnx import to_onnx
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

warnings.filterwarnings("ignore")
SPLITS, SIZES = 3, (100, 300, 700)


def run(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments), "-q"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def score(folder, model, rows, labels):
    np.save(folder / "x.npy", rows.astype(np.float32))
    np.save(folder / "y.npy", labels.astype(np.int64))
    return json.loads(run("eval", model, "--data", folder / "x.npy", "--labels", folder / "y.npy", "--json"))["accuracy"]


def tuned(folder, model, train, y, test, labels):
    """Test accuracy after fine-tuning on the rows to train on."""
    np.save(folder / "a.npy", train.astype(np.float32))
    np.save(folder / "b.npy", y.astype(np.int64))
    run("finetune", model, "--data", folder / "a.npy", "--labels", folder / "b.npy", "-o", folder / "t.tamis")
    return score(folder, folder / "t.tamis", test, labels)


def cut(network, size):
    """The network with its largest weights alone; biases stay and count."""
    sizes = np.sort(np.concatenate([np.abs(w).ravel() for w in network.coefs_]))[::-1]
    least = sizes[size - sum(b.size for b in network.intercepts_) - 1]
    network.coefs_ = [np.where(np.abs(w) >= least, w, 0) for w in network.coefs_]
    return network


def split(folder, data, scaler, hidden, size, seed):
    x, y = data
    train, test, y, labels = train_test_split(x, y, test_size=0.25, random_state=seed, stratify=y)
    pipeline = make_pipeline(scaler(), MLPClassifier(hidden, max_iter=500, random_state=seed)).fit(train, y)
    network = pipeline[-1]
    if sum(w.size for w in network.coefs_) <= size:
        return None
    dense = pipeline.score(test, labels)
    (folder / "m.onnx").write_bytes(to_onnx(pipeline, x[:1]).SerializeToString())
    run("import", folder / "m.onnx", "--nnz", size, "-o", folder / "m.tamis")
    scaled = [pipeline[0].transform(rows).astype(np.float32) for rows in (train, test)]
    own = score(folder, folder / "m.tamis", test, labels)
    own_tuned = tuned(folder, folder / "m.tamis", train, y, test, labels)
    wanted = np.mean(cut(network, size).predict(pipeline[0].transform(test)) == labels)
    (folder / "s.onnx").write_bytes(to_onnx(network, scaled[0][:1]).SerializeToString())
    run("import", folder / "s.onnx", "-o", folder / "s.tamis")
    return dense, own, wanted, own_tuned, tuned(folder, folder / "s.tamis", scaled[0], y, scaled[1], labels)


def main():
    print(f"""# Pipelines of scikit-learn, cut and fine-tuned

Made by `docs/results/pipelines.py`: test accuracy, means over {SPLITS} splits, three quarters of the rows to train on. `import --nnz` cuts the ONNX file of the whole
pipeline, which takes raw columns; beside it the same cut of the network on scaled columns, in NumPy. Fine-tuned by `tamis finetune` with its defaults.

| table | scaler | hidden | nonzeros | dense | cut, raw | cut, scaled | fine-tuned, raw | fine-tuned, scaled |
|---|---|---|---|---|---|---|---|---|""")
    for name in ("breast_cancer", "wine"):
        table = getattr(datasets, f"load_{name}")()
        data = table.data.astype(np.float32), table.target
        for scaler in (StandardScaler, MinMaxScaler):
            for hidden in ((50,), (20, 10)):
                for size in SIZES:
                    with tempfile.TemporaryDirectory() as folder:
                        rows = [split(pathlib.Path(folder), data, scaler, hidden, size, seed) for seed in range(SPLITS)]
                    rows = [row for row in rows if row]
                    if rows:
                        scores = " | ".join(f"{score:.3f}" for score in np.mean(rows, axis=0))
                        widths = ",".join(map(str, hidden))
                        print(f"| {name} | {scaler.__name__} | {widths} | {size} | {scores} |", flush=True)


main()
