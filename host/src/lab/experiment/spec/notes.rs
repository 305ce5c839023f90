//! What a spec asks for beyond what the theorems are about: allowed, and said before it runs.

use super::{Data, Method, Part, Point, Sensed, Spec};

/// The largest alpha that the theorem on random pruning is about: of `d^(2 - 2α)` weights at least
/// `d ln d`, as many as Lemma 6 asks for.
pub(crate) fn range_of_alpha(d: usize) -> f64 {
    let log = (d as f64).ln();
    0.5 * (1.0 - log.ln() / log)
}

impl Sensed {
    /// The lambda and beta of a descent with the group lasso: those of the spec, else those of eq. 10.
    pub(crate) fn lasso(&self, at: Point) -> [f64; 2] {
        let Point { m: k, s: r, n, d, .. } = at;
        let (k, r, sr) = (k as f64, r as f64, self.sr);
        let by_recipe = self.c_l * sr.powi(3) / (k * r).sqrt();
        let noise = if n == 0 { 0.0 } else { 1.2 * self.sigma * (d as f64 / n as f64).sqrt() };
        let beta = self.beta.unwrap_or(self.c_b * sr * sr / r);
        [self.lambda.unwrap_or(by_recipe.max(noise)), beta]
    }
}

impl Spec {
    /// What there is to say of its parts.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.part.iter().flat_map(Part::notes).collect()
    }
}

impl Part {
    fn notes(&self) -> Vec<String> {
        let of = |variant: usize| {
            let title = self.variants.get(variant).and_then(|variant| variant.title.as_ref());
            title.map_or_else(|| self.name.clone(), |title| format!("{}, {title}", self.name))
        };
        let mut notes = Vec::new();
        for at in self.points() {
            let Some(variant) = self.variants.get(at.variant) else { continue };
            let alpha = variant.entries.as_ref().and_then(|entries| entries.alpha);
            if let (Data::Networks(_), Some(alpha)) = (&self.data, alpha) {
                let most = range_of_alpha(at.d);
                if self.methods.contains(&Method::PruneRandom) && alpha > most {
                    notes.push(format!(
                        "part {}: the theorem on random pruning asks for alpha of at most {most:.3} at d = {}",
                        of(at.variant),
                        at.d
                    ));
                }
            }
            let Data::Sensing(_) = self.data else { continue };
            let own = variant.sensing.unwrap_or_default();
            if !self.methods.contains(&Method::Greedy) || own.validated {
                continue;
            }
            let [lambda, beta] = own.lasso(at);
            let (all, weakest) = (2.0 * beta.sqrt(), 2.0 * own.sr.powi(2) * beta.sqrt());
            let what = match lambda {
                _ if lambda >= all => "zero is a local minimum",
                _ if lambda >= weakest => {
                    "a column of 0 has no way down in the weakest direction of the target"
                }
                _ => continue,
            };
            notes.push(format!(
                "part {}: {what}, since lambda = {lambda:.3} is not below {:.3}",
                of(at.variant),
                if lambda >= all { all } else { weakest }
            ));
        }
        // One of each variant.
        notes.dedup_by_key(|note| note.split(':').next().map(str::to_owned));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::experiment::figures;

    #[test]
    fn ranges_of_theorems_are_said() {
        assert!((range_of_alpha(64) - 0.329).abs() < 1e-3);
        let notes = |name: &str| figures::load(name, Some("paper")).unwrap().notes();
        let beyond = notes("prob-exponents");
        assert!(
            beyond.iter().any(|note| note.contains("part beyond, 0.4") && note.contains("0.329"))
        );
        let closed = notes("greedy-guarantee");
        assert!(
            closed.iter().any(|note| note.contains("lambda 0.12") && note.contains("no way down"))
        );
        assert!(
            closed.iter().any(|note| note.contains("lambda 0.5") && note.contains("local minimum"))
        );
        assert!(!closed.iter().any(|note| note.contains("lambda 0.05")), "{closed:?}");
        assert!(notes("greedy-figure-1").is_empty());
    }
}
