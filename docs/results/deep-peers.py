"""Other sparse training on MNIST, for docs/results/deep.md: gradual magnitude pruning, RigL and SET on dense arrays in NumPy, and SparseLab.

usage: deep-peers.py MNIST_FOLDER RESULTS.jsonl [PART]  runs what is not in RESULTS yet, a line each: all, or the methods whose name has PART
       deep-peers.py --table RESULTS.jsonl              prints the rows of the table

Needs NumPy and OpenCV, which changes the pictures. SparseLab (pip install sparselab==0.2.2, with PyTorch) is left out where it is not
installed. OMP_NUM_THREADS=1 makes seconds those of one thread.

Networks, epochs, batches and the count of what is stored are those of recipe `dynamic`: biases are weights of a constant, and pruned with the
rest. AdamW with a cosine. Each row's rate and weight decay are searched for on the last 10,000 training rows, trained on the others for as many
epochs, with augmentation where the row has it: twice and half the rate, three times and a third of the decay, for as long as that is better.
120 epochs have those of 80.

  GMP    all weights at first; from 5 % to 75 % of the steps the smallest are pruned, cubically (Zhu and Gupta 2017)
  RigL   an ERK support of s; every 100 steps the smallest 30 % (cosine, until 75 %) make room for the largest gradients (Evci et al. 2020)
  SET    the same with room for random weights (Mocanu et al. 2018)
  SparseLab RigL, SET   its own layers, kernels and changes of the support, which stay within a row; ERK densities, biases dense and counted
"""

import functools
import gzip
import importlib.util
import itertools
import json
import pathlib
import resource
import sys
import time

import numpy as np

BATCH = 128
EVERY = 100
SIZES = {1000: [100], 2000: [100, 50], 5322: [300, 100]}


def read(folder, part):
    images = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    x = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255
    return x, np.frombuffer(labels, np.uint8, offset=8).astype(int)


@functools.cache
def waves():
    """White noise through a blur of 4 pixels, of mean square 1."""
    import cv2

    noise = np.random.default_rng(64).normal(size=(64, 52, 52)).astype(np.float32)
    fields = np.stack([cv2.GaussianBlur(one, (25, 25), 4)[12:40, 12:40] for one in noise])
    return fields / np.sqrt((fields**2).mean((1, 2), keepdims=True))


def augmented(x, rng, is_small):
    """Each picture moved, turned, stretched, slanted and bent by at most what `--augment images` does by default."""
    import cv2

    cv2.setNumThreads(1)
    shift, turn, scale, shear, bend = (0.5, 5, 0.05, 0.05, 0.3) if is_small else (1, 8, 0.08, 0.1, 0.6)
    n = len(x)
    draw = lambda most: rng.uniform(-most, most, (n, 1, 1)).astype(np.float32)
    angle, across, down, slant = np.radians(draw(turn)), 1 + draw(scale), 1 + draw(scale), draw(shear)
    sin, cos = np.sin(angle), np.cos(angle)
    column = np.arange(28, dtype=np.float32) - 13.5
    row = column[:, None]
    # Where each pixel's column and row come from.
    from_x = (cos * across + slant * sin) * column - sin * down * row + (13.5 + draw(shift))
    from_y = (sin * across + slant * cos) * column + cos * down * row + (13.5 + draw(shift))
    most = (1.7 * bend * rng.random((n, 1, 1))).astype(np.float32)
    for places in (from_x, from_y):
        places += most * waves()[rng.integers(64, size=n)]
    changed = np.empty((n, 28, 28), np.float32)
    for picture, to, *places in zip(x.reshape(-1, 28, 28), changed, from_x, from_y):
        cv2.remap(picture, *places, cv2.INTER_LINEAR, to, cv2.BORDER_CONSTANT)
    return changed.reshape(n, 784)


def with_ones(a):
    return np.concatenate([a, np.ones((len(a), 1), a.dtype)], 1)


def erk(shapes, total, rng):
    """Random masks whose densities go by (rows + columns) / (rows columns)."""
    shares = np.array([rows + cols for rows, cols in shapes], float)
    full = np.array([rows * cols for rows, cols in shapes], float)
    counts, is_full = np.zeros(len(shapes)), np.zeros(len(shapes), bool)
    while True:
        left = total - full[is_full].sum()
        counts = np.where(is_full, full, left * shares / shares[~is_full].sum())
        over = ~is_full & (counts > full)
        if not over.any():
            break
        is_full |= over
    counts = np.floor(counts).astype(int)
    counts[0] += total - counts.sum()
    masks = []
    for (rows, cols), count in zip(shapes, counts):
        mask = np.zeros(rows * cols, bool)
        mask[rng.choice(rows * cols, count, replace=False)] = True
        masks.append(mask.reshape(rows, cols))
    return masks


