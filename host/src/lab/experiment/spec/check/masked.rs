//! What can be wrong with a part on networks that are trained under masks.

use super::super::claim::Claim;
use super::super::kinds::{Data, MaskedData, Pictures};
use super::super::part::{Part, Point};
use super::super::variant::{MaskSpec, ScoreData};
use super::{Metric, twice};
use crate::Result;
use crate::mask::{InputSize, MaskOptions, Method, RowsNeeded};

/// Most pictures of each digit, more than MNIST has.
const MOST_PICTURES: usize = 10_000;
const MOST_NEURONS: usize = 10_000;

impl Part {
    /// Checks variants and claims, which other data have none of.
    pub(super) fn check_masked(&self) -> Result<()> {
        if !matches!(self.data, Data::Masked(_)) {
            let named = self.variants.iter().find(|of| of.is_of_masks()).map(|of| &of.name);
            let expected = "no mask or neurons but for data of kind masked";
            self.refuse("variants", expected, named)?;
            let claimed = self.claims.first().map(|claim| &claim.says);
            return self.refuse("claims", "none but for data of kind masked", claimed);
        }
        self.refuse("variants", "one or more", self.variants.is_empty().then_some("none"))?;
        for variant in &self.variants {
            let is_wrong = variant.mask.is_none() && variant.neurons.is_none();
            let wrong = is_wrong.then_some(&variant.name);
            self.refuse("variants", "each with a mask, neurons, or both", wrong)?;
            if let Some(neurons) = variant.neurons {
                self.refuse_beyond("variants.neurons", neurons, 1..=MOST_NEURONS)?;
            }
            variant.mask.map_or(Ok(()), |mask| self.check_mask(&mask))?;
        }
        self.claims.iter().try_for_each(|claim| self.check_claim(claim))
    }

    fn check_mask(&self, mask: &MaskSpec) -> Result<()> {
        let most = MaskOptions::MOST_ROUNDS;
        let wrong = mask.rounds.filter(|rounds| !(1..=most).contains(rounds));
        self.refuse("variants.mask.rounds", &format!("1 to {most}"), wrong)?;
        let is_imp = mask.method == Method::Imp;
        let wrong = mask.epochs.filter(|&epochs| epochs == 0 || !is_imp);
        self.refuse("variants.mask.epochs", "1 or more, for method imp alone", wrong)?;
        let is_wrong = mask.input != InputSize::Ones && mask.method != Method::Synflow;
        let name = mask.method.name();
        let wrong = is_wrong.then_some(&name);
        self.refuse("variants.mask.input", "none but for method synflow", wrong)?;
        let is_wrong = mask.rows != ScoreData::Data && mask.method.needs() == RowsNeeded::None;
        let wrong = is_wrong.then_some(&name);
        self.refuse("variants.mask.rows", "none for a method without rows", wrong)
    }

    fn check_claim(&self, claim: &Claim) -> Result<()> {
        let Claim { says, of, minus, metric, least, most } = claim;
        self.refuse("claims.says", "words", says.is_empty().then_some("none"))?;
        let is_known = |name: &str| self.variants.iter().any(|variant| variant.name == name);
        let unknown = of.iter().chain(minus).find(|name| !is_known(name));
        self.refuse("claims", "names of variants of the part", unknown)?;
        let names: Vec<&str> = of.iter().map(String::as_str).collect();
        let is_wrong = of.is_empty() || twice(&names).is_some();
        let expected = "one name or more, every one once";
        self.refuse("claims.of", expected, is_wrong.then(|| format!("{of:?}")))?;
        let is_wrong = ![0, 1, of.len()].contains(&minus.len());
        let expected = "none, one for all or one for each of claims.of";
        self.refuse("claims.minus", expected, is_wrong.then(|| format!("{minus:?}")))?;
        let wrong = metric.filter(|of| !matches!(of, Metric::Accuracy | Metric::Overlap));
        self.refuse("claims.metric", "accuracy or overlap", wrong.map(Metric::name))?;
        for (key, bounds) in [("claims.least", least), ("claims.most", most)] {
            let count = ![0, 1, self.s.len()].contains(&bounds.len());
            let is_wrong = count || bounds.iter().any(|bound| bound.is_nan());
            let expected = "no number, one for all s or one for each";
            self.refuse(key, expected, is_wrong.then(|| format!("{bounds:?}")))?;
        }
        Ok(())
    }

