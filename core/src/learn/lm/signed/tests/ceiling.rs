//! Outputs up to a ceiling, which are no error.

use super::*;
use crate::learn::lm::equations::Jacobian;
use crate::learn::lm::solver::Equations;

const W: [f32; D] = [1.0, -2.0, 0.5, 0.0];
/// Above the labels on some rows, below on others.
const OTHER: [f32; D] = [2.0, -2.0, 0.5, 1.0];

/// The equations of a model at [`OTHER`] by hand: the loss, `Jᵀ r`, and `JᵀJ p` for p = 1, 2, 3, 4, of the
/// rows that have a residual, and how many those are.
fn by_hand(rows: &[[f32; D]], scale: f32, ceiling: f32) -> (f32, [f32; D], [f32; D], usize) {
    let (mut loss, mut rhs, mut product, mut count) = (0.0, [0.0; D], [0.0; D], 0);
    for x in rows {
        let (y, f) = (scale * along(&W, x).max(0.0), scale * along(&OTHER, x).max(0.0));
        let r = if f <= y { y - f } else { (ceiling * y - f).min(0.0) };
        loss += r * r / rows.len() as f32;
        if f > 0.0 && r != 0.0 {
            count += 1;
            let z = x[0] + 2.0 * x[1] + 3.0 * x[2] + 4.0 * x[3];
            for j in 0..D {
                rhs[j] += r * x[j];
                product[j] += z * x[j];
            }
        }
    }
    (loss, rhs, product, count)
}

fn assert_near(a: &[f32], b: &[f32]) {
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4 * (1.0 + a.abs())), "{a:?} {b:?}");
}

#[test]
fn rows_up_to_the_ceiling_are_no_equations() {
    let net: Vec<(u32, f32)> = (0..).zip(OTHER).collect();
    let mut counts = Vec::new();
    for ceiling in [1.0, 1.5, 1e6] {
        let sensing = vec![operator(NormalRows::new(5, N, D))].leak();
        let rows = rows_of(&mut sensing[0]);
        let params = Params { ceiling, ..Params::DEFAULT };
        let mut model = at(&mut sensing[0], &params, &[(1.0, W)], &net);
        let (loss, rhs, product, count) = by_hand(&rows, model.fit.scale, ceiling);
        assert_near(&[loss], &[model.loss().unwrap()]);
        let Model { fit, net, single, .. } = &mut model;
        let mut equations = Jacobian::new(fit, net.view().w(), [&mut *single.z, &mut *single.t]);
        let [mut own_rhs, mut diagonal, mut own] = [[0.0; D]; 3];
        equations.set_up(&mut own_rhs, &mut diagonal).unwrap();
        assert_near(&rhs, &own_rhs);
        equations.multiply(&[1.0, 2.0, 3.0, 4.0], &mut own).unwrap();
        assert_near(&product, &own);
        // As they were set up, when other weights are tried.
        equations.loss(Some(&[9.0, -2.0, 0.0, 1.0])).unwrap();
        equations.multiply(&[1.0, 2.0, 3.0, 4.0], &mut own).unwrap();
        assert_near(&product, &own);
        equations.loss(None).unwrap();
        counts.push(count);
        // Steps lower this loss.
        let loss = model.loss().unwrap();
        let better = model.improve(loss, 20, 0.0).unwrap();
        assert!(better < 0.5 * loss && better == model.loss().unwrap(), "{loss} {better}");
    }
    assert!(counts.is_sorted_by(|a, b| a > b) && counts[2] > 0, "{counts:?}");
}

#[test]
fn ceilings_are_for_one_output_with_positive_signs() {
    for (signs, slack) in [(Signs::Positive, 2.0), (Signs::Free, 0.0), (Signs::Unoriented, 0.0)] {
        let sensing = vec![operator(NormalRows::new(5, N, D))].leak();
        let params = Params { signs, ceiling: 3.0, ..Params::DEFAULT };
        let model = at(&mut sensing[0], &params, &[(1.0, W)], &[]);
        assert_eq!(model.fit.slack, slack * model.fit.scale, "{signs:?}");
    }
}
