//! What can be wrong with a part on random matrices and networks, or on matrix sensing.

use super::super::kinds::{Data, Imp};
use super::super::method::Method;
use super::super::part::{Part, Point};
use super::super::random::Entries;
use super::super::sensing::Sensed;
use super::{LONGEST, MOST, not_positive, outside};
use crate::Result;

/// Most rows or columns of a matrix.
const LARGEST: usize = 4096;
/// Most layers of a network.
const LAYERS: usize = 16;

impl Part {
    /// Refuses keys of variants and parts that other data have none of.
    pub(super) fn check_keys_of_random(&self) -> Result<()> {
        let is_sensing = matches!(self.data, Data::Sensing(_));
        let named = |wrong: fn(&super::Variant) -> bool| {
            self.variants.iter().find(|own| wrong(own)).map(|own| &own.name)
        };
        let wrong = named(|own| own.entries.is_some());
        let has_entries = self.data.is_random() && !is_sensing;
        let expected = "no entries but for random matrices and networks";
        self.refuse("variants", expected, wrong.filter(|_| !has_entries))?;
        let wrong = named(|own| own.sensing.is_some()).filter(|_| !is_sensing);
        self.refuse("variants", "no sensing but for data of kind sensing", wrong)?;
        let wrong = (!self.published.is_empty() && !self.data.is_random()).then_some("some");
        self.refuse("published", "none but for random matrices and networks", wrong)
    }

    pub(super) fn check_random(&self) -> Result<()> {
        let most = LONGEST * LONGEST;
        let expected = format!("at most {most} pairs, triples or fours of sizes");
        self.refuse("m, s, n and d", &expected, outside(self.sizes(), 0..=most))?;
        let unknown = self.methods.iter().find(|method| method.measures(&self.data).is_empty());
        let expected = "norms and constant of matrices, order-first, order-second and balls of \
                        numbers, convolution, prune-magnitude and prune-random of convolutions, \
                        these two of networks, greedy, vanilla and truncated of sensing";
        self.refuse("methods", expected, unknown.map(|method| method.name()))?;
        let measured = |method: &Method| method.measures(&self.data).contains(&self.metric);
        let wrong = (!self.methods.iter().all(measured)).then(|| self.metric.name());
        self.refuse("metric", "what all methods measure", wrong)?;
        let is_sensing = matches!(self.data, Data::Sensing(_));
        self.check_axes(is_sensing)?;
        let draws = self.draws.unwrap_or(0) as usize;
        let needs_draws = matches!(self.data, Data::Matrices { .. } | Data::Numbers { .. });
        let range = if needs_draws { 2..=MOST } else { 0..=0 };
        let expected = if needs_draws { "2 or more" } else { "none: nothing is drawn again" };
        self.refuse("draws", expected, outside(draws, range))?;
        let range = if is_sensing { 1..=MOST } else { 0..=0 };
        let expected = if is_sensing { "1 or more steps" } else { "none: nothing is iterated" };
        self.refuse("epochs", expected, outside(self.epochs as usize, range))?;
        self.refuse_trained(&[
            ("imp", self.imp != Imp::default()),
            ("inflation", self.inflation.is_some()),
        ])?;
        self.check_names()?;
        for variant in &self.variants {
            variant.entries.map_or(Ok(()), |own| self.check_entries(&own))?;
            variant.sensing.map_or(Ok(()), |own| self.check_sensed(&own))?;
        }
        let points = self.points();
        self.refuse("the sizes", "some that can be", points.is_empty().then_some("none"))?;
        let refused = |at: Point| Some((at, self.impossible_random(at)?));
        let Some((Point { m, s, n, d, .. }, expected)) = points.into_iter().find_map(refused)
        else {
            return Ok(());
        };
        let got = format!("m = {m}, s = {s}, n = {n}, d = {d}");
        Err(self.out_of_bounds("the sizes", &expected, got))
    }

