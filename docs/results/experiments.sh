#!/bin/sh
# Runs experiments, all of them or those that are named, and reports all that have results into docs/results/experiments.
# The profile is `reduced`, and `paper` for those of masks, of pruned networks, of matrix sensing and at equal time, whose summary tables are also
# docs/results/prob.md and greedy.md; of figures 1 left, 3 left and 3 right it is `paper`, all methods up to 200 neurons and, of larger networks,
# the published one and the default recipe; of figures 1 right and 2 it is `paper`, too, the method in the least memory up to 50 and 10 neurons, the
# others up to 200. Needs the folder of data, with mnist/, fashion/,
# cifar/ and covtype/ in it. All take about twenty-five hours on two cores. Results that are there are gone on with, and cells whose settings have
# changed run again; remove a folder to begin it anew.
set -eu
data=${1:?"usage: docs/results/experiments.sh DATA [NAME...]"}
shift
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p tamis-host
out=docs/results/experiments
all="figure-1-left figure-1-right figure-2-left figure-2-right figure-3-left figure-3-right figure-4 figure-5 runtimes references equal-time
    theory-assumption theory-curvature theory-coverage theory-convergence theory-sensing sketch-lemmas sketch-magnitudes
    sketch-masks prob-table-2 prob-table-3 prob-exponents prob-lemmas prob-covertype
    greedy-figure-1 greedy-guarantee greedy-noise greedy-start"
for name in ${*:-$all}; do
    profile=reduced threads=
    case $name in
    sketch-* | prob-* | greedy-*) profile=paper ;;
    # Seconds of one thread, on a machine that does nothing else.
    equal-time) profile=paper threads="--threads 1" ;;
    esac
    run() {
        # shellcheck disable=SC2086
        target/release/tamis run "$name" $threads --profile "$profile" --data-dir "$data" -o "$out/$name" --update --quiet "$@"
    }
    case $name in
    figure-1-left | figure-3-*)
        profile=paper
        run --most-neurons 200 --jobs 2
        run --methods paper,recipe --jobs 2
        ;;
    figure-1-right)
        profile=paper
        run --most-neurons 200 --methods paper,recipe,zero,mean,imp-published,imp-published-sum,imp,imp-sum --jobs 2
        run --most-neurons 50 --methods paper-least --jobs 2
        ;;
    figure-2-*)
        profile=paper
        run --most-neurons 200 --methods paper,paper-safe,recipe,zero,mean,imp-published,imp --jobs 2
        run --most-neurons 10 --methods paper-least --jobs 2
        ;;
    *) run ;;
    esac
    # The merged results are all that is kept.
    rm -rf "$out/$name/cells"
done
folders=
for name in $all; do
    if [ -e "$out/$name/results.jsonl" ]; then folders="$folders $out/$name"; fi
done
# shellcheck disable=SC2086
target/release/tamis report $folders -o "$out" --quiet
for page in prob greedy; do
    target/release/tamis report "$out/$page"-*/ -o "docs/results/$page.md" --quiet
done
target/release/tamis report "$out/equal-time" -o docs/results/equal-time.md --quiet
