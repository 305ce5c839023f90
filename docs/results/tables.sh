#!/bin/sh
# Runs the experiments whose summary tables are docs/results/NAME.md, all of them or those that are named, and writes these. Needs
# the folder of data, with mnist/ and cifar/ in it. Times count, so nothing else should run; `recovery` takes an hour or
# two, the others minutes. `prob` and `greedy` are of several experiments each. Results are kept in target/tables, and gone on with.
set -eu
data=${1:?"usage: docs/results/tables.sh DATA [NAME...]"}
shift
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p tamis-host
run() {
    target/release/tamis run "$1" --data-dir "$data" -o "target/tables/$1" --update --threads "$2" --quiet
}
for name in ${*:-prob greedy lm-recipe lm-vector two-layers paper-recipe images binary multiclass memory recovery}; do
    threads=0
    if [ "$name" = paper-recipe ]; then threads=1; fi
    case $name in
        prob) all="prob-table-2 prob-table-3 prob-exponents prob-lemmas" ;;
        greedy) all="greedy-figure-1 greedy-guarantee greedy-noise greedy-start" ;;
        *) all=$name ;;
    esac
    folders=
    for one in $all; do
        run "$one" "$threads"
        folders="$folders target/tables/$one"
    done
    # shellcheck disable=SC2086
    target/release/tamis report $folders -o "docs/results/$name.md" --quiet
done