    /// Which axes there have to be, and which not.
    fn check_axes(&self, is_sensing: bool) -> Result<()> {
        let needs_s = match self.data {
            Data::Numbers { .. } => !self.methods.contains(&Method::Balls),
            Data::Convolutions { .. } | Data::Sensing(_) => true,
            _ => false,
        };
        for (key, is_needed, axis) in [("m", is_sensing, &self.m), ("s", needs_s, &self.s)] {
            let expected = if is_needed { "one number or more" } else { "none" };
            let wrong = (is_needed == axis.is_empty()).then(|| format!("{axis:?}"));
            self.refuse(key, expected, wrong)?;
        }
        let wrong = matches!(self.data, Data::Networks(_)) && !self.n.is_empty();
        self.refuse_set("none: networks have no rows", &[("n", wrong)])
    }

    fn check_entries(&self, own: &Entries) -> Result<()> {
        self.refuse("variants.entries.k", "above 0", not_positive(own.k, 1e6))?;
        let alpha = own.alpha.filter(|alpha| !(*alpha > 0.0 && *alpha < 1.0));
        self.refuse("variants.entries.alpha", "above 0 and below 1", alpha)
    }

    fn check_sensed(&self, own: &Sensed) -> Result<()> {
        self.refuse("variants.sensing.sr", "above 0 and at most 1", not_positive(own.sr, 1.0))?;
        let sigma = Some(own.sigma).filter(|sigma| !(*sigma >= 0.0 && sigma.is_finite()));
        self.refuse("variants.sensing.sigma", "0 or more", sigma)?;
        for (key, value) in [
            ("variants.sensing.lambda", own.lambda),
            ("variants.sensing.beta", own.beta),
            ("variants.sensing.goal", own.goal),
            ("variants.sensing.c_b", Some(own.c_b)),
            ("variants.sensing.c_l", Some(own.c_l)),
            ("variants.sensing.start", Some(own.start)),
            ("variants.sensing.step", Some(own.step)),
        ] {
            let wrong = value.and_then(|value| not_positive(value, 1e6));
            self.refuse(key, "above 0", wrong)?;
        }
        let momentum = own.momentum.filter(|momentum| !(0.0..1.0).contains(momentum));
        self.refuse("variants.sensing.momentum", "0 up to but not 1", momentum)?;
        // A column of 0 would have no way down in the weakest direction of the target.
        let [least, c_l] = [self.m.iter().min().copied().unwrap_or(1) as f64, own.c_l];
        let most = 2.0 * (least * own.c_b).sqrt();
        let by_recipe = own.lambda.is_none() && own.beta.is_none();
        let has_lasso = self.methods.contains(&Method::Greedy);
        let wrong = (has_lasso && by_recipe && c_l >= most).then_some(c_l);
        let expected = format!(
            "below 2 √(m c_b) = {most:.3}, else columns have no way to the weakest direction"
        );
        self.refuse("variants.sensing.c_l", &expected, wrong)
    }

