#!/usr/bin/env bash
# Measures Tamis and other engines on a Cortex-M4F in QEMU, on the same rows and at the same accuracy; makes
# docs/results/peers.md.
# usage: cargo build --release && tests/peers/run.sh [folder-of-the-four-files-of-MNIST]       (default ../shared/data/mnist)
#
# Without the folder it draws digits instead. It needs python3, qemu-system-arm, cc, arm-none-eabi-gcc, the target
# thumbv7em-none-eabihf, and once a network for emlearn and the crates of tests/peers/rust; what it cannot have it says in
# the table. Nothing of it runs in continuous integration.
#
# CMSIS_NN=FOLDER is a checkout of CMSIS-NN 7.0.0; without it one is cloned, and where that fails figures are quoted.
# LEAST=0.95 is the test accuracy that all must reach, WORK=FOLDER (default target/peers) where everything is built.
set -euo pipefail
cd "$(dirname "$0")/../.."
mnist=$(realpath -m "${1:-../shared/data/mnist}")
work=$(realpath -m "${WORK:-target/peers}")
tamis=$(realpath "${TAMIS:-target/release/tamis}")
least=${LEAST:-0.95}
mkdir -p "$work"
skips=$work/skipped.txt
: > "$skips"
skip() { echo "$1|$2" | tee -a "$skips" >&2; }

# Python, with emlearn and what writes TensorFlow Lite files.
python=$work/venv/bin/python
[ -x "$python" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --requirement tests/peers/requirements.txt
CC_ARM=${CC_ARM:-arm-none-eabi-gcc}
command -v "$CC_ARM" > /dev/null || { echo "no $CC_ARM: on Debian, apt-get install gcc-arm-none-eabi" >&2; exit 1; }

# Rows.
if [ -f "$mnist/t10k-images-idx3-ubyte.gz" ]; then
    data="MNIST, 60 000 rows to train and the official 10 000 to test"
else
    data="digits drawn by \`tamis generate digits\`, 20 000 rows to train and 10 000 to test (no MNIST was there)"
    mnist=$work/digits
    "$tamis" generate digits --samples 20000 --side 28 --seed 1 --quiet -o "$mnist/train"
    "$tamis" generate digits --samples 10000 --side 28 --seed 2 --quiet -o "$mnist/test"
fi
"$python" tests/peers/data.py "$mnist" "$work"
train=(--data "$work/train_x.npy" --labels "$work/train_y.npy")
test=(--data "$work/test_x.npy" --labels "$work/test_y.npy")
accuracy() {
    "$tamis" eval "$1" "${test[@]}" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["accuracy"])'
}
enough() { awk -v least="$least" '{ exit !($1 >= least && $2 >= least) }' <<< "$1 $2"; }

