"""Runs every program on all test rows in QEMU and prints the table, as Markdown.

usage: measure.py WORK DATA SPARSE DENSE LEAST      (called by run.sh)

Each program must print the classes that the host gives. For integers one other class ends the script; for floats, whose sums
are rounded in other orders, and for MicroFlow, which rounds in floats, the rows that differ are counted in the table.
"""
import os
import re
import subprocess
import sys

# Name, image, the image of its language that does nothing, classes of the host, whether some may differ.
TAMIS, DENSE = "tamis", "dense"
ENGINES = [
    ("Tamis, int8, code without tables", TAMIS, "rust-tamis-straight", "tamis_int8", False),
    ("Tamis, int8, tables, Rust", TAMIS, "rust-tamis-int8", "tamis_int8", False),
    ("Tamis, int8, tables, C", TAMIS, "c-tamis-int8", "tamis_int8", False),
    ("Tamis, int8, model file", TAMIS, "rust-tamis-file", "tamis_int8", False),
    ("Tamis, f32, tables, Rust", TAMIS, "rust-tamis-f32", "tamis_f32", False),
    ("CMSIS-NN, int8", DENSE, "c-cmsis-int8", "dense_int8", False),
    ("embedded-nn, int8", DENSE, "rust-embedded-nn", "dense_int8", False),
    ("MicroFlow, int8", DENSE, "rust-microflow", "dense_int8", True),
    ("emlearn, f32, loadable (its default)", DENSE, "c-emlearn-loadable", "emlearn_loadable", True),
    ("emlearn, f32, inline", DENSE, "c-emlearn-inline", "emlearn_inline", True),
    ("plain loops, int8, C", DENSE, "c-dense-int8", "dense_sums", False),
    ("plain loops, int8, Rust", DENSE, "rust-dense-int8", "dense_sums", False),
    ("plain loops, f32, C", DENSE, "c-dense-f32", "dense_f32", True),
    ("plain loops, f32, Rust", DENSE, "rust-dense-f32", "dense_f32", True),
]
REFERENCE = "rust-tamis-int8"
LIMIT = 1800


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


def run(work, image):
    """Its classes, the instructions of every row, bytes of flash, static data and stack."""
    path, counts = f"{work}/images/{image}", f"{work}/images/{image}.counts"
    flash, static, heap, top = memory(path)
    qemu = ["qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-serial", "null", "-monitor", "none"]
    qemu += ["-semihosting-config", "enable=on,target=native"]
    qemu += ["-plugin", f"{work}/insncount.so,out={counts},floor={heap:#x}"]
    qemu += ["-device", f"loader,file={work}/test.bin,addr=0x21000000,force-raw=on", "-kernel", path]
    done = subprocess.run(qemu, check=True, capture_output=True, text=True, timeout=LIMIT)
    text = open(counts).read()
    instructions = [int(n) for n in re.findall(r"insns=(\d+)", text)]
    stack = top - int(re.search(r"lowest=(\d+)", text)[1])
    return done.stdout + done.stderr, instructions, flash, static, stack


def lines(work, labels):
    """One line per engine: name, model, mean and most instructions, flash, RAM, accuracy, rows that differ."""
    # The call between the markers is a part of every engine, so only the memory of a program that does nothing counts off.
    nothing = {language: run(work, f"{language}-none") for language in ["c", "rust"]}
    for name, model, image, host, loose in ENGINES:
        if not os.path.exists(f"{work}/images/{image}"):
            yield name, model, image, None
            continue
        classes, instructions, flash, static, stack = run(work, image)
        expected = open(f"{work}/{host}.txt").read()
        if len(classes) != len(labels) or len(instructions) != len(labels):
            sys.exit(f"{image}: {len(classes)} classes and {len(instructions)} counts for {len(labels)} rows")
        differ = sum(a != b for a, b in zip(classes, expected, strict=True))
        if differ and not loose:
            sys.exit(f"{image}: {differ} rows have another class than on the host")
        none = nothing[image.split("-")[0]]
        right = sum(a == b for a, b in zip(classes, labels)) / len(labels)
        mean = sum(instructions) / len(instructions)
        ram = max(0, static - none[3]) + max(0, stack - none[4])
        yield name, model, image, (mean, max(instructions), flash - none[2], ram, right, differ)
        print(f"{name}: {mean:.0f} instructions", file=sys.stderr)


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


