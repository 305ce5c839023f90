"""The code of the authors of arXiv 2509.20323 on planted instances of Tamis, beside `tamis train --recipe paper` on the same rows.

usage: authors-code.py REPOSITORY TAMIS RESULTS.jsonl [m,s[,outputs]]…      runs what is not in RESULTS yet
       authors-code.py --page RESULTS.jsonl > authors-code.md              prints the page

REPOSITORY is a copy of their code, with sparse_AIHT.py in it, which this script neither has nor fetches: the paper says where it is. TAMIS is
the program. Their code asks for a GPU with CuPy; here NumPy stands in its place, in double precision as there, with the three
kernels that they write in C. Their algorithm is untouched. Rows, labels and seeds 0 to 9 are those of `tamis generate planted`, and starts
are each program's own: instances are the same, random generators are not. Settings are those of their figures: one output 15 full-batch epochs,
several outputs 100 epochs of batches of 5000 rows.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import types

import numpy as np

SEEDS = range(10)
CELLS = ["1,1", "5,5", "10,10", "10,50", "20,100", "50,200"]
ROWS, INPUTS = 50_000, 100


def hashes(value, a, b, size):
    """The finaliser of MurmurHash3, in 32 bits."""
    h = value.astype(np.uint32) * np.uint32(a) + np.uint32(b)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return (h ^ (h >> np.uint32(16))) % np.uint32(size)


KERNELS = {
    "nonzero_trues": lambda x, chosen: chosen & (x != 0),
    "clamp_kernel": lambda x, low, high: (x >= low) & (x < high),
    "murmur_hash": hashes,
}


def stand_ins():
    """Modules of the names that their code imports and that need a GPU, or files that a planted instance does without."""
    cupy = types.ModuleType("cupy")
    cupy.__dict__.update({name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    cupy.ElementwiseKernel = lambda _inputs, _output, _code, name: KERNELS[name]
    cupy.in1d = np.isin
    # Places that are beyond the end wrap there; their code reads such ones for entries that it has no index of, and drops what it read.
    def intersect1d(a, b, **options):
        both, first, second = np.intersect1d(a, b, **options)
        return both, first, second % max(len(b), 1)

    cupy.intersect1d = intersect1d
    # Numbers that are drawn are arrays there.
    drawn = {name: getattr(np.random, name) for name in ("seed", "normal", "uniform", "choice")}
    cupy.random = types.SimpleNamespace(**drawn, randint=lambda **bounds: np.asarray(np.random.randint(**bounds)))
    cupy.asnumpy = np.asarray
    cupyx = types.ModuleType("cupyx")
    softmax = lambda x, axis: np.exp(x - x.max(axis, keepdims=True)) / np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True)
    cupyx.scipy = types.SimpleNamespace(special=types.SimpleNamespace(softmax=softmax))
    loader = types.ModuleType("mnist_loader")
    loader.MNISTLoader = loader.MNISTINRLoader = object
    tqdm = types.ModuleType("tqdm")
    tqdm.tqdm = lambda steps, *_, **__: steps
    sys.modules.update(cupy=cupy, cupyx=cupyx, mnist_loader=loader, tqdm=tqdm)


class Batches:
    """Rows and labels as their code goes through them: all at once, or in batches, in an order of their own in every epoch."""

    def __init__(self, x, y, size, seed):
        self.x, self.y, self.size = x, y, size or len(x)
        self.rng = np.random.default_rng(seed + 3)

    def __len__(self):
        return -(-len(self.x) // self.size)

    def __iter__(self):
        order = self.rng.permutation(len(self.x)) if len(self) > 1 else np.arange(len(self.x))
        for start in range(0, len(self.x), self.size):
            rows = order[start : start + self.size]
            yield self.x[rows], self.y[rows]


def theirs(run, x, y, m, s, outputs, seed):
    epochs, batch = (15, 0) if outputs == 1 else (100, 5000)
    began, top = time.time(), float(np.abs(y).max())
    batches = Batches(x, y, batch, seed)
    psnr, _ = run(m=m, s=s, train_loader=batches, convex=False, num_epochs=epochs, seed=seed, max_label=top)
    return float(psnr), time.time() - began


def ours(tamis, folder, m, s, outputs, seed, trials):
    epochs, batch = (15, 0) if outputs == 1 else (100, 5000)
    line = [tamis, "train", "--data", f"{folder}/X.npy", "--labels", f"{folder}/y.npy", "--task", "regression", "--json", "--seed", str(seed)]
    line += ["--hidden", str(m), "--nnz", str(s), "--recipe", "paper", "--epochs", str(epochs), "--batch", str(batch)]
    line += ["--trials", "1"] if trials == 1 else []
    done = subprocess.run(line + ["-o", f"{folder}/m.tamis"], capture_output=True, text=True)
    if done.returncode:
        return float("nan"), float("nan")
    report = json.loads(done.stdout)
    return report["psnr_db"], report["seconds"]


def measure(repository, tamis, out, cells):
    stand_ins()
    sys.path.insert(0, str(repository))
    run = __import__("sparse_AIHT").INRExperiment
    done = {(r["cell"], r["seed"]) for r in map(json.loads, out.read_text().splitlines())} if out.exists() else set()
    for cell in cells:
        m, s, outputs = (*map(int, cell.split(",")), 1)[:3]
        for seed in SEEDS:
            if (cell, seed) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                line = [tamis, "generate", "planted", "--samples", str(ROWS), "--inputs", str(INPUTS), "--hidden", str(m), "--nnz", str(s)]
                line += ["--outputs", str(outputs)] if outputs > 1 else []
                subprocess.run([*line, "--seed", str(seed), "-q", "-o", f"{folder}/p"], check=True)
                x, y = np.load(f"{folder}/p/X.npy"), np.load(f"{folder}/p/y.npy")
                if not np.abs(y).max():
                    continue
                with np.errstate(all="ignore"):
                    found = {"theirs": theirs(run, x, y, m, s, outputs, seed)}
                for name, trials in (("published", 1), ("trials", 0)):
                    found[name] = ours(tamis, f"{folder}/p", m, s, outputs, seed, trials)
            record = {"cell": cell, "seed": seed, **{name: {"psnr": psnr, "seconds": seconds} for name, (psnr, seconds) in found.items()}}
            with out.open("a") as file:
                print(json.dumps(record), file=file)


HEAD = """# The published method: the authors' code beside recipe `paper`

