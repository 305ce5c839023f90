//! A score for each weight of a network: one function a method.

use super::network::DenseLayers;
use super::options::Method;
use super::rows::ScoredRows;
use crate::operator::Stop;
use crate::train::dense::derivatives::{DenseNet, NetOnRows};
use crate::train::dense::pass::Batch;
use crate::train::dense::scores;
use crate::train::dense::shape::Shape;
use crate::{Error, Result};

/// A network whose weights are scored: some may be 0, dropped by rounds before.
pub(super) struct Scored<'a> {
    pub(super) shape: &'a Shape,
    pub(super) layers: &'a DenseLayers,
    pub(super) rows: Option<&'a ScoredRows>,
    /// What flows in, for the method of flow.
    pub(super) input: &'a [f32],
    pub(super) temperature: f32,
    pub(super) stop: &'a Stop,
}

/// A score for each weight; those that are 0 have none.
pub(super) fn scores(method: Method, of: &Scored<'_>) -> Result<Vec<f32>> {
    let Scored { shape, layers, input, temperature, .. } = *of;
    let net = DenseNet { shape, weights: &layers.weights };
    match method {
        Method::Synflow => Ok(scores::synflow(net, input)),
        Method::Magnitude => Ok(scores::magnitude(net)),
        Method::Random | Method::Erk => {
            Ok(layers.weights.iter().map(|w| f32::from(u8::from(*w != 0.0))).collect())
        }
        Method::Snip => of.on_rows(|on, _| scores::snip(on)),
        Method::Grasp => of.on_rows(|on, is_bias| scores::grasp(on, temperature, is_bias)),
        Method::Ntk => of.on_rows(|on, _| scores::ntk(on)),
        Method::Sketch => of.on_rows(|on, _| scores::sketch(on)),
    }
}

impl Scored<'_> {
    /// Scores of the network on its rows. Biases take part as weights of one more input, which is 1
    /// in every row, and of hidden neurons that hand it on; they get no scores.
    fn on_rows(
        &self,
        score: impl FnOnce(&NetOnRows<'_>, &dyn Fn(usize) -> bool) -> Result<Vec<f32>>,
    ) -> Result<Vec<f32>> {
        let Some(rows) = self.rows else {
            return Err(Error::new("the method needs rows")
                .expected("--data, or --random-data normal or sparse")
                .got("neither")
                .help("pass --data X.npy, and --labels for snip and grasp"));
        };
        let on = |shape, weights, rows| NetOnRows {
            net: DenseNet { shape, weights },
            rows,
            stop: self.stop,
        };
        if !self.layers.has_biases() {
            let batch: Batch<'_> = rows.batch();
            return score(&on(self.shape, &self.layers.weights, batch), &|_| false);
        }
        let rows = rows.with_ones()?;
        let whole = WithBiases::new(self.shape, self.layers)?;
        let is_bias = |at: usize| whole.places.binary_search(&at).is_err();
        let scores = score(&on(&whole.shape, &whole.weights, rows.batch()), &is_bias)?;
        Ok(whole.places.iter().map(|&at| scores[at]).collect())
    }
}

/// A network without biases that gives the same on rows with a last column of ones.
struct WithBiases {
    shape: Shape,
    weights: Vec<f32>,
    /// Where the weights without the biases are, rising.
    places: Vec<usize>,
}

impl WithBiases {
    fn new(shape: &Shape, layers: &DenseLayers) -> Result<Self> {
        let last = shape.layers().len() - 1;
        let mut widths = vec![shape.inputs() + 1];
        let more = |l: usize| usize::from(l != last);
        widths.extend(shape.layers().enumerate().map(|(l, layer)| layer.outputs + more(l)));
        let mut whole =
            Self { shape: Shape::of(&widths)?, weights: Vec::new(), places: Vec::new() };
        for (l, layer) in shape.layers().enumerate() {
            let biases = &layers.biases[l];
            for (row, weights) in layers.weights[layer.range].chunks(layer.inputs).enumerate() {
                let first = whole.weights.len();
                whole.places.extend(first..first + layer.inputs);
                whole.weights.extend(weights);
                whole.weights.push(biases.get(row).copied().unwrap_or(0.0));
            }
            if l != last {
                whole.weights.extend(std::iter::repeat_n(0.0, layer.inputs));
                whole.weights.push(1.0);
            }
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Problem, Task, Values};

    fn layers(shape: &Shape, seed: usize) -> DenseLayers {
        let number = |e: usize| ((e * 7919 + e / 13 + seed) % 256) as f32 / 128.0 - 1.0;
        let biases = shape.layers().map(|layer| (0..layer.outputs).map(number).collect());
        DenseLayers {
            weights: (0..shape.weights()).map(|e| number(e + 31)).collect(),
            biases: biases.collect(),
        }
    }

    fn rows() -> ScoredRows {
        let number = |e: usize| ((e * 523 + e / 7) % 251) as f32 / 125.0 - 1.0;
        let data = Matrix::new(40, 3, Values::F32((0..120).map(number).collect())).unwrap();
        let labels = (0..40).map(|k| (k % 2) as f32).collect();
        ScoredRows::labelled(Problem { data, labels, task: Task::Multiclass }, None).unwrap()
    }

    /// A constant input with weights in place of the biases of one layer.
    #[test]
    fn biases_take_part_and_get_no_score() {
        let (shape, rows, stop) = (Shape::of(&[3, 2]).unwrap(), rows(), Stop::new());
        let layers = layers(&shape, 5);
        let of = Scored {
            shape: &shape,
            layers: &layers,
            rows: Some(&rows),
            input: &[],
            temperature: 1.0,
            stop: &stop,
        };
        let own = scores(Method::Snip, &of).unwrap();
        let (ones, wide) = (rows.with_ones().unwrap(), Shape::of(&[4, 2]).unwrap());
        let weights = [
            &layers.weights[..3],
            &layers.biases[0][..1],
            &layers.weights[3..],
            &layers.biases[0][1..],
        ]
        .concat();
        let all = DenseLayers { weights, biases: vec![Vec::new()] };
        let of = Scored { shape: &wide, layers: &all, rows: Some(&ones), ..of };
        let wanted = scores(Method::Snip, &of).unwrap();
        assert_eq!(own, [&wanted[..3], &wanted[4..7]].concat());
        // Without biases the gradient is another one.
        let bare = DenseLayers { biases: vec![Vec::new()], ..layers.clone() };
        let of = Scored { shape: &shape, layers: &bare, rows: Some(&rows), ..of };
        assert_ne!(own, scores(Method::Snip, &of).unwrap());
    }

    #[test]
    fn rows_are_asked_for_where_they_are_needed() {
        let (shape, stop) = (Shape::of(&[3, 4, 2]).unwrap(), Stop::new());
        let layers = layers(&shape, 3);
        let of = Scored {
            shape: &shape,
            layers: &layers,
            rows: None,
            input: &[1.0; 3],
            temperature: 1.0,
            stop: &stop,
        };
        for method in [Method::Snip, Method::Grasp, Method::Ntk, Method::Sketch] {
            assert!(scores(method, &of).unwrap_err().to_string().contains("--data"));
        }
        for method in [Method::Synflow, Method::Magnitude, Method::Random] {
            assert_eq!(scores(method, &of).unwrap().len(), 20);
        }
    }
}
