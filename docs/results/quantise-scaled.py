"""Trains a dense network of scikit-learn on standardised pixels of MNIST and saves it with the scaler folded into its first layer.

usage: quantise-scaled.py folder-of-the-four-files folder-to-write   (needs numpy and scikit-learn)

Writes scaled.npz, which `tamis import` reads, and the images with a last column of 1: train.npy and test.npy, with labels.
"""

import gzip
import sys
import warnings

import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

source, target = sys.argv[1:]


def read(name, header):
    with gzip.open(f"{source}/{name}.gz") as file:
        return np.frombuffer(file.read(), np.uint8)[header:]


data = {}
for name, files in (("train", "train"), ("test", "t10k")):
    images = read(f"{files}-images-idx3-ubyte", 16).reshape(-1, 784)
    labels = read(f"{files}-labels-idx1-ubyte", 8)
    np.save(f"{target}/{name}.npy", np.hstack([images, np.ones((len(images), 1), np.uint8)]))
    np.save(f"{target}/{name}-labels.npy", labels)
    data[name] = images.astype(np.float64), labels

warnings.simplefilter("ignore")
scaler = StandardScaler().fit(data["train"][0])
model = MLPClassifier((32, 16), random_state=0, max_iter=10)
model.fit(scaler.transform(data["train"][0]), data["train"][1])
weights, biases = list(model.coefs_), list(model.intercepts_)
biases[0] = biases[0] - (scaler.mean_ / scaler.scale_) @ weights[0]
weights[0] = weights[0] / scaler.scale_[:, None]
arrays = {f"coefs_{k}": w.astype(np.float32) for k, w in enumerate(weights)}
arrays |= {f"intercepts_{k}": b.astype(np.float32) for k, b in enumerate(biases)}
np.savez(f"{target}/scaled.npz", **arrays)
