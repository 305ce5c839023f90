#!/bin/sh
# Runs two figures and the checks of the theory with the profile `reduced` and reports them into docs/results/experiments. Needs
# the folder of data as its argument, with mnist/ in it. Results that are there are gone on with; remove docs/results/experiments
# to begin anew.
set -eu
data=${1:?"usage: docs/results/experiments.sh DATA"}
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p tamis-host
out=docs/results/experiments
names="figure-3-left runtimes theory-assumption theory-curvature theory-convergence theory-sensing"
folders=
for name in $names; do
    target/release/tamis run "$name" --profile reduced --data-dir "$data" -o "$out/$name" --quiet
    # The merged results are all that is kept.
    rm -r "$out/$name/cells"
    folders="$folders $out/$name"
done
# shellcheck disable=SC2086
target/release/tamis report $folders -o "$out" --quiet
