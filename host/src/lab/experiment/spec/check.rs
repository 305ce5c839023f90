//! Parts that check the theory: their axes, and what can be wrong with them.

use super::kinds::{Data, Directions, Imp, Method, Rows};
use super::metric::Metric;
use super::part::{LONGEST, MOST, Part, Point};
use crate::Result;

impl Method {
    /// What it measures on such data, with what stands beside it.
    #[must_use]
    pub const fn measures(self, data: &Data) -> &'static [Metric] {
        use Metric::{
            Alpha, AlphaAligned, AlphaIndependent, Beta, BetaAligned, BetaForm, BetaIndependent,
            Eps, Error, Gamma, GammaLimit, Inflation, LossLeft, Rate, RateForm, Steps, StepsForm,
            Straight, Success,
        };
        match (self, data) {
            (Self::Assumption, Data::Gates { .. }) => &[Eps, Gamma, GammaLimit],
            (Self::Curvature, Data::Gates { .. }) => &[
                Alpha,
                Beta,
                AlphaAligned,
                BetaAligned,
                GammaLimit,
                BetaForm,
                AlphaIndependent,
                BetaIndependent,
            ],
            (Self::Curvature, Data::Gaussian { .. }) => {
                &[Alpha, Beta, AlphaIndependent, BetaIndependent]
            }
            (Self::Theory | Self::Normalised | Self::Paper, Data::Gaussian { .. }) => {
                &[Success, Error]
            }
            (Self::Theory | Self::Normalised | Self::Paper, Data::Gates { .. }) => &[
                Success,
                Error,
                LossLeft,
                Steps,
                StepsForm,
                Rate,
                RateForm,
                Straight,
                Alpha,
                AlphaAligned,
                Beta,
                Inflation,
            ],
            _ => &[],
        }
    }

    /// Whether it depends on s.
    const fn has_support(self) -> bool {
        !matches!(self, Self::Assumption)
    }
}

impl Part {
    /// What a training does not have.
    pub(super) fn refuse_theory(&self) -> Result<()> {
        if let Some(method) = self.methods.iter().find(|method| method.is_check()) {
            let expected =
                "ways to train, or data of kind gates or gaussian to check the theory on";
            return Err(self.out_of_bounds("methods", expected, method.name()));
        }
        if !self.metric.is_of_training() {
            return Err(self.out_of_bounds("metric", "one of a training", self.metric.title()));
        }
        if !self.n.is_empty() && self.data.samples() == 0 {
            return Err(self.out_of_bounds("n", "none but for planted data", "one"));
        }
        let keys = [("d", !self.d.is_empty())];
        let keys = keys.into_iter().chain([("draws", self.draws.is_some())]);
        match keys.chain([("inflation", self.inflation.is_some())]).find(|(_, there)| *there) {
            Some((key, _)) => Err(self.out_of_bounds(
                key,
                "none: it is for data of kind gates or gaussian",
                "one",
            )),
            None => Ok(()),
        }
    }