    /// What a part on masked networks has to be, where it is not.
    pub(super) fn impossible_mask(&self, data: &MaskedData, at: Point) -> Option<String> {
        let MaskedData { from, hidden, train, test, .. } = data;
        // Sparse training of one hidden layer has weights of its own.
        let own = self.variant(at).neurons.map(|neurons| neurons * (784 + 10));
        let is_wrong = !matches!(from, Pictures::Mnist | Pictures::Fashion | Pictures::Digits)
            || hidden.is_empty()
            || !self.d.is_empty()
            || !self.n.is_empty()
            || hidden.iter().any(|width| !(1..=MOST_NEURONS).contains(width))
            || [train, test].iter().any(|count| !(1..=MOST_PICTURES).contains(*count))
            || !(hidden.len() + 1..own.unwrap_or(data.weights())).contains(&at.s);
        let expected = "pictures of mnist, fashion or digits, 1 to 10000 of each to train and to test on, no n \
                        or d, 1 to 10000 neurons of a hidden layer, s below the weights of the network";
        is_wrong.then(|| expected.into())
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
s=[50, 90]
epochs=2
methods=['masked']
seeds=[0]
metric='accuracy'
range=[0,1]
variants=[{ name='a', mask={ method='snip' } }, { name='b', neurons=5 }]
claims=[{ says='A minus B', of=['a'], minus=['b'], least=[0.5, 1] }]
data={ kind='masked', from='digits', hidden=[9], train=5, test=5 }
";

    #[test]
    fn what_no_masked_network_can_be_is_refused() {
        assert_eq!(Spec::parse(SPEC, None).unwrap().cells().len(), 4);
        for (from, to, says) in [
            ("mask={ method='snip' }", "rate=0.1", "a mask, neurons, or both"),
            ("method='snip'", "method='snip', epochs=2", "variants.mask.epochs"),
            ("neurons=5", "neurons=0", "variants.neurons"),
            ("neurons=5", "neurons=5, mask={ method='erk', rounds=0 }", "variants.mask.rounds"),
            ("'snip'", "'snap'", "unknown variant `snap`"),
            ("'snip'", "'snip', rounds=0", "variants.mask.rounds"),
            ("'snip'", "'snip', input='pixel-sd'", "variants.mask.input"),
            ("'snip'", "'erk', rows='random'", "variants.mask.rows"),
            ("of=['a']", "of=['c']", "names of variants"),
            ("of=['a'], minus=['b']", "of=['a'], minus=['b', 'a']", "claims.minus"),
            ("of=['a']", "of=['a', 'a']", "claims.of"),
            ("least=[0.5, 1]", "least=[1, 2, 3]", "claims.least"),
            ("least=[0.5, 1]", "most=[nan]", "claims.most"),
            ("least=[0.5, 1]", "metric='psnr'", "accuracy or overlap"),
            ("epochs=2\n", "", "steps"),
            ("s=[50, 90]", "s=[50, 9000]", "s below the weights"),
            ("test=5", "test=0", "to test on"),
            ("hidden=[9]", "hidden=[]", "hidden layer"),
            ("from='digits'", "from='cifar'", "pictures of mnist, fashion or digits"),
            ("['masked']", "['kept-uniform']", "of sketches and masks"),
            (
                "kind='masked', from='digits', hidden=[9], train=5, test=5",
                "kind='sketch', samples=4, inputs=5, weights='ones'",
                "data of kind masked",
            ),
        ] {
            assert!(SPEC.contains(from), "{from}");
            let error = Spec::parse(&SPEC.replace(from, to), None).unwrap_err().to_string();
            assert!(error.contains(says), "{to}: {error}");
        }
    }
}
