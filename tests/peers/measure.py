"""Runs every program on all test rows in QEMU and prints the tables, as Markdown.

usage: measure.py WORK DATA FLAGS      (called by run.sh; FLAGS are those of all programs in C)

Each program must print the classes that the host gives. For integers one other class ends the script; for floats, whose sums
are rounded in other orders, and for MicroFlow, which rounds in floats, the rows that differ are counted in the table.
"""
import json
import os
import re
import statistics
import subprocess
import sys

# Name, network, image, classes of the host, whether some may differ, what it is built with.
TAMIS, DENSE = "sparse", "dense"
RUST, C = "rustc, opt-level 3", "gcc -O2"
ENGINES = [
    ("Tamis, int8, code without tables", TAMIS, "rust-tamis-straight", "tamis_int8", False, RUST),
    ("Tamis, int8, tables, Rust", TAMIS, "rust-tamis-int8", "tamis_int8", False, RUST),
    ("Tamis, int8, tables, C", TAMIS, "c-tamis-int8", "tamis_int8", False, C),
    ("Tamis, int8, model file", TAMIS, "rust-tamis-file", "tamis_int8", False, RUST),
    ("Tamis, f32, tables, Rust", TAMIS, "rust-tamis-f32", "tamis_f32", False, RUST),
    ("CMSIS-NN, int8", DENSE, "c-cmsis-int8", "dense_int8", False, "gcc -O3"),
    ("embedded-nn, int8", DENSE, "rust-embedded-nn", "dense_int8", False, RUST),
    ("MicroFlow, int8", DENSE, "rust-microflow", "dense_int8", True, RUST),
    ("emlearn, f32, loadable (its default)", DENSE, "c-emlearn-loadable", "emlearn_loadable", True, C),
    ("emlearn, f32, inline", DENSE, "c-emlearn-inline", "emlearn_inline", True, C),
    ("plain loops, int8, C", DENSE, "c-dense-int8", "dense_sums", False, C),
    ("plain loops, int8, Rust", DENSE, "rust-dense-int8", "dense_sums", False, RUST),
    ("plain loops, f32, C", DENSE, "c-dense-f32", "dense_f32", True, C),
    ("plain loops, f32, Rust", DENSE, "rust-dense-f32", "dense_f32", True, RUST),
]
PICTURES = {"full": 784, "pooled": 196}
REFERENCE = "rust-tamis-int8"
LIMIT = 7200
QEMU = os.environ.get("QEMU", "qemu-system-arm")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def memory(image):
    """Bytes of flash, of static data, and the two addresses between which the stack grows."""
    sizes = dict.fromkeys([".vector_table", ".text", ".rodata", ".data", ".bss"], 0)
    for name, size in re.findall(r"^(\.\w+)\s+(\d+)", output("arm-none-eabi-size", "-A", image), re.M):
        if name in sizes:
            sizes[name] = int(size)
    names = re.findall(r"^(\w+) \w (\w+)$", output("arm-none-eabi-nm", image), re.M)
    symbols = {name: int(at, 16) for at, name in names}
    static = sizes[".data"] + sizes[".bss"]
    return sum(sizes.values()) - sizes[".bss"], static, symbols["__sheap"], symbols["_stack_start"]


def emulated(image, rows, *flags):
    """The classes that an image prints of a file of rows."""
    qemu = [QEMU, "-M", "mps2-an386", "-display", "none", "-serial", "null", "-monitor", "none"]
    qemu += ["-semihosting-config", "enable=on,target=native", *flags]
    qemu += ["-device", f"loader,file={rows},addr=0x21000000,force-raw=on", "-kernel", image]
    done = subprocess.run(qemu, check=True, capture_output=True, text=True, timeout=LIMIT)
    return done.stdout + done.stderr


def run(work, pictures, image):
    """Its classes, the instructions of every row, bytes of flash, static data and stack."""
    path = f"{work}/{pictures}/images/{image}"
    counts = f"{path}.counts"
    flash, static, heap, top = memory(path)
    classes = emulated(path, f"{work}/test.bin", "-plugin", f"{work}/insncount.so,out={counts},floor={heap:#x}")
    text = open(counts).read()
    instructions = [int(n) for n in re.findall(r"insns=(\d+)", text)]
    if pictures == "pooled":
        # Averaging, and the engine.
        instructions = [sum(pair) for pair in zip(instructions[::2], instructions[1::2], strict=True)]
    stack = top - int(re.search(r"lowest=(\d+)", text)[1])
    return classes, instructions, flash, static, stack


