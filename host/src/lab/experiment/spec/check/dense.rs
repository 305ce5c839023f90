//! What can be wrong with a part on trained dense networks.

use super::super::dense::{DenseData, Tables};
use super::super::kinds::{Data, Rows};
use super::super::method::Method;
use super::super::part::Part;
use super::{LONGEST, outside};
use crate::Result;

/// Most neurons of a hidden layer.
const WIDEST: usize = 4096;

impl Part {
    pub(super) fn check_dense(&self) -> Result<()> {
        let Data::Dense(DenseData { test, .. }) = self.data else { return Ok(()) };
        let other = self.methods.iter().find(|of| **of != Method::TrainedWeights);
        self.refuse("methods", "trained-weights", other.map(|of| of.name()))?;
        let measured = Method::TrainedWeights.measures(&self.data);
        let wrong = (!measured.contains(&self.metric)).then(|| self.metric.name());
        self.refuse("metric", "what the method measures", wrong)?;
        let expected = format!("at most {LONGEST} pairs of m and n");
        self.refuse("m and n", &expected, outside(self.sizes(), 1..=LONGEST))?;
        let expected = format!("one width or more, 1 to {WIDEST}");
        let width = self.m.iter().find(|width| !(1..=WIDEST).contains(*width));
        let wrong = width.map(ToString::to_string).or(self.m.is_empty().then(|| "none".into()));
        self.refuse("m", &expected, wrong)?;
        self.check_settings()?;
        self.refuse_set(
            "none but m and n for trained weights",
            &[
                ("s", !self.s.is_empty()),
                ("d", !self.d.is_empty()),
                ("sizes", !self.sizes.is_empty()),
                ("epochs", self.epochs != 0),
                ("batch", self.batch != 0),
                ("passes", self.passes.is_some()),
                ("seconds", self.seconds.is_some()),
                ("draws", self.draws.is_some()),
                ("inflation", self.inflation.is_some()),
                ("on", self.on != Rows::Train),
                ("variants", !self.variants.is_empty()),
            ],
        )?;
        let rows = self.points().into_iter().map(|at| at.n);
        let is_outside = |n: &usize| *n == 0 || test == 0 || n.saturating_add(test) > Tables::ROWS;
        let expected = format!("rows to train and to test on, {} together at most", Tables::ROWS);
        let wrong = rows.into_iter().find(is_outside).map(|n| format!("{n} and {test}"));
        self.refuse("n and data.test", &expected, wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Spec;

    const SPEC: &str = "name='t'
title='t'
source='t'
[[part]]
name='p'
title='p'
hidden=2
m=[8]
methods=['trained-weights']
seeds=[0]
metric='accuracy'
range=[0,1]
imp={ epochs=2, batch=32 }
data={ kind='dense', from='stand-in', samples=100, test=50 }
";

    #[test]
    fn parts_that_cannot_be_trained_are_refused() {
        assert_eq!(Spec::parse(SPEC, None).unwrap().cells().len(), 1);
        for (from, to, says) in [
            ("m=[8]\n", "", "one width or more"),
            ("m=[8]", "m=[5000]", "1 to 4096"),
            ("m=[8]", "m=[8]\ns=[3]", "none but m and n"),
            ("'trained-weights'", "'imp'", "expected: trained-weights"),
            ("'accuracy'", "'psnr'", "what the method measures"),
            ("samples=100", "samples=0", "rows to train and to test on"),
            ("test=50", "test=581012", "581012 together at most"),
            ("hidden=2", "hidden=9", "1 to 5 layers"),
            ("batch=32", "batch=32, rate=0.0", "above 0"),
        ] {
            assert!(SPEC.contains(from), "{from}");
            let error = Spec::parse(&SPEC.replace(from, to), None).unwrap_err().to_string();
            assert!(error.contains(says), "{to}: {error}");
        }
    }
}
