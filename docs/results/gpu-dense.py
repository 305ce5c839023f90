"""Dense networks on a GPU beside the CPU, for docs/results/gpu-dense.md.

usage: gpu-dense.py TAMIS MNIST > gpu-dense.md     TAMIS: that of gpu/dense with the feature wgpu; MNIST: the folder of its four files

Each network is trained twice on both, for one epoch and for several, by recipe `imp` in one round: what the runs differ by is the time of the
steps, what is left of the short one that of beginning (kernels, rows) and scoring; on the GPU after one run more, which compiles the kernels.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

NETWORKS = (((300, 100), 256, 9), ((1000, 1000), 256, 3), ((1000, 1000), 4096, 9), ((4000, 4000), 4096, 2))
MASKS = ("snip", "grasp", "ntk")
MASKED = (((1000, 1000), 0.05, 4096, 9), ((4000, 4000), 0.01, 4096, 3), ((4000, 4000), 0.2, 4096, 2))


def run(tamis, *arguments):
    done = subprocess.run([tamis, *map(str, arguments), "--json", "-q"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"tamis {' '.join(map(str, arguments))}\n{done.stderr}")
    return json.loads(done.stdout)


def weights(hidden):
    widths = (784, *hidden, 10)
    return sum(a * b for a, b in zip(widths, widths[1:]))


def trained(tamis, folder, data, hidden, batch, epochs, device):
    size = ["--hidden", ",".join(map(str, hidden)), "--nnz", weights(hidden) // 20]
    steps = ["--recipe", "imp", "--one-shot", "--epochs", epochs, "--batch", batch]
    return run(tamis, "train", *data, "--task", "multiclass", *size, *steps, "--device", device, "-o", folder / "m.tamis")


def under_mask(tamis, folder, data, hidden, density, batch, epochs, device):
    mask = folder / "mask.npz"
    if device == "cpu" and epochs == 1:
        layers = ["--layers", ",".join(map(str, (784, *hidden, 10)))]
        run(tamis, "mask", *layers, "--method", "random", "--density", density, "--seed", 7, "-o", mask)
    steps = ["--epochs", epochs, "--batch", batch, "--warmup", 20, "--seed", 7, "--device", device]
    return run(tamis, "train", "--mask", mask, *data, "--task", "multiclass", *steps, "-o", folder / "m.tamis")


def row(train, hidden, batch, epochs, size):
    cells = [f"784-{'-'.join(map(str, hidden))}-10", *size, batch]
    per_step, scores, device = [], [], ""
    for place in ("cpu", "gpu"):
        if place == "gpu":
            # Drivers keep kernels that they have compiled once.
            train(hidden, batch, 1, place)
        short, long = (train(hidden, batch, count, place) for count in (1, epochs))
        each = 1e3 * (long["seconds"] - short["seconds"]) / (long["steps"] - short["steps"])
        per_step.append(each)
        scores.append(f"{100 * long['accuracy']:.2f}")
        cells.append(f"{each:.2f}")
        if place == "gpu":
            cells.append(f"{per_step[1] / per_step[0]:.2f}")
            cells.append(f"{short['seconds'] - 1e-3 * each * short['steps']:.1f}")
            device = long["device"]
    cells.append(" / ".join(scores))
    return device, "| " + " | ".join(map(str, cells)) + " |"


def masks(tamis, folder, data):
    widths = ["--layers", "784,1000,1000,10", "--method", "magnitude", "--density", 0.5, "--seed", 7]
    run(tamis, "mask", *widths, "--export-weights", folder / "w.npz", "-o", folder / "all.npz")
    for method in MASKS:
        seconds, kept = [], []
        for place in ("cpu", "gpu"):
            out = folder / f"{method}-{place}.npz"
            rows = data if method != "ntk" else data[:2]
            arguments = ["mask", "--weights", folder / "w.npz", "--method", method, *rows, "--density", 0.05]
            seconds.append(run(tamis, *arguments, "--device", place, "-o", out)["seconds"])
            kept.append(out.read_bytes())
        same = "yes" if kept[0] == kept[1] else "no"
        print(f"| {method} | {seconds[0]:.2f} | {seconds[1]:.2f} | {same} |")


def main():
    tamis, mnist = sys.argv[1], pathlib.Path(sys.argv[2])
    data = ["--data", mnist / "train-images-idx3-ubyte.gz", "--labels", mnist / "train-labels-idx1-ubyte.gz"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        dense = lambda hidden, *how: trained(tamis, folder, data, hidden, *how)
        rows = [row(dense, *network, ()) for network in NETWORKS]
        print(f"""# Dense networks on a GPU, beside the CPU

Made by `docs/results/gpu-dense.py` on {rows[0][0]} and {os.cpu_count()} threads, {time.strftime("%Y-%m-%d")}, with the program of `gpu/dense`: the 60000 images of MNIST,
Adam, then all but a twentieth of the weights pruned and trained once more. A step is the difference of a long and a short run.

| network | rows of a batch | a step on the CPU, ms | on the GPU, ms | GPU / CPU | beginning and scoring on the GPU, s | accuracy of these rows, CPU / GPU, % |
|---|---|---|---|---|---|---|""")
        print("\n".join(line for _, line in rows))
        print("""
Masks of 784-1000-1000-10 on all rows, 5 % kept, seconds of the whole command's work, compiling kernels included:

| method | CPU, s | GPU, s | the same mask |
|---|---|---|---|""")
        masks(tamis, folder, data)
        print("""
Training under a mask, SGD with momentum: on the CPU in memory for the kept weights, on the GPU as a dense network.

| network | kept | rows of a batch | a step on the CPU, ms | on the GPU, ms | GPU / CPU | beginning and scoring on the GPU, s | accuracy of these rows, CPU / GPU, % |
|---|---|---|---|---|---|---|---|""")
        for hidden, density, batch, epochs in MASKED:
            masked = lambda hidden, *how: under_mask(tamis, folder, data, hidden, density, *how)
            print(row(masked, hidden, batch, epochs, (f"{100 * density:g} %",))[1], flush=True)


main()
