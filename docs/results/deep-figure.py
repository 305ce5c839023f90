"""Draws the accuracy of the models in docs/results/deep.md by their bytes of flash, with matplotlib.

usage: deep-figure.py docs/results/deep.md docs/results/deep.svg"""

import re
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "tamis"  # the same bytes each time
import matplotlib.pyplot as plt

ROW = re.compile(r"\| (\d+), [\d-]+ \| ([\d.]+) % \| [\d., ]+ \| (\d+) \| \d+ \| (\d+) \|")
rows = [ROW.match(line) for line in open(sys.argv[1])]
points = [(row[1], float(row[2]), int(row[4])) for row in rows if row]
alone = [(int(row[3]) / 1024, 100 - float(row[2])) for row in rows if row]
if not points:
    sys.exit(f"{sys.argv[1]} has no table of bytes: run docs/results/deep.sh without EPOCHS")
figure, axes = plt.subplots(figsize=(7, 4.2))
axes.plot([b / 1024 for *_, b in points], [100 - a for _, a, _ in points], "o-", label="Tamis, 8-bit integers, model and code")
axes.plot(*zip(*alone), ":", color="C0", label="Tamis, model alone")
# The second and the last ones are close to others.
left = {"xytext": (-6, -6), "ha": "right", "va": "top"}
places = [{"xytext": (6, 5)}] * (len(points) - 3)
places[1] = {"xytext": (-6, -24), "ha": "right"}
places += [left, {"xytext": (4, -8), "va": "top"}, {"xytext": (8, 0)}]
for (nnz, right, size), place in zip(points, places):
    axes.annotate(f"{nnz} weights\n{right:.2f} %", (size / 1024, 100 - right), textcoords="offset points", fontsize=8, **place)
axes.plot([12.3e3 / 1024], [100 - 99.02], "s", color="C3", label="BitNetMCU, as published: 99.02 %")
axes.plot([4512 / 4 / 1024], [100 - 94.22], "s", color="C3", fillstyle="none", label="BitNetMCU, as published: 94.22 %, weights alone")
axes.set(xscale="log", yscale="log", xlabel="KiB of flash, Cortex-M4F", ylabel="test rows wrong, %", title="MNIST by bytes of flash")
axes.set(xlim=(0.6, 32), ylim=(0.5, 14))
axes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
axes.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.legend(fontsize=8)
figure.tight_layout()
figure.savefig(sys.argv[2], metadata={"Date": None})
