#!/bin/sh
# Runs the experiments whose summary tables are docs/results/NAME.md, all of them or those that are named, and writes these. Needs
# the folder of data, with mnist/ and cifar/ in it. Times count, so nothing else should run; `recovery` takes an hour or
# two, `frontier` half an hour, `heap` a quarter, the others minutes. Results are kept in target/tables, and gone on with.
set -eu
data=${1:?"usage: docs/results/tables.sh DATA [NAME...]"}
shift
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p tamis-host
for name in ${*:-lm-recipe frontier lm-vector two-layers paper-recipe images binary multiclass memory heap recovery}; do
    threads=0
    case $name in paper-recipe | heap) threads=1 ;; esac
    target/release/tamis run "$name" --data-dir "$data" -o "target/tables/$name" --update --threads "$threads" --quiet
    target/release/tamis report "target/tables/$name" -o "docs/results/$name.md" --quiet
    if [ "$name" = frontier ]; then
        # The phase diagrams.
        target/release/tamis report "target/tables/$name" -o target/tables/report --quiet
        mkdir -p docs/results/frontier
        for part in recipe before; do
            cp "target/tables/report/frontier-$part-recipe.svg" "docs/results/frontier/$part.svg"
        done
    fi
done
