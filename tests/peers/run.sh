#!/usr/bin/env bash
# Measures Tamis and other engines on a Cortex-M4F in QEMU, on the same rows and at an equal or better accuracy; makes
# docs/results/peers.md.
# usage: cargo build --release && tests/peers/run.sh [folder-of-the-four-files-of-MNIST]       (default ../shared/data/mnist)
#
# Without the folder it draws digits instead. It needs python3, qemu-system-arm, cc, arm-none-eabi-gcc with newlib, the target
# thumbv7em-none-eabihf, and once a network for emlearn and the crates of tests/peers/rust; what it cannot have it says in
# the table. Nothing of it runs in continuous integration. Training takes an hour on two cores; models that are there already
# are not trained again.
#
# CMSIS_NN=FOLDER is a checkout of CMSIS-NN 7.0.0; without it one is cloned, and where that fails figures are quoted.
# LEAST=0.95 is the validation accuracy that all must reach, SEEDS=5 the number of seeds, WORK=FOLDER (default target/peers)
# where everything is built, QEMU=PROGRAM the emulator; SPARSE and DENSE name other sizes (see choose.py).
set -euo pipefail
cd "$(dirname "$0")/../.."
mnist=$(realpath -m "${1:-../shared/data/mnist}")
work=$(realpath -m "${WORK:-target/peers}")
tamis=$(realpath "${TAMIS:-target/release/tamis}")
export QEMU=${QEMU:-qemu-system-arm}
mkdir -p "$work"
skips=$work/skipped.txt
: > "$skips"
skip() { echo "$1|$2" | tee -a "$skips" >&2; }

# Python, with emlearn and what writes TensorFlow Lite files.
python=$work/venv/bin/python
[ -x "$python" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --requirement tests/peers/requirements.txt
CC_ARM=${CC_ARM:-arm-none-eabi-gcc}
echo '#include <string.h>' | "$CC_ARM" -E - > /dev/null 2>&1 ||
    { echo "no $CC_ARM with newlib: on Debian, apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi" >&2; exit 1; }
eml=$("$python" -c 'import emlearn, os; print(os.path.dirname(emlearn.__file__))')
cmsis=${CMSIS_NN:-$work/CMSIS-NN}
[ -d "$cmsis" ] || timeout 60 git clone --quiet --depth 1 --branch v7.0.0 https://github.com/ARM-software/CMSIS-NN \
    "$cmsis" 2> "$work/clone.log" || true
cc -O2 -pthread -fPIC -shared -fvisibility=hidden tests/plugin/insncount.c -o "$work/insncount.so"

# Rows and networks.
if [ -f "$mnist/t10k-images-idx3-ubyte.gz" ]; then
    data="MNIST; 50 000 rows to train, the last 10 000 of the official ones to choose by, the official 10 000 to test"
else
    data="digits drawn by \`tamis generate digits\`, 20 000 rows to train and choose by, 10 000 to test (no MNIST was there)"
    mnist=$work/digits
    "$tamis" generate digits --samples 20000 --side 28 --seed 1 --quiet -o "$mnist/train"
    "$tamis" generate digits --samples 10000 --side 28 --seed 2 --quiet -o "$mnist/test"
fi
"$python" tests/peers/data.py "$mnist" "$work"
OPENBLAS_NUM_THREADS=1 "$python" tests/peers/choose.py "$work" "$tamis" "${LEAST:-0.95}"

# What all programs in C are built with. Functions that the compiler knows, as memcpy, are inlined or newlib's.
read -r -d '' -a flags < tests/peers/c/flags || true
flags+=(-T tests/peers/c/part.ld -I tests/peers/c)
c() {
    local name=$1
    shift
    "$CC_ARM" "${flags[@]}" -I "$here" "-DINPUTS=$inputs" "$@" tests/peers/c/part.c -lm -o "$here/images/c-$name"
}

# The programs of one kind of pictures.
programs() {
    pictures=$1 inputs=$2 here=$work/$1
    rm -rf "$here/images"
    mkdir -p "$here/images"
    "$python" tests/peers/dense.py "$here"
    # Tamis's models as code, and what the host predicts.
    "$tamis" export "$here/tamis_f32.tamis" --format tamis --encoding fastest --quiet -o "$here/tamis_floats.tamis"
    "$tamis" export "$here/tamis_floats.tamis" --format rust --quiet -o "$here/tamis_f32.rs"
    "$tamis" export "$here/tamis_int8.tamis" --format rust --quiet -o "$here/tamis_int8.rs"
    "$tamis" export "$here/tamis_int8.tamis" --format rust --straight-line --quiet -o "$here/tamis_straight.rs"
    "$tamis" export "$here/tamis_int8.tamis" --format c --quiet -o "$here/tamis_int8.c"
    for kind in f32 int8; do
        "$tamis" predict "$here/tamis_$kind.tamis" --data "$here/test_x.npy" --quiet -o "$here/classes.npy"
        "$python" -c 'import numpy, sys; print(end="".join(str(int(c)) for c in numpy.load(sys.argv[1])[:, 0]))' \
            "$here/classes.npy" > "$here/tamis_$kind.txt"
    done
    PEERS=$here cargo build --release --locked --manifest-path tests/peers/rust/Cargo.toml \
        --target thumbv7em-none-eabihf --target-dir "$work/target" --bins
    for program in tests/peers/rust/src/bin/*.rs; do
        name=$(basename "$program" .rs)
        cp "$work/target/thumbv7em-none-eabihf/release/$name" "$here/images/rust-$name"
    done
    c none -O2 tests/peers/c/none.c
    c dense-f32 -O2 tests/peers/c/dense_f32.c
    c dense-int8 -O2 tests/peers/c/dense_int8.c
    c tamis-int8 -O2 tests/peers/c/tamis.c "$here/tamis_int8.c"
    for way in loadable inline; do
        [ -f "$here/emlearn_$way.h" ] || continue
        c emlearn-$way -O2 -D${way^^} -I "$eml" tests/peers/c/emlearn.c
        cc -O2 -ffp-contract=off -w -D${way^^} "-DINPUTS=$inputs" -I tests/peers/c -I "$here" -I "$eml" \
            tests/peers/c/emlearn.c tests/peers/c/host.c -lm -o "$here/host"
        "$here/host" "$work/test.bin" > "$here/emlearn_$way.txt"
    done
    [ -d "$cmsis/Source" ] || return 0
    c cmsis-int8 -O3 -I "$cmsis/Include" tests/peers/c/cmsis.c \
        "$cmsis/Source/FullyConnectedFunctions/arm_fully_connected_s8.c" \
        "$cmsis/Source/NNSupportFunctions/arm_nn_vec_mat_mult_t_s8.c"
}
programs full 784
programs pooled 196
if grep -q 'FIXME: implement' "$eml/eml_net_fixedpoint.h"; then
    skip "emlearn, integers" \
        'its layer of integers has no body: eml_net_forward_q16 of eml_net_fixedpoint.h says "FIXME: implement"'
fi
[ -d "$cmsis/Source" ] || skip "CMSIS-NN, int8" \
    "its repository cannot be cloned from here: $(tail -n 1 "$work/clone.log"); the crate cmsis-nn-rs has bindings without the sources"

"$python" tests/peers/measure.py "$work" "$data" "${flags[*]}" > "$work/peers.md"
cp "$work/peers.md" docs/results/peers.md
cat docs/results/peers.md
