//! A score for each weight of a network: one function a method.

use super::biases::WithBiases;
use super::network::DenseLayers;
use super::options::{MaskOptions, Method};
use super::rows::ScoredRows;
use crate::operator::Stop;
use crate::train::dense::pass::Batch;
use crate::train::dense::scores::{self, Role, TrainedEpochs};
use crate::train::dense::shape::Shape;
use crate::train::dense::{DenseNet, NetOnRows};
use crate::{Error, Result};

/// A network whose weights are scored: some may be 0, dropped by rounds before.
pub(super) struct Scored<'a> {
    pub(super) shape: &'a Shape,
    pub(super) layers: &'a DenseLayers,
    pub(super) rows: Option<&'a ScoredRows>,
    /// What flows in, for the method of flow.
    pub(super) input: &'a [f32],
    pub(super) options: &'a MaskOptions,
    /// From 1.
    pub(super) round: u32,
    pub(super) stop: &'a Stop,
}

/// A score for each weight; those that are 0 have none.
pub(super) fn scores(of: &Scored<'_>) -> Result<Vec<f32>> {
    let Scored { shape, layers, input, options, .. } = *of;
    let net = DenseNet { shape, weights: &layers.weights };
    match options.method {
        Method::Synflow => Ok(scores::synflow(net, input)),
        // Chance is drawn without scores, before any round.
        Method::Magnitude | Method::Random | Method::Erk => Ok(scores::magnitude(net)),
        Method::Snip => of.on_rows(|on, _| scores::snip(on)),
        Method::Grasp => of.on_rows(|on, role| scores::grasp(on, options.temperature, role)),
        Method::Ntk => of.on_rows(|on, _| scores::ntk(on)),
        Method::Sketch => of.on_rows(|on, _| scores::sketch(on)),
        Method::Imp => {
            let MaskOptions { epochs: count, seed, .. } = *options;
            let before = u64::from(of.round - 1) * u64::from(count);
            of.on_rows(|on, role| scores::trained(on, TrainedEpochs { count, seed, before }, role))
        }
    }
}

