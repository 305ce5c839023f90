//! Linear models of scikit-learn, as `ai.onnx.ml` has them: `LinearRegressor` and `LinearClassifier`.

use super::affine::Sums;
use super::proto::{Node, attribute, require};
use crate::Result;

/// `W x + b` of a linear model, and what is done to its outputs.
pub(super) struct Linear {
    pub(super) sums: Sums,
    /// Whether the only output is the log-odds of class 1.
    pub(super) is_log_odds: bool,
}

/// The numbers of a linear model of `inputs` numbers, or of as many as its coefficients make.
pub(super) fn read(node: &Node, inputs: Option<usize>) -> Result<Linear> {
    let floats = |name| attribute(node, name).map_or(&[][..], |list| &list.floats);
    let (weights, intercepts) = (floats("coefficients"), floats("intercepts"));
    let after = attribute(node, "post_transform").map_or(&b"NONE"[..], |text| &text.s);
    let is_classifier = node.op_type == "LinearClassifier";
    let outputs = match is_classifier {
        true => {
            let count = |name| attribute(node, name).map_or(0, |list| list.ints.len());
            let named = attribute(node, "classlabels_strings").map_or(0, |list| list.strings.len());
            let classes = count("classlabels_ints").max(named);
            // Two classes may have one row, or the same twice.
            let given = inputs.map_or(intercepts.len(), |inputs| weights.len() / inputs.max(1));
            if classes == 2 && given == 1 { 1 } else { classes }
        }
        false => attribute(node, "targets").map_or(1, |targets| targets.i.max(0) as usize),
    };
    let width = weights.len().checked_div(outputs).unwrap_or(0);
    let fits = outputs > 0 && width * outputs == weights.len() && width > 0;
    let got = format_args!("{} coefficients for {outputs} outputs", weights.len());
    require(fits && inputs.is_none_or(|inputs| inputs == width), "a row for each output", got)?;
    let fits = intercepts.is_empty() || intercepts.len() == outputs;
    require(fits, "an intercept for each output", format_args!("{}", intercepts.len()))?;
    let is_known = match is_classifier {
        true => [&b"NONE"[..], b"LOGISTIC", b"SOFTMAX"].contains(&after),
        false => after == b"NONE",
    };
    let got = String::from_utf8_lossy(after).chars().take(20).collect::<String>();
    require(is_known, "outputs as they are, LOGISTIC or SOFTMAX", got)?;
    let bias: Vec<f64> = intercepts.iter().map(|&b| f64::from(b)).collect();
    let has_bias = !bias.is_empty();
    let bias = if has_bias { bias } else { vec![0.0; outputs] };
    let name = node.output.first().cloned().unwrap_or_default();
    let mut sums = Sums {
        weights: weights.to_vec(),
        inputs: width,
        outputs,
        bias,
        has_bias,
        name: crate::convert::shown(&name),
    };
    let mut is_log_odds = is_classifier && outputs == 1;
    if is_classifier && outputs == 2 {
        let (first, second) = weights.split_at(width);
        let is_opposite = |a: f64, b: f64| (a + b).abs() <= 1e-6 * (a.abs() + b.abs());
        let pairs = first.iter().zip(second).map(|(&a, &b)| (f64::from(a), f64::from(b)));
        let mut pairs = pairs.chain([(sums.bias[0], sums.bias[1])]);
        if pairs.all(|(a, b)| is_opposite(a, b)) {
            // The softmax of -z and z is the logistic function of 2 z.
            let factor = if after == b"SOFTMAX" { 2.0 } else { 1.0 };
            let weights = second.iter().map(|w| w * factor as f32).collect();
            let bias = vec![sums.bias[1] * factor];
            sums = Sums { weights, outputs: 1, bias, ..sums };
            is_log_odds = true;
        }
    }
    Ok(Linear { sums, is_log_odds })
}
