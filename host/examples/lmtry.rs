//! Scratch.
use std::time::Instant;
use tamis::{budget::Recovery, dims::Dims, gates::Signs, lm, rng::Rng, sensing::Sensing};
use tamis_host::{
    data::{Matrix, Values, planted},
    operator::{Blocked, Layout},
};
fn var(name: &str, d: f64) -> f64 {
    std::env::var(name).ok().and_then(|x| x.parse().ok()).unwrap_or(d)
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let get = |i: usize, d: usize| a.get(i).and_then(|x| x.parse().ok()).unwrap_or(d);
    let (m, s, n, seeds, first) = (get(1, 10), get(2, 50), get(3, 50000), get(4, 3), get(5, 0));
    let threads = get(6, 2);
    let verbose = get(7, 0);
    let limit = var("LIMIT", 60.0);
    let mode = std::env::var("DATA").unwrap_or_default();
    let signs = match std::env::var("SIGNS").as_deref() {
        Ok("free") => Signs::Free,
        Ok(_) => Signs::Balanced,
        _ => Signs::Positive,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pixels: Vec<u8> = if mode == "mnist" { std::fs::read("/tmp/mnist100.bin").unwrap() } else { vec![] };
    for seed in first..first + seeds {
        let dims = Dims::new(n, 100, m, s);
        let mut made =
            planted::network(dims, if signs.both() { Signs::Balanced } else { signs }, seed as u64).unwrap();
        if !mode.is_empty() {
            let mut x = vec![0f32; n * 100];
            let mut rng = Rng::new(seed as u64, 77);
            for (k, v) in x.iter_mut().enumerate() {
                *v = match mode.as_str() {
                    "mnist" => pixels[k] as f32 / 255.0,
                    "uniform" => rng.uniform(),
                    "ternary" => rng.below(3) as f32 - 1.0,
                    _ => rng.normal() * if rng.below(10) == 0 { 5.0 } else { 1.0 },
                };
            }
            let copy = made.clone();
            let w = copy.weights().unwrap();
            for (k, y) in made.labels.iter_mut().enumerate() {
                let row = &x[k * 100..(k + 1) * 100];
                *y = w
                    .blocks()
                    .map(|b| {
                        let z: f64 = b.entries().map(|(j, v)| f64::from(v) * f64::from(row[j])).sum();
                        let s = f64::from(signs.sign(b.neuron()));
                        s * (s * z).max(0.0)
                    })
                    .sum::<f64>() as f32;
            }
            made.data = Matrix { rows: n, cols: 100, values: Values::F32(x) };
        }
        let params = lm::Params {
            rows: var("ROWS", 0.0) as usize,
            kicks: var("KICKS", 40.0) as u32,
            random_births: var("RANDOM", 6.0) as u32,
            signs,
            seed: seed as u64 + 1000,
            ..lm::Params::DEFAULT
        };
        let peak = made.labels.iter().fold(0f32, |a, b| a.max(b.abs()));
        let slots = lm::slots(m, signs);
        let rows = params.search_rows(s, n);
        let cap = Recovery::new(dims, rows, 1, 0, signs.linear(0)).room();
        let layout = Layout::new(slots, 100);
        let mut op = Blocked::new(made.data.clone(), slots, cap, layout).unwrap();
        let budget = Recovery::new(dims, rows, op.panel(), op.scratch(n), signs.linear(0));
        let mut memory = vec![0; budget.words()];
        let start = Instant::now();
        let (w, info) = pool
            .install(|| {
                lm::run(&mut op, &made.labels, dims, &params, &mut memory, |p| {
                    if verbose > 0 {
                        println!(
                            "{:?} {} loss {:.3e} best {:.3e} support {} live {} moves {} kicks {}  {:.3}",
                            p.phase,
                            p.step,
                            p.loss,
                            p.best,
                            p.support,
                            p.live,
                            p.moves,
                            p.kicks,
                            start.elapsed().as_secs_f64()
                        );
                    }
                    start.elapsed().as_secs_f64() < limit
                })
            })
            .unwrap();
        let t = start.elapsed().as_secs_f64();
        let psnr = 20.0 * peak.log10() - 10.0 * info.loss.log10();
        let planted_live = made.weights().unwrap().blocks().count();
        println!(
            "{m},{s} seed {seed}: {psnr:.1} dB nnz {} live {}/{planted_live} {t:.2}s steps {} trials {} moves {} flips {} merges {} kicks {} passes {:.0} {}",
            w.nnz(),
            w.blocks().count(),
            info.steps,
            info.trials,
            info.moves,
            info.flips,
            info.merges,
            info.kicks,
            info.rows_read as f64 / n as f64,
            if info.exact { "exact" } else { "NOT" }
        );
    }
}