# The smallest of each kind whose floats and integers both reach the accuracy; if none does, the last.
for cell in ${SPARSE:-300,18 400,22 500,25 600,27 700,29 800,31 1000,35}; do
    s=${cell%,*} m=${cell#*,}
    "$tamis" train "${train[@]}" --task multiclass --hidden "$m" --nnz "$s" --validation 0 --quiet -o "$work/tamis_f32.tamis"
    "$tamis" quantize "$work/tamis_f32.tamis" --data "$work/train_x.npy" --encoding fastest --quiet \
        -o "$work/tamis_int8.tamis"
    got=$(accuracy "$work/tamis_f32.tamis")" "$(accuracy "$work/tamis_int8.tamis")
    echo "Tamis, s = $s, m = $m: $got"
    sparse="$s $m $got"
    # shellcheck disable=SC2086
    enough $got && break
done
for m in ${DENSE:-8 10 12 14 16 18 20 24 28 32 40}; do
    "$tamis" train "${train[@]}" --task multiclass --recipe imp --hidden "$m" --nnz $((m * 794)) --epochs 40 --quiet \
        -o "$work/dense.tamis"
    "$tamis" export "$work/dense.tamis" --format safetensors --quiet -o "$work/dense.safetensors"
    got=$("$python" tests/peers/dense.py score "$work")
    echo "dense, m = $m: $got"
    dense="$m $got"
    # shellcheck disable=SC2086
    enough $got && break
done
"$python" tests/peers/dense.py write "$work"

# Tamis's models as code, and what the host predicts.
floats=$work/tamis_floats.tamis
"$tamis" export "$work/tamis_f32.tamis" --format tamis --encoding fastest --quiet -o "$floats"
"$tamis" export "$floats" --format rust --quiet -o "$work/tamis_f32.rs"
"$tamis" export "$work/tamis_int8.tamis" --format rust --quiet -o "$work/tamis_int8.rs"
"$tamis" export "$work/tamis_int8.tamis" --format rust --straight-line --quiet -o "$work/tamis_straight.rs"
"$tamis" export "$work/tamis_int8.tamis" --format c --quiet -o "$work/tamis_int8.c"
for kind in f32 int8; do
    "$tamis" predict "$work/tamis_$kind.tamis" --data "$work/test_x.npy" --quiet -o "$work/classes.npy"
    "$python" -c 'import numpy, sys; print(end="".join(str(int(c)) for c in numpy.load(sys.argv[1])[:, 0]))' \
        "$work/classes.npy" > "$work/tamis_$kind.txt"
done

# Programs in Rust.
images=$work/images
rm -rf "$images"
mkdir -p "$images"
PEERS=$work cargo build --release --locked --manifest-path tests/peers/rust/Cargo.toml --target thumbv7em-none-eabihf \
    --target-dir "$work/target" --bins
for program in tests/peers/rust/src/bin/*.rs; do
    name=$(basename "$program" .rs)
    cp "$work/target/thumbv7em-none-eabihf/release/$name" "$images/rust-$name"
done

# Programs in C.
flags=(-std=c11 -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffunction-sections -fdata-sections -ffreestanding
    -nostartfiles -Wl,--gc-sections -Wl,--nmagic -T tests/peers/c/part.ld -I tests/peers/c -I "$work" -Wno-unused)
eml=$("$python" -c 'import emlearn, os; print(os.path.dirname(emlearn.__file__))')
c() {
    local name=$1
    shift
    "$CC_ARM" "${flags[@]}" -O2 "$@" tests/peers/c/part.c -lm -o "$images/c-$name"
}
c none tests/peers/c/none.c
c dense-f32 tests/peers/c/dense_f32.c
c dense-int8 tests/peers/c/dense_int8.c
c tamis-int8 tests/peers/c/tamis.c "$work/tamis_int8.c"
for way in loadable inline; do
    [ -f "$work/emlearn_$way.h" ] || continue
    c emlearn-$way -D${way^^} -I "$eml" tests/peers/c/emlearn.c
    cc -O2 -ffp-contract=off -w -D${way^^} -I tests/peers/c -I "$work" -I "$eml" tests/peers/c/emlearn.c \
        tests/peers/c/host.c -lm -o "$work/host"
    "$work/host" "$work/test.bin" > "$work/emlearn_$way.txt"
done
if grep -q 'FIXME: implement' "$eml/eml_net_fixedpoint.h"; then
    skip "emlearn, integers" \
        'its layer of integers has no body: eml_net_forward_q16 of eml_net_fixedpoint.h says "FIXME: implement"'
fi
cmsis=${CMSIS_NN:-$work/CMSIS-NN}
[ -d "$cmsis" ] || timeout 60 git clone --quiet --depth 1 --branch v7.0.0 https://github.com/ARM-software/CMSIS-NN \
    "$cmsis" 2> "$work/clone.log" || true
if [ -d "$cmsis/Source" ]; then
    c cmsis-int8 -O3 -I "$cmsis/Include" tests/peers/c/cmsis.c \
        "$cmsis/Source/FullyConnectedFunctions/arm_fully_connected_s8.c" \
        "$cmsis/Source/NNSupportFunctions/arm_nn_vec_mat_mult_t_s8.c"
else
    skip "CMSIS-NN, int8" "its repository cannot be cloned from here: $(tail -n 1 "$work/clone.log"); the crate cmsis-nn-rs has bindings without the sources"
fi

cc -O2 -fPIC -shared -fvisibility=hidden tests/plugin/insncount.c -o "$work/insncount.so"
"$python" tests/peers/measure.py "$work" "$data" "$sparse" "$dense" "$least" > "$work/peers.md"
cp "$work/peers.md" docs/results/peers.md
cat docs/results/peers.md