    fn impossible_random(&self, at: Point) -> Option<String> {
        let within = |value: usize, least: usize| (least..=LARGEST).contains(&value);
        let is_wrong = match &self.data {
            // Of the constant matrices are square.
            Data::Matrices { .. } if self.methods.contains(&Method::Constant) => {
                !within(at.d, 1) || !self.n.is_empty() || at.n != 0
            }
            Data::Matrices { .. } => !within(at.d, 1) || !within(at.n, 1),
            Data::Numbers { .. } if self.s.is_empty() => !within(at.d, 2),
            Data::Numbers { .. } => !within(at.n, 1) || at.s > at.n,
            Data::Convolutions { .. } => {
                let numbers = (at.n * at.n).saturating_mul(at.d);
                let is_large = self.methods.contains(&Method::Convolution) && numbers > 1500;
                !within(at.n, 1) || !within(at.d, 1) || at.s > at.n || is_large
            }
            Data::Networks(data) => {
                let ends = [data.inputs, data.outputs].into_iter().flatten();
                !(3..=LAYERS).contains(&data.layers)
                    || !within(at.d, 2)
                    || ends.into_iter().any(|width| !within(width, 1))
            }
            _ => !within(at.d, 1) || !within(at.m, 1) || at.n > MOST || self.refuses_rank(at),
        };
        let expected = match &self.data {
            Data::Matrices { .. } => {
                format!("n and d from 1 to {LARGEST}; of the constant no n, and samples = 0")
            }
            Data::Numbers { .. } => format!("n up to {LARGEST}, s up to n; 2 to {LARGEST} bins d"),
            Data::Convolutions { .. } => {
                "filters s within maps n; for method convolution at most 1500 numbers n²d".into()
            }
            Data::Networks(_) => format!("widths up to {LARGEST}, 3 to {LAYERS} layers"),
            _ => format!(
                "d and m from 1 to {LARGEST}, s within them, and sr = 1 where s = 1; impossible = \
                 \"skip\" leaves others out"
            ),
        };
        is_wrong.then_some(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Spec;

    const SENSING: &str = "name='t'
title='t'
source='t'
[[part]]
name='p'
title='p'
m=[6, 9]
s=[1, 2]
d=[8]
epochs=20
methods=['greedy']
seeds=[0]
metric='columns'
range=[0,9]
variants=[{ name='a' }, { name='b', sensing={ sr=0.5 } }]
impossible='skip'
data={ kind='sensing', samples=0, inputs=8 }
";
    const MATRICES: &str = "name='t'
title='t'
source='t'
[[part]]
name='p'
title='p'
n=[4, 8]
d=[4, 8]
methods=['norms']
seeds=[0]
draws=5
metric='mean'
range=[0,2]
impossible='skip'
variants=[{ name='a', entries={ k=2.0 } }, { name='b' }]
published=[{ n=4, d=8, variant='a', values={ mean=1.0 }, wrong=['mean'] }]
data={ kind='matrices', samples=4, inputs=4 }
";

    #[test]
    fn what_no_sensing_can_be_is_refused() {
        // Of rank 1 one singular value, which is 1.
        assert_eq!(Spec::parse(SENSING, None).unwrap().cells().len(), 2 * (1 + 2));
        assert_eq!(Spec::parse(MATRICES, None).unwrap().cells().len(), 3 * 2);
        for (text, from, to, says) in [
            (SENSING, "impossible='skip'\n", "", "sr = 1 where s = 1"),
            (SENSING, "m=[6, 9]\n", "", "one number or more"),
            (SENSING, "epochs=20\n", "", "1 or more steps"),
            (SENSING, "sr=0.5", "sr=0.0", "above 0 and at most 1"),
            (SENSING, "sr=0.5", "lambda=0.0", "above 0"),
            (SENSING, "sr=0.5", "beta=0.0", "above 0"),
            (SENSING, "sr=0.5", "c_l=1.2", "no way to the weakest direction"),
            (SENSING, "sr=0.5", "momentum=1.0", "0 up to but not 1"),
            (SENSING, "sr=0.5", "sigma=nan", "0 or more"),
            (SENSING, "['greedy']", "['norms']", "greedy, vanilla and truncated"),
            (SENSING, "sensing={ sr=0.5 }", "entries={}", "no entries but"),
            (SENSING, "s=[1, 2]", "s=[7, 10]\ndraws=5", "none: nothing is drawn"),
            (SENSING, "s=[1, 2]", "s=[1, 2]\nbatch=5", "none: nothing is trained"),
            (SENSING, "s=[1, 2]", "s=[1, 2]\ninflation=2.0", "none: nothing is trained"),
            (MATRICES, "draws=5\n", "", "2 or more"),
            (MATRICES, "['norms']", "['norms', 'constant']", "what all methods measure"),
            (
                MATRICES,
                "['norms']\nseeds=[0]\ndraws=5\nmetric='mean'",
                "['constant']\nseeds=[0]\ndraws=5\nmetric='c'",
                "of the constant no n",
            ),
            (MATRICES, "k=2.0", "k=0.0", "above 0"),
            (MATRICES, "k=2.0", "alpha=1.0", "above 0 and below 1"),
            (MATRICES, "d=[4, 8]", "d=[5000]", "n and d from 1"),
            (MATRICES, "entries={ k=2.0 }", "sensing={}", "no sensing but"),
            (MATRICES, "'mean'\nrange", "'columns'\nrange", "what all methods measure"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Spec::parse(&text.replace(from, to), None).unwrap_err().to_string();
            assert!(error.contains(says), "{to}: {error}");
        }
    }
}