impl Scored<'_> {
    /// Scores of the network on its rows. Biases take part as weights of one more input, which is 1
    /// in every row, and of hidden neurons that hand it on; they get no scores.
    fn on_rows(
        &self,
        score: impl FnOnce(&NetOnRows<'_>, &dyn Fn(usize) -> Role) -> Result<Vec<f32>>,
    ) -> Result<Vec<f32>> {
        let Some(rows) = self.rows else {
            return Err(Error::new("the method needs rows")
                .expected("--data, or --random-data normal or sparse")
                .got("neither")
                .help("pass --data X.npy, and --labels for snip and grasp"));
        };
        let place = rows.place();
        let on = |shape, weights, rows| NetOnRows {
            net: DenseNet { shape, weights },
            rows,
            stop: self.stop,
            device: &**place,
        };
        if !self.layers.has_biases() {
            let batch: Batch<'_> = rows.batch();
            return score(&on(self.shape, &self.layers.weights, batch), &|_| Role::Weight);
        }
        let rows = rows.with_ones()?;
        let whole = WithBiases::new(self.shape, self.layers)?;
        let on = on(&whole.shape, &whole.weights, rows.batch());
        let scores = score(&on, &|at| whole.roles[at])?;
        let own = scores.into_iter().zip(&whole.roles).filter(|(_, role)| **role == Role::Weight);
        Ok(own.map(|(score, _)| score).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Problem, Task, Values};
    use crate::mask::rounds::Rounds;
    use crate::train::dense::imp::imp;
    use crate::train::dense::job::ImpJob;
    use crate::train::{Budget, ImpSettings};
    use tamis::network::mask::Mlp;

    fn layers(shape: &Shape, seed: usize) -> DenseLayers {
        let number = |e: usize| ((e * 7919 + e / 13 + seed) % 256) as f32 / 128.0 - 1.0;
        let biases = shape.layers().map(|layer| (0..layer.outputs).map(number).collect());
        DenseLayers {
            weights: (0..shape.weights()).map(|e| number(e + 31)).collect(),
            biases: biases.collect(),
        }
    }

    fn options(method: Method) -> MaskOptions {
        MaskOptions { temperature: 1.0, ..MaskOptions::new(method, Budget::nnz(3)) }
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
            options: &options(Method::Snip),
            round: 1,
            stop: &stop,
        };
        let own = scores(&of).unwrap();
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
        let wanted = scores(&of).unwrap();
        assert_eq!(own, [&wanted[..3], &wanted[4..7]].concat());
        // Without biases the gradient is another one.
        let bare = DenseLayers { biases: vec![Vec::new()], ..layers.clone() };
        let of = Scored { shape: &shape, layers: &bare, rows: Some(&rows), ..of };
        assert_ne!(own, scores(&of).unwrap());
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
            options: &options(Method::Snip),
            round: 1,
            stop: &stop,
        };
        for method in [Method::Snip, Method::Grasp, Method::Ntk, Method::Sketch, Method::Imp] {
            let of = Scored { options: &options(method), ..of };
            assert!(scores(&of).unwrap_err().to_string().contains("--data"));
        }
        for method in [Method::Synflow, Method::Magnitude] {
            let of = Scored { options: &options(method), ..of };
            assert_eq!(scores(&of).unwrap().len(), 20);
        }
    }

    #[test]
    fn imp_is_the_baseline_of_that_name() {
        let (rows, stop, shape) = (rows(), Stop::new(), Shape::of(&[3, 8, 2]).unwrap());
        let number = |e: usize| ((e * 523 + e / 7) % 251) as f32 / 125.0 - 1.0;
        let data = Matrix::new(40, 3, Values::F32((0..120).map(number).collect())).unwrap();
        let labels = (0..40).map(|k| (k % 2) as f32).collect();
        let problem = Problem { data, labels, task: Task::Multiclass };
        // Half of the weights go after each training but the last, whose weights are what is kept.
        let settings = ImpSettings { epochs: 3, prune: 0.5, ..ImpSettings::default() };
        let job = ImpJob::new(&problem, &settings, Budget::nnz(10), &[8], 4).unwrap();
        let wanted = imp(&problem, &job, None, &stop, &mut |_| true).unwrap().mask;
        assert_eq!(job.counts(), [40, 20, 10]);
        let options = MaskOptions {
            epochs: 3,
            rounds: Some(2),
            seed: 4,
            ..MaskOptions::new(Method::Imp, Budget::nnz(10))
        };
        let network = Mlp::new(&[3, 8, 2]).unwrap();
        let mut layers = DenseLayers { weights: shape.initial(4), biases: vec![Vec::new(); 2] };
        let rounds =
            Rounds { net: network, options: &options, rows: Some(&rows), count: 10, stop: &stop };
        let index = rounds.run(&mut layers, |_| ()).unwrap().index;
        let wanted: Vec<u32> =
            (0..).zip(wanted).filter(|(_, kept)| *kept).map(|(at, _)| at).collect();
        assert_eq!(index, wanted);
    }

    #[test]
    fn imp_trains_biases_and_hands_on_the_constant() {
        let (rows, stop, shape) = (rows(), Stop::new(), Shape::of(&[3, 4, 2]).unwrap());
        let mut layers = layers(&shape, 3);
        let options = MaskOptions { epochs: 5, ..options(Method::Imp) };
        let scored = |layers: &DenseLayers| {
            let of = Scored {
                shape: &shape,
                layers,
                rows: Some(&rows),
                input: &[],
                options: &options,
                round: 1,
                stop: &stop,
            };
            scores(&of).unwrap()
        };
        let all = scored(&layers);
        assert!(all.len() == 20 && all.iter().all(|score| *score > 0.0));
        layers.weights[7] = 0.0;
        assert_eq!(scored(&layers)[7], 0.0);
    }
}
