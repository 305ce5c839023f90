//! scratch
use tamis::{dims::Dims, gates::*, iht::*, sensing::Sensing, train::*};
use tamis_host::{data::planted, operator::*};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (m, s): (usize, usize) = (a[1].parse().unwrap(), a[2].parse().unwrap());
    let seeds: u64 = a[3].parse().unwrap();
    let threads: usize = a[4].parse().unwrap();
    let mut schedule = Schedule::PAPER;
    for o in &a[5..] {
        let (k, v) = o.split_once('=').unwrap();
        match k {
            "epochs" => schedule.epochs = v.parse().unwrap(),
            "convex" => schedule.convex_epochs = v.parse().unwrap(),
            "cg" => {
                schedule.params.refine =
                    Refine::ConjugateGradient { steps: v.parse().unwrap(), tolerance: 1e-4 }
            }
            "armijo" => {
                schedule.params.refine =
                    Refine::Armijo { steps: v.parse().unwrap(), decrease: 0.9, halvings: 10 }
            }
            "decrease" => {
                schedule.params.refine =
                    Refine::Armijo { steps: 10, decrease: v.parse().unwrap(), halvings: 10 }
            }
            "empty" => schedule.empty = if v == "open" { Empty::Open } else { Empty::Reseed },
            _ => panic!(),
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut all = vec![];
    for seed in 0..seeds {
        let p = planted::network(Dims::new(50000, 100, m, s), Signs::Positive, seed).unwrap();
        let labels = p.labels.clone();
        let peak = labels.iter().fold(0f32, |a, b| a.max(b.abs()));
        let mut op = Blocked::new(p.data, m, s, Layout::new(m, 100)).unwrap();
        schedule.seed = seed + std::env::var("GS").map_or(0, |v| v.parse::<u64>().unwrap());
        let dims = Dims::new(50000, 100, m, s);
        let b = schedule.budget(dims, op.panel(), op.scratch(50000));
        let mut mem = vec![0u32; b.words()];
        let t = std::time::Instant::now();
        let (trials, n0): (u64, usize) = (
            std::env::var("TRIALS").map_or(1, |v| v.parse().unwrap()),
            std::env::var("N0").map_or(2000, |v| v.parse().unwrap()),
        );
        schedule.trials = Trials { count: trials as u32, rows: n0 };
        let r = pool
            .install(|| {
                run(&mut op, &labels, s, &schedule, &mut mem, |p| {
                    if a.len() > 9 {
                        println!("{p:?}");
                    }
                    true
                })
            })
            .unwrap();
        if std::env::var("SHOW").is_ok() {
            let f = |i: &[u32], v: &[f32]| {
                i.iter()
                    .zip(v)
                    .map(|(i, v)| format!("{}:{}={:.3}", i / 100, i % 100, v))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            println!("P {}\nR {}", f(&p.index, &p.value), f(r.weights.index(), r.weights.value()));
        }
        let psnr = 20.0 * (peak as f64).log10() - 10.0 * (r.info.loss as f64).log10();
        println!("seed {seed} {psnr:.1} dB {:.3} s {:?}", t.elapsed().as_secs_f64(), r.info);
        all.push(psnr);
    }
    all.sort_by(f64::total_cmp);
    println!("({m},{s}) median {:.1}", all[all.len() / 2]);
}