    /// Checks every key of a check, and every cell.
    pub(super) fn check_theory(&self) -> Result<()> {
        self.check_range()?;
        self.check_lists()?;
        self.check_axes()?;
        let not_here = self.methods.iter().find(|method| method.measures(&self.data).is_empty());
        if let Some(method) = not_here {
            let expected = "curvature, theory, normalised or paper; with gates also assumption";
            return Err(self.out_of_bounds("methods", expected, method.name()));
        }
        if self.methods.iter().any(|method| !method.measures(&self.data).contains(&self.metric)) {
            let names = |method: &Method| {
                let titles = method.measures(&self.data).iter().map(|metric| metric.name());
                titles.collect::<Vec<_>>().join(", ")
            };
            let expected = format!("what all methods measure: {}", names(&self.methods[0]));
            return Err(self.out_of_bounds("metric", &expected, self.metric.name()));
        }
        let iterative = self.methods.iter().any(|method| method.is_iterative());
        if iterative != (self.epochs > 0) || self.epochs as usize > MOST {
            let expected = if iterative {
                format!("1 to {MOST} steps")
            } else {
                "none: nothing is iterated".into()
            };
            return Err(self.out_of_bounds("epochs", &expected, self.epochs));
        }
        if let Some(draws) = self.draws.filter(|draws| !(1..=LONGEST as u32).contains(draws)) {
            return Err(self.out_of_bounds("draws", &format!("1 to {LONGEST}"), draws));
        }
        if let Some(inflation) = self.inflation.filter(|inflation| !(1.0..=1e6).contains(inflation))
        {
            return Err(self.out_of_bounds("inflation", "1 to 1000000", inflation));
        }
        let unused = [
            ("hidden", self.hidden != 1),
            ("sizes", !self.sizes.is_empty()),
            ("batch", self.batch != 0),
            ("passes", self.passes.is_some()),
            ("seconds", self.seconds.is_some()),
            ("on", self.on != Rows::Train),
            ("imp", self.imp != Imp::default()),
            ("variants", !self.variants.is_empty()),
        ];
        if let Some((key, _)) = unused.iter().find(|(_, used)| *used) {
            return Err(self.out_of_bounds(key, "none: nothing is trained", "one"));
        }
        match self.points().iter().find_map(|&point| Some((point, self.impossible_point(point)?))) {
            Some((Point { m, s, n, d, .. }, expected)) => {
                let got = format!("m = {m}, s = {s}, n = {n}, d = {d}");
                Err(self.out_of_bounds("the sizes", &expected, got))
            }
            None => Ok(()),
        }
    }

    fn check_axes(&self) -> Result<()> {
        if self.seeds.len() > LONGEST {
            return Err(self.out_of_bounds(
                "seeds",
                &format!("at most {LONGEST} entries"),
                self.seeds.len(),
            ));
        }
        // Counted before they are made.
        if self.sizes() > LONGEST * LONGEST {
            let expected =
                format!("at most {} pairs, triples or fours of sizes", LONGEST * LONGEST);
            return Err(self.out_of_bounds("m, s, n and d", &expected, self.sizes()));
        }
        for (name, axis) in [("m", &self.m), ("s", &self.s), ("n", &self.n), ("d", &self.d)] {
            if axis.len() > LONGEST {
                return Err(self.out_of_bounds(
                    name,
                    &format!("at most {LONGEST} entries"),
                    axis.len(),
                ));
            }
            if let Some(wrong) = axis.iter().find(|value| !(1..=MOST).contains(*value)) {
                return Err(self.out_of_bounds(name, &format!("1 to {MOST}"), wrong));
            }
            if let Some(at) = (1..axis.len()).find(|&at| axis[..at].contains(&axis[at])) {
                return Err(self.out_of_bounds(name, "every number once", axis[at]));
            }
        }
        let random = matches!(self.data, Data::Gates { generators: Directions::Gaussian, .. });
        if random == self.m.is_empty() {
            let expected = match self.data {
                _ if random => "how many random generators there are",
                Data::Gaussian { .. } => "none: there are no gates",
                _ => "none: all patterns are taken",
            };
            return Err(self.out_of_bounds("m", expected, format_args!("{:?}", self.m)));
        }
        let supports = self.methods.iter().any(|method| method.has_support());
        if supports == self.s.is_empty() {
            let expected = if supports { "nonzeros" } else { "none: nothing depends on it" };
            return Err(self.out_of_bounds("s", expected, format_args!("{:?}", self.s)));
        }
        Ok(())
    }

