use std::time::Instant;
use tamis::{dims::Dims, gates::Signs, lm, budget::Recovery, sensing::Sensing};
use tamis_host::{data::planted, operator::{Blocked, Layout}};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let get = |i: usize, d: usize| a.get(i).and_then(|x| x.parse().ok()).unwrap_or(d);
    let (m, s, n, seeds, first) = (get(1, 10), get(2, 50), get(3, 50000), get(4, 3), get(5, 0));
    let threads = get(6, 2);
    let verbose = get(7, 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for seed in first..first + seeds {
        let dims = Dims::new(n, 100, m, s);
        let made = planted::network(dims, Signs::Positive, seed as u64).unwrap();
        let params = lm::Params { seed: seed as u64 + 1000, ..lm::Params::DEFAULT };
        let peak = made.labels.iter().fold(0f32, |a, b| a.max(b.abs()));
        let slots = lm::slots(m);
        let rows = params.search_rows(s, n);
        let cap = Recovery::new(dims, rows, 1, 0).room();
        let layout = Layout::new(slots, 100);
        let mut op = Blocked::new(made.data.clone(), slots, cap, layout).unwrap();
        let budget = Recovery::new(dims, rows, op.panel(), op.scratch(n));
        let mut memory = vec![0; budget.words()];
        let start = Instant::now();
        let (w, info) = pool.install(|| lm::run(&mut op, &made.labels, dims, &params, &mut memory, |p| {
            if verbose > 0 { println!("{:?} {} loss {:.3e} best {:.3e} support {} live {} moves {} kicks {}  {:.3}", p.phase, p.step, p.loss, p.best, p.support, p.live, p.moves, p.kicks, start.elapsed().as_secs_f64()); }
            start.elapsed().as_secs_f64() < 60.0 })).unwrap();
        let t = start.elapsed().as_secs_f64();
        let psnr = 20.0 * peak.log10() - 10.0 * info.loss.log10();
        println!("m {m} s {s} seed {seed}: {psnr:.1} dB nnz {} live {} {t:.2}s steps {} trials {} moves {} flips {} merges {} kicks {} passes {:.2} exact {}", w.nnz(), w.blocks().count(), info.steps, info.trials, info.moves, info.flips, info.merges, info.kicks, info.rows_read as f64 / n as f64, info.exact);
    }
}