n = 50000, d = 100, planted networks of one hidden layer, seeds 0 to 9, the same rows and labels for both. *Authors' code* is theirs with NumPy in place of CuPy, in double
precision, the algorithm untouched; *`--trials 1`* is the published method to the letter, *default* the best of random starts on 2000 rows first.
One output: 15 full-batch epochs; several outputs: 100 epochs of batches of 5000 rows. Medians over seeds; a run that diverges counts as below all others.
Random generators are each program's own. Seconds were taken while other programs ran: they tell no more than the order. Made by `docs/results/authors-code.py`,
which says where to put their code.

Where theirs differs from their text: in steps with random values for empty blocks it takes a block for empty that has no *positive* entry.
"""


def page(records):
    print(HEAD)
    print("| m, s, outputs if several | seeds | authors' code, dB | `--trials 1`, dB | default, dB | authors' code, s | `--trials 1`, s | default, s |")
    print("|---|---|---|---|---|---|---|---|")
    for cell in dict.fromkeys(r["cell"] for r in records):
        own = [r for r in records if r["cell"] == cell]
        # A run that diverged is below all others.
        value = lambda r, of: -np.inf if np.isnan(r[of]["psnr"]) else r[of]["psnr"]
        texts = []
        for of in ("theirs", "published", "trials"):
            middle = statistics.median(value(r, of) for r in own)
            texts.append("diverged" if np.isinf(middle) else f"{middle:.1f}")
        for of in ("theirs", "published", "trials"):
            seconds = [r[of]["seconds"] for r in own if not np.isnan(r[of]["seconds"])]
            texts.append(f"{statistics.median(seconds):.2f}" if seconds else "")
        print(f"| {cell.replace(',', ', ')} | {len(own)} | {' | '.join(texts)} |")


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "--page":
        page([json.loads(line) for line in pathlib.Path(arguments[1]).read_text().splitlines()])
    elif len(arguments) >= 3:
        measure(pathlib.Path(arguments[0]), arguments[1], pathlib.Path(arguments[2]), arguments[3:] or CELLS)
    else:
        sys.exit(__doc__)


main()
