"""Counts the flash that a model of integers takes of a Cortex-M4F as tables in C, on a linked image that classifies every row in QEMU.

usage: flash.py TAMIS MODEL.tamis IMAGES.gz LABELS.gz      TAMIS is the program; QEMU=PROGRAM another emulator

Prints the share of rows that are right, and bytes of the model, of code, and of both: the image less that of a program that
predicts nothing. Fails where a row has another class than on the host. Needs arm-none-eabi-gcc, no C library, and numpy.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from data import idx, packed
from measure import emulated, memory, output

HERE = pathlib.Path(__file__).parent


def build(folder, name, *sources):
    image = folder / name
    command = [os.environ.get("CC_ARM", "arm-none-eabi-gcc"), f"@{HERE}/c/flags", "-T", HERE / "c/part.ld"]
    # Loops stay loops, where the compiler would call a C library.
    command += ["-I", HERE / "c", "-I", folder, "-DINPUTS=784", "-O2", "-nostdlib", "-fno-tree-loop-distribute-patterns"]
    subprocess.run([*command, *sources, HERE / "c/part.c", "-lgcc", "-o", image], check=True)
    return image


def constants(image):
    """Bytes of the constants in an image."""
    sizes = re.findall(r"^\w+ (\w+) r \w+$", output("arm-none-eabi-nm", "-S", image), re.M)
    return sum(int(size, 16) for size in sizes)


def main(tamis, model, images, labels):
    rows, labels = idx(images).reshape(-1, 784), idx(labels)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([tamis, "export", model, "--format", "c", "--quiet", "-o", folder / "tamis_int8.c"], check=True)
        subprocess.run([tamis, "predict", model, "--data", images, "--quiet", "-o", folder / "classes.npy"], check=True)
        expected = "".join(str(int(k)) for k in np.load(folder / "classes.npy")[:, 0])
        (folder / "rows.bin").write_bytes(packed(rows))
        nothing = build(folder, "nothing", HERE / "c/none.c")
        image = build(folder, "image", HERE / "c/tamis.c", folder / "tamis_int8.c")
        classes = emulated(image, folder / "rows.bin")
        if classes != expected:
            differ = sum(a != b for a, b in zip(classes, expected))
            sys.exit(f"{model}: {len(classes)} classes for {len(rows)} rows, {differ} other than on the host")
        right = np.mean([int(k) == y for k, y in zip(classes, labels)])
        total = memory(image)[0] - memory(nothing)[0]
        tables = constants(image) - constants(nothing)
        print(right, tables, total - tables, total)


main(*sys.argv[1:])