def main(work, data, sparse, dense, least):
    labels = "".join(str(b) for b in open(f"{work}/labels.bin", "rb").read())
    nonzeros, neurons, *of_sparse = sparse.split()
    hidden, *of_dense = dense.split()
    measured = list(lines(work, labels))
    base = next(result for _, _, image, result in measured if image == REFERENCE)
    packages = re.findall(r"^(\w+)==(\S+)", open("tests/peers/requirements.txt").read(), re.M)
    commit = output("git", "rev-parse", "--short", "HEAD").strip()
    if output("git", "status", "--porcelain", "core", "host", "tests/peers"):
        commit += " with changes"
    in_sparse, in_dense = ([f"{100 * float(part):.2f} %" for part in parts] for parts in (of_sparse, of_dense))
    print(f"""# Tamis and other engines on a Cortex-M4F

Made by `cargo build --release && tests/peers/run.sh` at commit {commit}.
Data: {data}.

Each side has the smallest network of a list of sizes, one seed, that reaches {100 * float(least):g} % of the test rows with floats and with 8-bit
integers: Tamis {nonzeros} nonzeros on {neurons} neurons (recipe `anneal`: {in_sparse[0]} with floats, {in_sparse[1]} with integers), the others a
dense 784-{hidden}-10 (`tamis train --recipe imp` with nothing pruned, 40 epochs of Adam: {in_dense[0]} and {in_dense[1]}). Networks
have no biases. Sizes were chosen by the test rows, on both sides alike. Every program classified all test rows in QEMU.

Instructions are of one row, mean and most over all rows, exactly counted by `tests/plugin/insncount.c`; they are not cycles.
Bringing a byte to what an engine takes (a float, or a byte less 128) is not counted for anybody. Flash is that of the image, RAM
static data and the deepest stack, both less those of a program that predicts nothing; the row itself is not counted. Ratios are
to Tamis's tables in Rust. "Differ" counts rows with another class than on the host.

| engine | network | instructions | most | ratio | flash, bytes | ratio | RAM, bytes | accuracy | differ |
|---|---|---|---|---|---|---|---|---|---|""")
    network = {TAMIS: f"{nonzeros} nonzeros", DENSE: f"784-{hidden}-10"}
    for name, model, image, result in measured:
        if result is None:
            continue
        mean, most, flash, ram, right, differ = result
        cells = [name, network[model], number(mean), number(most), f"{mean / base[0]:.2f}", number(flash)]
        print_row(*cells, f"{flash / base[2]:.2f}", number(ram), f"{100 * right:.2f} %", differ)
    skipped = [line.split("|") for line in open(f"{work}/skipped.txt").read().splitlines()]
    for name, reason in skipped:
        print_row(name, "", f"SKIPPED({reason})", *[""] * 7)
    of_cmsis = {image: result for _, _, image, result in measured}["c-cmsis-int8"]
    cmsis = (of_cmsis[0], of_cmsis[2]) if of_cmsis else next(quoted(int(hidden)))[1:3]
    how = "" if of_cmsis else " (quoted)"
    emlearn = {image: result for _, _, image, result in measured}["c-emlearn-loadable"]
    print(f"""
How many times less Tamis takes than CMSIS-NN int8{how} and emlearn:

| Tamis | instructions, CMSIS-NN | flash, CMSIS-NN | instructions, emlearn | flash, emlearn |
|---|---|---|---|---|""")
    for name, model, _, result in measured:
        if model == TAMIS:
            mean, flash = result[0], result[2]
            ratios = [cmsis[0] / mean, cmsis[1] / flash, emlearn[0] / mean, emlearn[2] / flash]
            print_row(name, *(f"{ratio:.1f}" for ratio in ratios))
    if any(name.startswith("CMSIS") for name, _ in skipped):
        print(f"""
## Quoted, not measured here

From measurements made for this project elsewhere, in QEMU with exact counts, of 784-10-10, 784-32-10 and 784-100-10. Instructions for
784-{hidden}-10 lie on the line between the two sizes around it (the line through the first two gives 784-100-10 to 1 %); flash is the
code that was measured, and weights and biases of {hidden} neurons; RAM is that of 784-32-10.

| engine | network | instructions | ratio | flash, bytes | ratio | RAM, bytes |
|---|---|---|---|---|---|---|""")
        for name, instructions, flash, ram in quoted(int(hidden)):
            cells = [name, f"784-{hidden}-10", number(instructions), f"{instructions / base[0]:.2f}", number(flash)]
            print_row(*cells, f"{flash / base[2]:.2f}", number(ram))
    print(f"""
## Versions

{output("arm-none-eabi-gcc", "--version").splitlines()[0]}, `-O2` (CMSIS-NN `-O3`);
{output("rustc", "--version").strip()}, `opt-level = 3`, fat LTO;
{output("qemu-system-arm", "--version").splitlines()[0]}, mps2-an386. {", ".join(" ".join(package) for package in packages)};
{", ".join(version(crate) for crate in ["embedded-nn", "microflow", "microflow-macros"])}.""")


main(*sys.argv[1:])
