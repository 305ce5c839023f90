"""Pictures of MNIST in full and averaged over 2x2 pixels, split into rows to train, to choose sizes by, and to test.

usage: data.py FOLDER WORK      FOLDER has the four files of MNIST, or train/ and test/ of `tamis generate digits`

Writes WORK/{full,pooled}/{train,validation,test}_{x,y}.npy, and for the programs WORK/test.bin (the number of rows, twelve bytes
of nothing, and the bytes of the full rows: averaging is a part of what they do) and WORK/labels.bin. The last sixth of the
rows to train chooses sizes.
"""
import gzip
import os
import struct
import sys

import numpy as np


def idx(path):
    data = gzip.open(path).read()
    dims = struct.unpack_from(f">{data[3]}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)


def load(folder, part, stem):
    if os.path.isdir(f"{folder}/{part}"):
        x, y = np.load(f"{folder}/{part}/X.npy"), np.load(f"{folder}/{part}/y.npy")
    else:
        x, y = idx(f"{folder}/{stem}-images-idx3-ubyte.gz"), idx(f"{folder}/{stem}-labels-idx1-ubyte.gz")
    x, y = x.reshape(len(x), -1).astype(np.uint8), y.reshape(-1).astype(np.uint8)
    assert x.shape[1] == 784, f"{x.shape[1]} numbers in a row: these programs take 784"
    return x, y


def pooled(x):
    """Means of 2x2 pixels, rounded, as the programs take them too."""
    sums = x.reshape(len(x), 14, 2, 14, 2).astype(np.uint16).sum((2, 4))
    return ((sums + 2) >> 2).astype(np.uint8).reshape(len(x), 196)


def packed(x):
    """Rows as the programs take them."""
    return struct.pack("<I12x", len(x)) + x.tobytes()


def main(folder, work):
    x, y = load(folder, "train", "train")
    test_x, test_y = load(folder, "test", "t10k")
    begin = len(x) - len(x) // 6
    parts = {"train": (x[:begin], y[:begin]), "validation": (x[begin:], y[begin:]), "test": (test_x, test_y)}
    for pictures, make in [("full", lambda x: x), ("pooled", pooled)]:
        os.makedirs(f"{work}/{pictures}", exist_ok=True)
        for part, (x, y) in parts.items():
            np.save(f"{work}/{pictures}/{part}_x.npy", make(x))
            np.save(f"{work}/{pictures}/{part}_y.npy", y)
    open(f"{work}/test.bin", "wb").write(packed(test_x))
    open(f"{work}/labels.bin", "wb").write(test_y.tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