def largest(scores, count):
    """Masks of the `count` largest scores of all layers."""
    flat = np.concatenate([score.ravel() for score in scores])
    kept = np.zeros(len(flat), bool)
    kept[np.argpartition(-flat, count - 1)[:count]] = True
    ends = np.cumsum([score.size for score in scores])[:-1]
    return [part.reshape(score.shape) for part, score in zip(np.split(kept, ends), scores)]


def train(method, s, x, y, test, epochs, rate, decay, seed, is_augmented=False):
    rng = np.random.default_rng(seed)
    widths = [x.shape[1], *SIZES[s], 10]
    shapes = [(rows + 1, cols) for rows, cols in zip(widths, widths[1:])]
    weights = [rng.normal(0, np.sqrt(2 / rows), (rows, cols)).astype(np.float32) for rows, cols in shapes]
    dense = sum(w.size for w in weights)
    if method == "GMP":
        masks = [np.ones(shape, bool) for shape in shapes]
    else:
        masks = erk(shapes, s, rng)
        # He's values for the inputs that a neuron has.
        weights = [w * mask * np.sqrt(w.shape[0] / np.maximum(mask.sum(0), 1)) for w, mask in zip(weights, masks)]
    weights = [(w * mask).astype(np.float32) for w, mask in zip(weights, masks)]
    moments = [(np.zeros_like(w), np.zeros_like(w)) for w in weights]
    steps = epochs * (len(x) // BATCH)
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for at in range(0, len(x) - BATCH + 1, BATCH):
            batch = order[at : at + BATCH]
            rows = augmented(x[batch], rng, s < 1500) if is_augmented else x[batch]
            inputs = [with_ones(rows)]
            for w in weights[:-1]:
                inputs.append(with_ones(np.maximum(inputs[-1] @ w, 0)))
            logits = inputs[-1] @ weights[-1]
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            p[np.arange(BATCH), y[batch]] -= 1
            back, gradients = p / BATCH, []
            for k in reversed(range(len(weights))):
                gradients.insert(0, inputs[k].T @ back)
                if k:
                    back = (back @ weights[k].T)[:, :-1] * (inputs[k][:, :-1] > 0)
            done = step / steps
            lr = rate * min(1, (step + 1) / 200) * 0.5 * (1 + np.cos(np.pi * done))
            for w, mask, g, (m, v) in zip(weights, masks, gradients, moments):
                g = g * mask
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                scale = np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
                w *= 1 - lr * decay
                w -= lr * scale * m / (np.sqrt(v) + 1e-8)
                w *= mask
            step += 1
            if step % EVERY:
                continue
            if method == "GMP" and done >= 0.05:
                left = max(0.0, 1 - (done - 0.05) / 0.70)
                masks = largest([np.where(mask, np.abs(w), -1) for w, mask in zip(weights, masks)], int(s + (dense - s) * left**3))
            elif method != "GMP" and done < 0.75:
                share = 0.15 * (1 + np.cos(np.pi * done / 0.75))
                for k, (w, mask) in enumerate(zip(weights, masks)):
                    count = int(mask.sum())
                    moved = int(share * min(count, mask.size - count))
                    kept = largest([np.where(mask, np.abs(w), -1)], count - moved)[0]
                    score = np.abs(gradients[k]) if method == "RigL" else rng.random(w.shape)
                    grown = largest([np.where(kept, -1, score)], moved)[0] if moved else np.zeros_like(kept)
                    w *= kept
                    masks[k] = kept | grown
                    for moment in moments[k]:
                        moment *= kept
            for w, mask in zip(weights, masks):
                w *= mask
    stored = sum(np.count_nonzero(w) for w in weights)
    if stored > s:
        sys.exit(f"{method}: {stored} nonzeros, {s} asked for")
    a = test[0]
    for k, w in enumerate(weights):
        a = with_ones(a) @ w
        a = np.maximum(a, 0) if k + 1 < len(weights) else a
    return float(np.mean(a.argmax(1) == test[1]))


def sparselab(method, s, x, y, test, epochs, rate, decay, seed):
    import torch

    torch.set_num_threads(1)
    import sparselab as library

    widths = [x.shape[1], *SIZES[s], 10]
    shapes = list(zip(widths, widths[1:]))
    counts = [mask.sum() for mask in erk(shapes, s - sum(widths[1:]), np.random.default_rng(seed))]
    # It draws each weight by itself: again until there are as many as asked for, to within 2 %.
    for draw in range(1000):
        torch.manual_seed(1000 * seed + draw)
        layers = []
        for (rows, cols), count in zip(shapes, counts):
            layers += [library.SparseLinear(rows, cols, sparsity=1 - count / (rows * cols)), torch.nn.ReLU()]
        net = torch.nn.Sequential(*layers[:-1])
        stored = sum(layer.nnz + len(layer.bias) for layer in layers[::2])
        if 0.98 * s <= stored <= s:
            break
    else:
        sys.exit(f"{method}: {stored} nonzeros, {s} asked for")
    change = {"SparseLab RigL": library.RigL, "SparseLab SET": library.SET}[method](
        sparsity=1 - s / sum(rows * cols for rows, cols in shapes), drop_fraction=0.3, update_freq=EVERY, seed=seed
    )
    net.apply(change)
    optimiser = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=decay)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    order = np.random.default_rng(seed)
    steps, step = epochs * (len(x) // BATCH), 0
    for _ in range(epochs):
        rows = torch.from_numpy(order.permutation(len(x)))
        for at in range(0, len(x) - BATCH + 1, BATCH):
            batch = rows[at : at + BATCH]
            done = step / steps
            for group in optimiser.param_groups:
                group["lr"] = rate * min(1, (step + 1) / 200) * 0.5 * (1 + np.cos(np.pi * done))
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            optimiser.step()
            step += 1
            if done < 0.75:
                change.step()
    with torch.no_grad():
        found = net(torch.from_numpy(test[0])).argmax(1).numpy()
    return float(np.mean(found == test[1]))


def searched(score, start):
    """The best of settings and their neighbours: (rate, decay) times 2**i and 3**j."""
    setting = lambda at: (start[0] * 2.0 ** at[0], start[1] * 3.0 ** at[1])
    of = functools.cache(lambda at: score(setting(at)))
    best, is_better = (0, 0), True
    while is_better:
        i, j = best
        top = max([(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)], key=of)
        is_better = of(top) > of(best)
        best = top if is_better else best
    return setting(best)


def has_sparselab():
    return importlib.util.find_spec("sparselab") is not None


def jobs():
    for epochs, methods, is_augmented in (
        (20, ("GMP",), False),
        (80, ("GMP",), False),
        (80, ("GMP",), True),
        (20, ("RigL", "SET", "SparseLab RigL", "SparseLab SET"), False),
        (80, ("RigL", "SET"), False),
        (80, ("RigL", "SET"), True),
        (120, ("GMP",), True),
    ):
        for method, s, seed in itertools.product(methods, SIZES if epochs < 120 else [1000], range(3)):
            yield {"method": method, "s": s, "epochs": epochs, "augmented": is_augmented, "seed": seed}


def run(folder, results, part=""):
    folder, results = pathlib.Path(folder), pathlib.Path(results)
    (x, y), test = read(folder, "train"), read(folder, "t10k")
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    kind_of = lambda job: tuple(job[key] for key in ("method", "s", "epochs", "augmented"))
    chosen = {kind_of(line): (line["rate"], line["decay"]) for line in lines}
    done = [{key: line[key] for key in ("method", "s", "epochs", "augmented", "seed")} for line in lines]
    for job in jobs():
        if job in done:
            continue
        method, s, epochs, is_augmented = kind = kind_of(job)
        is_library = method.startswith("SparseLab")
        if part not in method or is_library and not has_sparselab():
            continue
        of = sparselab if is_library else lambda *own, seed: train(*own, seed, is_augmented)
        if epochs == 120:
            # A search would take hours.
            chosen[kind] = chosen[method, s, 80, is_augmented]
        elif kind not in chosen:
            held = (x[50_000:], y[50_000:])
            score = lambda setting: of(method, s, x[:50_000], y[:50_000], held, epochs, *setting, seed=7)
            # What fewer epochs of the method have, or pictures as they are.
            start = [chosen[own] for own in chosen if own[:2] == kind[:2]]
            chosen[kind] = searched(score, start[-1] if start else (0.01, 0.1))
        rate, decay = chosen[kind]
        began = time.process_time()
        accuracy = of(method, s, x, y, test, epochs, rate, decay, seed=job["seed"])
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        with results.open("a") as file:
            file.write(json.dumps({**job, "rate": rate, "decay": decay, "accuracy": accuracy, "seconds": seconds, "peak_mib": peak}) + "\n")


def table(results):
    lines = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
    key = lambda line: (line["s"], line["augmented"], line["epochs"], line["method"])
    for (s, is_augmented, epochs, method), group in itertools.groupby(sorted(lines, key=key), key):
        group = list(group)
        accuracies = ", ".join(f"{100 * line['accuracy']:.2f}" for line in group)
        mean = 100 * np.mean([line["accuracy"] for line in group])
        how = f"{epochs}{', augmented' if is_augmented else ''}"
        hidden = "-".join(map(str, SIZES[s]))
        print(f"| {s}, {hidden}, {how} | {method} | {mean:.2f} % | {accuracies} | {np.mean([line['seconds'] for line in group]):.0f} |")


if sys.argv[1] == "--table":
    table(sys.argv[2])
else:
    run(*sys.argv[1:])
