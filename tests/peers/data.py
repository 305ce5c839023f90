"""Rows as the programs find them in memory: their number, twelve bytes of nothing, and the bytes of the rows.

usage: data.py FOLDER WORK      FOLDER has the four files of MNIST, or train/ and test/ of `tamis generate digits`
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


def main(folder, work):
    for part, stem in [("train", "train"), ("test", "t10k")]:
        if os.path.isdir(f"{folder}/{part}"):
            x, y = np.load(f"{folder}/{part}/X.npy"), np.load(f"{folder}/{part}/y.npy")
        else:
            x, y = idx(f"{folder}/{stem}-images-idx3-ubyte.gz"), idx(f"{folder}/{stem}-labels-idx1-ubyte.gz")
        x, y = x.reshape(len(x), -1).astype(np.uint8), y.reshape(-1).astype(np.uint8)
        assert x.shape[1] == 784, f"{x.shape[1]} numbers in a row: these programs take 784"
        open(f"{work}/{part}.bin", "wb").write(struct.pack("<IIII", len(x), 0, 0, 0) + x.tobytes())
        np.save(f"{work}/{part}_x.npy", x)
        np.save(f"{work}/{part}_y.npy", y)
        if part == "test":
            open(f"{work}/labels.bin", "wb").write(y.tobytes())


main(*sys.argv[1:])
