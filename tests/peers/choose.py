"""Trains networks of a list of sizes and seeds, and chooses one of each kind by the validation rows.

usage: choose.py WORK TAMIS LEAST       (called by run.sh; models that are there already are not trained again)

A size passes where the mean of the seeds' validation accuracy, of floats and of 8-bit integers, reaches a bound: LEAST for the
dense network that other engines run, and for Tamis the larger of LEAST and what that dense network reached with the same
numbers. So Tamis is compared at an equal or better accuracy. The smallest that passes is chosen, and of its seeds the one in
the middle. A size whose first seed is MARGIN below a bound is given up.

Writes WORK/{full,pooled}/chosen.json, with the test accuracy of all seeds, and copies of the chosen models beside it.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import dense

SEEDS = range(int(os.environ.get("SEEDS", 5)))
JOBS = int(os.environ.get("JOBS", os.cpu_count()))
MARGIN = 0.01
# Nonzeros and neurons; neurons.
SPARSE = {"full": "500,25 600,27 700,29 800,31 1000,35 1200,38", "pooled": "300,18 400,22 500,25 600,27 700,29 800,31 1000,35"}
DENSE = {"full": "10 12 14 16 18 20 24 28 32 40", "pooled": "10 12 14 16 18 20 24 28 32 40"}


def tamis(*arguments):
    done = subprocess.run([TAMIS, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tamis {' '.join(arguments)}\n{done.stderr}")
    return json.loads(done.stdout)


class Sparse:
    """Tamis's own networks: a file of floats and one of integers for each seed."""

    kind = "sparse"

    def __init__(self, folder, size, seed):
        self.folder, self.size, self.seed = folder, size, seed
        stem = f"{folder}/models/sparse-{size.replace(',', '-')}-{seed}"
        self.files = {"tamis_f32.tamis": f"{stem}.tamis", "tamis_int8.tamis": f"{stem}-int8.tamis"}

    def train(self):
        floats, integers = self.files.values()
        x, (s, m) = f"{self.folder}/train_x.npy", self.size.split(",")
        rows = ["--data", x, "--labels", f"{self.folder}/train_y.npy"]
        sizes = ["--hidden", m, "--nnz", s, "--seed", str(self.seed)]
        tamis("train", *rows, "--task", "multiclass", *sizes, "--validation", "0", "--threads", "1", "-o", floats)
        tamis("quantize", floats, "--data", x, "--encoding", "fastest", "-o", integers)

    def score(self, part):
        rows = ["--data", f"{self.folder}/{part}_x.npy", "--labels", f"{self.folder}/{part}_y.npy"]
        return [tamis("eval", file, *rows)["accuracy"] for file in self.files.values()]


class Dense:
    """The dense network that other engines run."""

    kind = "dense"

    def __init__(self, folder, size, seed):
        self.folder, self.size, self.seed = folder, size, seed
        self.files = {"dense.safetensors": f"{folder}/models/dense-{size}-{seed}.safetensors"}

    def train(self):
        (file,) = self.files.values()
        model, m = file.replace("safetensors", "tamis"), int(self.size)
        inputs = {"full": 784, "pooled": 196}[os.path.basename(self.folder)]
        rows = ["--data", f"{self.folder}/train_x.npy", "--labels", f"{self.folder}/train_y.npy"]
        sizes = ["--hidden", str(m), "--nnz", str(m * (inputs + 10)), "--seed", str(self.seed)]
        how = ["--recipe", "imp", "--epochs", "40", "--threads", "1"]
        tamis("train", *rows, "--task", "multiclass", *sizes, *how, "-o", model)
        tamis("export", model, "--format", "safetensors", "-o", file)

    def score(self, part):
        return dense.score(*self.files.values(), self.folder, part)


def ready(network):
    """Its validation accuracy with floats and with integers."""
    if not all(os.path.exists(file) for file in network.files.values()):
        network.train()
    return network.score("validation")


def choose(pool, kind, folder, sizes, bounds):
    for size in sizes:
        networks = [kind(folder, size, seed) for seed in SEEDS]
        scores = [ready(networks[0])]
        if all(got >= bound - MARGIN for got, bound in zip(scores[0], bounds)):
            scores += pool.map(ready, networks[1:])
        means = [statistics.mean(score) for score in zip(*scores)]
        print(f"{folder}, {kind.kind} {size}: {means} of {len(scores)} seeds", file=sys.stderr, flush=True)
        if len(scores) == len(networks) and all(mean >= bound for mean, bound in zip(means, bounds)):
            break
    else:
        sys.exit(f"{folder}: no {kind.kind} network reaches {bounds}")
    middle = sorted(SEEDS, key=lambda at: scores[at][1])[len(SEEDS) // 2]
    for name, file in networks[middle].files.items():
        shutil.copy(file, f"{folder}/{name}")
    tests = list(pool.map(lambda network: network.score("test"), networks))
    return {"size": size, "seed": SEEDS[middle], "validation": means, "test": tests}


def main(work, least):
    with ThreadPoolExecutor(JOBS) as pool:
        for pictures in ["full", "pooled"]:
            folder = f"{work}/{pictures}"
            os.makedirs(f"{folder}/models", exist_ok=True)
            of_dense = choose(pool, Dense, folder, os.environ.get("DENSE", DENSE[pictures]).split(), [least, least])
            bounds = [max(least, reached) for reached in of_dense["validation"]]
            of_sparse = choose(pool, Sparse, folder, os.environ.get("SPARSE", SPARSE[pictures]).split(), bounds)
            model = tamis("inspect", f"{folder}/tamis_int8.tamis")
            of_sparse["left"] = {"nonzeros": model["total"]["nnz"], "neurons": model["layers"][0]["outputs"]}
            json.dump({"least": least, "dense": of_dense, "sparse": of_sparse}, open(f"{folder}/chosen.json", "w"))


TAMIS = sys.argv[2]
main(sys.argv[1], float(sys.argv[3]))
