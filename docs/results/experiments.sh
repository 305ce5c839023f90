#!/bin/sh
# Runs two experiments with the profile `reduced` and reports them into docs/results/experiments. Needs the folder of data as its
# argument, with mnist/ in it. Results that are there are gone on with; remove docs/results/experiments to begin anew.
set -eu
data=${1:?"usage: docs/results/experiments.sh DATA"}
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p tamis-host
out=docs/results/experiments
for name in figure-3-left runtimes; do
    target/release/tamis run "$name" --profile reduced --data-dir "$data" -o "$out/$name" --quiet
    # The merged results are all that is kept.
    rm -r "$out/$name/cells"
done
target/release/tamis report "$out/figure-3-left" "$out/runtimes" -o "$out" --quiet
