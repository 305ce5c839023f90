"""A GPU beside the CPU, for docs/results/gpu.md: products and kernels, and the published runtimes and a figure of the IHT paper.

usage: gpu.py TAMIS [DATA] > gpu.md     TAMIS: a build with the feature gpu; DATA: a folder with mnist/, without which no digits are trained

It runs `tamis bench --device gpu`, then with recipe `paper` alone the experiments `runtimes`, on the GPU and on the CPU, `greedy-figure-1` of two
sizes on both, and `figure-1-left`, on the GPU. Cells of the figure run beside each other, those of the runtimes one by one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SPECS = pathlib.Path(__file__).resolve().parents[2] / "host" / "specs"
# Seconds on one NVIDIA A6000, as published.
PUBLISHED = {"binary-m1-s1": 1.2, "binary-m10-s100": 1.66, "binary-m100-s1000": 8.4, "classes-m10-s1000": 219.2}


def spec(folder, name):
    """An experiment with recipe `paper` alone."""
    text = (SPECS / f"{name}.toml").read_text()
    path = folder / f"{name}.toml"
    path.write_text(re.sub(r"methods = \[.*\]", 'methods = ["paper"]', text))
    return path


def run(tamis, folder, name, *flags):
    """Seconds of the whole experiment, and its records."""
    out = folder / f"{name}-{'-'.join(flag.strip('-') for flag in flags if '/' not in flag)}"
    began = time.monotonic()
    subprocess.run([tamis, "run", spec(folder, name), "-o", out, "-q", *flags], check=True)
    seconds = time.monotonic() - began
    lines = (out / "results.jsonl").read_text().splitlines()
    return seconds, [json.loads(line) for line in lines]


def by_size(records):
    """Records by part and size, the seeds of each."""
    found = {}
    for record in records:
        size = re.sub(r"-seed\d+$", "", record["id"]).replace("-paper", "")
        found.setdefault(size, []).append(record)
    return found


def span(values, digits):
    """The least and the most of some numbers."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def runtimes(tamis, folder, data):
    flags = ["--jobs", "1", "--data-dir", data]
    on = {device: by_size(run(tamis, folder, "runtimes", "--device", device, *flags)[1]) for device in ("gpu", "cpu")}
    print("\n## The published runtimes\n")
    print("Recipe `paper`, seconds of training without reading files, least and most of three seeds; the first run on a GPU makes its kernels.\n")
    print("| cell | GPU, s | CPU, s | published, s (A6000) | test accuracy, GPU | CPU |\n|---|---|---|---|---|---|")
    for size, records in on["gpu"].items():
        both = [[r["solved"] for r in some if r["solved"]] for some in (records, on["cpu"][size])]
        seconds = [span([solved["seconds"] for solved in some], 2) for some in both]
        if not all(both):
            continue
        if both[0][0]["test"]["accuracy"] is None:
            scores = [span([solved["train"]["psnr_db"] for solved in some], 1) + " dB (training rows)" for some in both]
        else:
            scores = [span([100 * solved["test"]["accuracy"] for solved in some], 2) + " %" for some in both]
        print(f"| {size} | {seconds[0]} | {seconds[1]} | {PUBLISHED.get(size, '-')} | {scores[0]} | {scores[1]} |")
    for size, records in on["gpu"].items():
        for record in records:
            if not record["solved"]:
                same = any(other["id"] == record["id"] and not other["solved"] for other in on["cpu"][size])
                where = "on either" if same else "on the GPU alone"
                print(f"\n{size}, seed {record['seed']}, {where}: {record['reason'].splitlines()[0]}.")


def sensing(tamis, folder):
    text = (SPECS / "greedy-figure-1.toml").read_text()
    print("\n## Matrix sensing\n")
    print("Experiment `greedy-figure-1`, of one seed, r = 4: large products on the GPU in single precision, where it ends in double precision on the CPU.\n")
    print("| d = k | method | GPU, s | CPU, s | steps, GPU / CPU | columns above half, GPU / CPU | loss, GPU / CPU |\n|---|---|---|---|---|---|---|")
    for size, steps in ((500, 5000), (1000, 300)):
        path = folder / f"greedy-{size}.toml"
        own = text.replace("[500]", f"[{size}]").replace("inputs = 500", f"inputs = {size}").replace("epochs = 5000", f"epochs = {steps}")
        path.write_text(re.sub(r"seeds = \[.*\]", "seeds = [0]", own))
        on = {}
        for device in ("gpu", "cpu"):
            out = folder / f"greedy-{size}-{device}"
            subprocess.run([tamis, "run", path, "-o", out, "-q", "--device", device, "--jobs", "1"], check=True)
            on[device] = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
        for gpu, cpu in zip(on["gpu"], on["cpu"]):
            both = [record["solved"] for record in (gpu, cpu)]
            each = lambda name, form: " / ".join(format(own["measured"][name], form) for own in both)
            seconds = " | ".join(f"{own['seconds']:.2f}" for own in both)
            print(f"| {size} | {gpu['method']} | {seconds} | {each('descent-steps', '.0f')} | {each('columns', '.0f')} | {each('loss', '.4e')} |", flush=True)


def figure(tamis, folder):
    jobs = max(1, (os.cpu_count() or 1) - 2)
    seconds, records = run(tamis, folder, "figure-1-left", "--device", "gpu", "--jobs", str(jobs), "--threads", "1")
    done = [record["solved"] for record in records if record["solved"]]
    spent = sum(solved["seconds"] for solved in done)
    print("\n## Figure 1 left, the whole grid of the published method\n")
    print(f"{len(records)} cells (m and s from 1 to 1000, three seeds), {len(done)} with a result, {jobs} at a time: {seconds:.0f} s, data and "
          f"the start of {len(records)} processes included; {spent:.0f} s of training, added up.")
    print(f"\nAll of this page is written by `docs/results/gpu.py`, here at commit {records[0]['commit'] or 'unknown'}.")


def main():
    tamis, data = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    bench = subprocess.run([tamis, "bench", "--device", "gpu"], check=True, capture_output=True, text=True).stdout
    print(bench.rstrip())
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if data:
            runtimes(tamis, folder, data)
            sys.stdout.flush()
        sensing(tamis, folder)
        figure(tamis, folder)


if __name__ == "__main__":
    main()