def measured(work, pictures, labels):
    """For each image: mean and most instructions, flash, RAM, accuracy, rows that differ; None where there is no image."""
    # The call between the markers is a part of every engine, so only the memory of a program that does nothing counts off.
    nothing = {language: run(work, pictures, f"{language}-none") for language in ["c", "rust"]}
    results = {}
    for name, _, image, host, loose, _ in ENGINES:
        results[image] = None
        if not os.path.exists(f"{work}/{pictures}/images/{image}"):
            continue
        classes, instructions, flash, static, stack = run(work, pictures, image)
        expected = open(f"{work}/{pictures}/{host}.txt").read()
        if len(classes) != len(labels) or len(instructions) != len(labels):
            sys.exit(f"{image}: {len(classes)} classes and {len(instructions)} counts for {len(labels)} rows")
        differ = sum(a != b for a, b in zip(classes, expected, strict=True))
        if differ and not loose:
            sys.exit(f"{image}: {differ} rows have another class than on the host")
        none = nothing[image.split("-")[0]]
        right = sum(a == b for a, b in zip(classes, labels)) / len(labels)
        mean = sum(instructions) / len(instructions)
        ram = max(0, static - none[3]) + max(0, stack - none[4])
        results[image] = (mean, max(instructions), flash - none[2], ram, right, differ)
        print(f"{pictures}, {name}: {mean:.0f} instructions", file=sys.stderr)
    return results


# Dense engines as measured elsewhere: instructions for 784-10-10, 784-32-10 and 784-100-10, bytes of code, bytes of RAM at 32.
QUOTED = [
    ("CMSIS-NN 7.0 int8, -O3", (16323, 50091, 154688), 4304, 532),
    ("CMSIS-NN 7.0 f32, -O3", (40366, 128125, 399377), 1126, 448),
    ("TensorFlow Lite Micro with CMSIS-NN, int8", (16900, 50671, 155288), 30634, 2432),
]


def quoted(hidden):
    """Between the sizes that were measured instructions are linear in the neurons; weights are counted."""
    floats, ints = 4 * (794 * hidden + 10 + hidden), 794 * hidden + 4 * (hidden + 10)
    for name, (ten, thirty_two, hundred), code, ram in QUOTED:
        low, high, a, b = (10, 32, ten, thirty_two) if hidden <= 32 else (32, 100, thirty_two, hundred)
        yield name, a + (b - a) * (hidden - low) / (high - low), code + (floats if "f32" in name else ints), ram


def number(value):
    return f"{value:,.0f}".replace(",", " ")


def print_row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def version(crate):
    text = open("tests/peers/rust/Cargo.lock").read()
    return crate + " " + re.search(rf'name = "{crate}"\nversion = "([^"]+)"', text)[1]


def described(network, inputs, chosen):
    """What a network is: of Tamis's what it has after rounding, which may be less than was asked for."""
    if network == DENSE:
        return f"{inputs}-{chosen['size']}-10, dense"
    left = chosen["left"]
    return f"{inputs}-{left['neurons']}-10, {left['nonzeros']} nonzeros"


def percent(values):
    spread = f" ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.2f}{spread}"


def networks(chosen):
    print("| pictures | network | validation, int8 | test, f32 | test, int8 | size asked for | seed measured |")
    print("|---|---|---|---|---|---|---|")
    for pictures, inputs in PICTURES.items():
        for network in [TAMIS, DENSE]:
            of = chosen[pictures][network]
            floats, integers = zip(*of["test"])
            cells = [pictures, described(network, inputs, of), f"{100 * of['validation'][1]:.2f}"]
            print_row(*cells, percent(floats), percent(integers), of["size"].replace(",", " on "), of["seed"])


def engines(pictures, chosen, results, skipped):
    base = results[REFERENCE]
    print(f"""
## {"Full pictures, 784 inputs" if pictures == "full" else "Averaged over 2x2 pixels, 196 inputs"}

| engine | network | built with | instructions | most | ratio | flash, bytes | ratio | RAM, bytes | accuracy | differ |
|---|---|---|---|---|---|---|---|---|---|---|""")
    for name, network, image, _, _, flags in ENGINES:
        if results[image] is None:
            continue
        mean, most, flash, ram, right, differ = results[image]
        what = described(network, PICTURES[pictures], chosen[network])
        cells = [name, what, flags, number(mean), number(most), f"{mean / base[0]:.2f}", number(flash)]
        print_row(*cells, f"{flash / base[2]:.2f}", number(ram), f"{100 * right:.2f} %", differ)
    for name, reason in skipped:
        print_row(name, "", "", f"SKIPPED({reason})", *[""] * 7)


