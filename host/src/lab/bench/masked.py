"""One step of a network whose dense weights are multiplied by a mask, in NumPy on one thread.

Prints the fastest of some epochs as milliseconds a step, one JSON object for each network that is
given as widths and density: 784,300,100,10:0.02. All memory but that of small vectors is reused.
"""
import json
import sys
import time

import numpy as np

BATCH, STEPS, ROUNDS = 128, 32, 5


def main(widths, density):
    rng = np.random.default_rng(1)
    shapes = list(zip(widths[1:], widths[:-1]))
    masks = [(rng.random(shape) < density).astype(np.float32) for shape in shapes]
    weights = [
        mask * rng.standard_normal(mask.shape, dtype=np.float32) * np.sqrt(2 / (density * mask.shape[1]))
        for mask in masks
    ]
    weights = [w.astype(np.float32) for w in weights]
    momenta = [np.zeros_like(w) for w in weights]
    gradients = [np.empty_like(w) for w in weights]
    acts = [np.empty((BATCH, width), np.float32) for width in widths]
    backs = [np.empty((BATCH, width), np.float32) for width in widths]
    rows = rng.integers(0, 256, (BATCH * STEPS, widths[0]), dtype=np.uint8)
    labels = rng.integers(0, widths[-1], BATCH * STEPS)
    best = np.inf
    for _ in range(ROUNDS):
        order = rng.permutation(len(rows))
        began = time.perf_counter()
        for step in range(STEPS):
            batch = order[step * BATCH : (step + 1) * BATCH]
            np.multiply(rows[batch], np.float32(1 / 256), out=acts[0])
            for l, w in enumerate(weights):
                np.matmul(acts[l], w.T, out=acts[l + 1])
                if l + 1 < len(weights):
                    np.maximum(acts[l + 1], 0, out=acts[l + 1])
            out, p = acts[-1], backs[-1]
            np.exp(out - out.max(axis=1, keepdims=True), out=p)
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(BATCH), labels[batch]] -= 1
            p /= np.float32(BATCH)
            for l in reversed(range(len(weights))):
                gradient = np.matmul(backs[l + 1].T, acts[l], out=gradients[l])
                gradient *= masks[l]
                if l > 0:
                    np.matmul(backs[l + 1], weights[l], out=backs[l])
                    backs[l] *= acts[l] > 0
                momenta[l] *= np.float32(0.9)
                momenta[l] += gradient
                np.multiply(momenta[l], np.float32(0.01), out=gradient)
                weights[l] -= gradient
        best = min(best, (time.perf_counter() - began) / STEPS)
    print(json.dumps({"ms": 1000 * best}))


for argument in sys.argv[1:]:
    sizes, density = argument.split(":")
    main([int(width) for width in sizes.split(",")], float(density))