    /// What sizes have to be, where these are not.
    fn impossible_point(&self, at: Point) -> Option<String> {
        let columns = at.m.saturating_mul(at.d);
        if let Data::Gates { weights, .. } = self.data {
            if !(1..=at.d).contains(&weights) {
                return Some(format!("data.weights from 1 to d, not {weights}"));
            }
            let plants = self.methods.iter().any(|method| method.is_iterative());
            if plants && !at.s.is_multiple_of(weights) {
                return Some(format!(
                    "s a multiple of data.weights = {weights}, as many as a planted neuron has"
                ));
            }
            if plants && at.s / weights > at.m {
                return Some(format!("s at most data.weights = {weights} for each generator"));
            }
        }
        if !(1..=MOST).contains(&columns) || at.n == 0 || at.n > MOST {
            return Some(format!("1 to {MOST} columns m·d, and as many rows"));
        }
        (at.s > columns).then(|| "s within the columns m·d".into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spec;
    use super::*;

    fn spec(changes: &[(&str, &str)]) -> Result<Spec> {
        let mut text =
            "name='t'\ntitle='t'\nsource='t'\n[[part]]\nname='p'\ntitle='p'\ns=[2]\nn=[50, 90]\nepochs=9\n\
                        methods=['theory']\nseeds=[0]\nmetric='error'\nrange=[0,1]\n\
                        data={kind='gates',samples=40,inputs=5,generators='patterns',weights=2}\n"
                .to_owned();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        Spec::parse(&text, None)
    }

    #[test]
    fn cells_of_a_check_have_its_axes_and_all_patterns() {
        let own = spec(&[("n=[50, 90]", "n=[50]\nd=[3, 5]")]).unwrap();
        let part = &own.part[0];
        // C(3, 2)·4 and C(5, 2)·4 patterns.
        let point = |m, d| Point { m, s: 2, n: 50, d, variant: 0 };
        assert_eq!(part.points(), [point(12, 3), point(40, 5)]);
        let cells = own.cells();
        assert_eq!((cells.len(), part.sizes()), (2, 2));
        assert_eq!(cells[1].id(), "p-theory-m40-s2-n50-d5-seed0");
        assert_eq!(part.points()[1], point(40, 5));
        let usual = spec(&[("n=[50, 90]\n", "")]).unwrap();
        assert_eq!(usual.cells()[0].id(), "p-theory-m40-s2-seed0");
        assert_eq!(usual.part[0].points()[0].n, 40);
    }

    #[test]
    fn more_sizes_than_can_be_run_are_refused_before_they_are_made() {
        let long = |name: &str| format!("{name}={:?}\n", (1..=900).collect::<Vec<_>>());
        let axes = long("s") + &long("n") + &long("d");
        let error = spec(&[("s=[2]\nn=[50, 90]\n", &axes)]).unwrap_err().to_string();
        assert!(error.contains("m, s, n and d") && error.contains("729000000"), "{error}");
    }

    #[test]
    fn what_no_check_can_be_is_refused_by_key() {
        for (from, to, says) in [
            ("s=[2]", "s=[3]", "multiple of data.weights"),
            ("s=[2]", "s=[2]\nm=[7]", "all patterns"),
            ("s=[2]\n", "", "nonzeros"),
            ("s=[2]", "s=[98]", "for each generator"),
            ("methods=['theory']", "methods=['zero']", "assumption"),
            ("methods=['theory']", "methods=['assumption']", "nothing depends on it"),
            ("epochs=9", "epochs=0", "steps"),
            ("epochs=9", "epochs=9\nhidden=2", "nothing is trained"),
            ("epochs=9", "epochs=9\ninflation=0.5", "inflation"),
            ("epochs=9", "epochs=9\ndraws=0", "draws"),
            ("metric='error'", "metric='eps'", "loss-left"),
            ("weights=2", "weights=6", "data.weights from 1 to d"),
            ("n=[50, 90]", "n=[50, 50]", "every number once"),
            ("generators='patterns'", "generators='gaussian'", "random generators"),
            (
                "kind='gates',samples=40,inputs=5,generators='patterns',weights=2",
                "kind='planted',samples=40,inputs=5,outputs=1,test=0",
                "ways to train",
            ),
        ] {
            let error = spec(&[(from, to)]).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("part p"), "{to}: {error}");
        }
    }
}