def leads(pictures, chosen, results):
    """How many times less Tamis takes than others, at the accuracy of the table of networks."""
    rows = [(name, results[image]) for name, _, image, *_ in ENGINES if results[image]]
    others = [(name, result) for name, result in rows if name.startswith(("CMSIS", "emlearn"))]
    if pictures == "full" and not results["c-cmsis-int8"]:
        name, instructions, flash, _ = next(quoted(int(chosen[DENSE]["size"])))
        others.insert(0, (f"{name} (quoted)", (instructions, None, flash)))
    best = min((row for row in rows if row[0].startswith("plain loops, int8")), key=lambda row: row[1][0])
    others.append(best)
    print("\nHow many times less Tamis takes, instructions and flash:\n")
    print_row("Tamis", *(name for name, _ in others))
    print("|---" * (len(others) + 1) + "|")
    for name, result in rows:
        if name.startswith("Tamis"):
            ratios = (f"{other[0] / result[0]:.1f}, {other[2] / result[2]:.1f}" for _, other in others)
            print_row(name, *ratios)


def main(work, data, flags):
    labels = "".join(str(b) for b in open(f"{work}/labels.bin", "rb").read())
    chosen = {pictures: json.load(open(f"{work}/{pictures}/chosen.json")) for pictures in PICTURES}
    results = {pictures: measured(work, pictures, labels) for pictures in PICTURES}
    packages = re.findall(r"^(\w+)==(\S+)", open("tests/peers/requirements.txt").read(), re.M)
    commit = output("git", "rev-parse", "--short", "HEAD").strip()
    if output("git", "status", "--porcelain", "core", "host", "tests/peers"):
        commit += " with changes"
    skipped = [line.split("|") for line in open(f"{work}/skipped.txt").read().splitlines()]
    print(f"""# Tamis and other engines on a Cortex-M4F

Made by `cargo build --release && tests/peers/run.sh` at commit {commit}.
Data: {data}.

The other engines run the smallest dense network of a list of sizes whose mean validation accuracy over {len(chosen["full"]["dense"]["test"])} seeds reaches
{100 * chosen["full"]["least"]:g} % with floats and with 8-bit integers (`tamis train --recipe imp` with nothing pruned, 40 epochs of Adam). Tamis runs
the smallest sparse one that reaches what that dense network did (recipe `anneal`, default settings), so it is compared at an
equal or better validation accuracy. Test rows choose nothing. Networks have no biases. Of the seeds the one in the middle is
measured; a sparse network has what is left after rounding. Accuracies are in per cent, mean and standard deviation of the seeds.
""")
    networks(chosen)
    print(f"""
Every program classified all test rows in QEMU. Instructions are of one row, mean and most over all rows, exactly counted by
`tests/plugin/insncount.c`; they are not cycles. Bringing a byte to what an engine takes (a float, or a byte less 128) is not
counted for anybody; averaging 2x2 pixels is, for everybody, by a plain loop in the engine's language. Flash is that of the image,
RAM static data and the deepest stack, both less those of a program that predicts nothing; the row itself is not counted, nor
are its 196 averages. Ratios are to Tamis's tables in Rust. "Differ" counts rows with another class than on the host.""")
    for pictures in PICTURES:
        engines(pictures, chosen[pictures], results[pictures], skipped)
        leads(pictures, chosen[pictures], results[pictures])
    if any(name.startswith("CMSIS") for name, _ in skipped):
        hidden, base = int(chosen["full"]["dense"]["size"]), results["full"][REFERENCE]
        print(f"""
## Quoted, not measured here

From measurements made for this project elsewhere, in QEMU with exact counts, of 784-10-10, 784-32-10 and 784-100-10. Instructions for
784-{hidden}-10 lie on the line between the two sizes around it (the line through the first two gives 784-100-10 to 1 %, and
784-16-10 was measured since: 25 471 for 25 532); flash is the code that was measured, and weights and biases of {hidden} neurons;
RAM is that of 784-32-10. Averaged pictures, 196-16-10 in CMSIS-NN int8: 10 144 instructions with averaging counted.

| engine | network | instructions | ratio | flash, bytes | ratio | RAM, bytes |
|---|---|---|---|---|---|---|""")
        for name, instructions, flash, ram in quoted(hidden):
            cells = [name, f"784-{hidden}-10", number(instructions), f"{instructions / base[0]:.2f}", number(flash)]
            print_row(*cells, f"{flash / base[2]:.2f}", number(ram))
    flags = " ".join(flag for flag in flags.split() if not flag.startswith(("-I", "-T", "-W", "tests/", "/")))
    print(f"""
## Versions

{output("arm-none-eabi-gcc", "--version").splitlines()[0]} with newlib, `{flags}` and what the tables say;
{output("rustc", "--version").strip()}, `opt-level = 3`, fat LTO, one codegen unit;
{output(QEMU, "--version").splitlines()[0]}, mps2-an386. {", ".join(" ".join(package) for package in packages)};
{", ".join(version(crate) for crate in ["embedded-nn", "microflow", "microflow-macros"])}.""")


if __name__ == "__main__":
    main(*sys.argv[1:])
