//! Linear models of scikit-learn.

use super::*;

fn list(mut node: proto::Node, name: &str, floats: &[f32], ints: &[i64]) -> proto::Node {
    let (name, floats, ints) = (name.into(), floats.to_vec(), ints.to_vec());
    node.attribute.push(proto::Attribute { name, floats, ints, ..Default::default() });
    node
}

fn text(mut node: proto::Node, name: &str, text: &str) -> proto::Node {
    let (name, s) = (name.into(), text.as_bytes().to_vec());
    node.attribute.push(proto::Attribute { name, s, ..Default::default() });
    node
}

/// A linear model of scikit-learn.
fn linear(op: &str, weights: &[f32], bias: &[f32]) -> proto::Node {
    list(list(node(op, "x", "label scores"), "coefficients", weights, &[]), "intercepts", bias, &[])
}

#[test]
fn linear_models_of_scikit_learn_are_layers() {
    let regressor = linear("LinearRegressor", &[1.0, -2.0], &[0.5]);
    let one = network(&[2], vec![regressor], vec![]);
    assert_eq!(
        (&one.layers[0].weights[..], &one.layers[0].bias[..]),
        (&[1.0, -2.0][..], &[0.5][..])
    );
    assert_eq!((one.layers[0].relu, one.decision), (false, None));
    // Two classes, the second of which is the first turned round: one output.
    let binary = |after: &str| {
        let weights = [-1.0, 2.0, 1.0, -2.0];
        let node = list(
            linear("LinearClassifier", &weights, &[-0.5, 0.5]),
            "classlabels_ints",
            &[],
            &[0, 1],
        );
        text(node, "post_transform", after)
    };
    let ends = || {
        vec![
            node("Normalizer", "scores", "p"),
            node("ZipMap", "p", "map"),
            node("Cast", "label", "y"),
        ]
    };
    for (after, factor) in [("LOGISTIC", 1.0), ("SOFTMAX", 2.0)] {
        let two = network(&[2], [vec![binary(after)], ends()].concat(), vec![]);
        assert_eq!(two.layers[0].weights, [factor, -2.0 * factor]);
        assert_eq!(
            (&two.layers[0].bias[..], two.decision),
            (&[0.5 * factor][..], Some(Decision::LogOdds))
        );
    }
    // A machine of support vectors gives the score of class 1 alone.
    let margin = |at: i64| {
        let one = node("ArrayFeatureExtractor", "scores at", "y");
        (vec![binary("NONE"), one], vec![integers("at", &[at])])
    };
    let (nodes, constants) = margin(1);
    let two = network(&[2], nodes, constants);
    assert_eq!(
        (&two.layers[0].weights[..], two.decision),
        (&[1.0, -2.0][..], Some(Decision::LogOdds))
    );
    let (nodes, constants) = margin(0);
    assert!(complaint(&[2], nodes, constants).contains("the score of class 1"));
    let classes = list(
        linear("LinearClassifier", &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[]),
        "classlabels_ints",
        &[],
        &[4, 5, 6],
    );
    let scaler =
        list(list(node("Scaler", "x", "s"), "offset", &[3.0, 0.0], &[]), "scale", &[0.5, 2.0], &[]);
    let behind = proto::Node { input: vec!["s".into()], ..classes.clone() };
    let three = network(&[2], vec![scaler, behind], vec![]);
    assert_eq!((three.layers[0].outputs, three.decision), (3, Some(Decision::Largest)));
    assert!(three.notes.iter().any(|note| note.contains("0 is 4")), "{:?}", three.notes);
    // What the scaler says of the columns.
    let spreads = three.spreads.unwrap();
    assert_eq!(
        spreads.iter().map(|of| (of.centre, of.size)).collect::<Vec<_>>(),
        [(3.0, 2.0), (0.0, 0.5)]
    );
    assert!(complaint(&[3], vec![classes.clone()], vec![]).contains("a row for each output"));
    let probit = text(classes, "post_transform", "PROBIT");
    assert!(complaint(&[2], vec![probit], vec![]).contains("PROBIT"));
    let empty = linear("LinearRegressor", &[], &[]);
    assert!(complaint(&[2], vec![empty], vec![]).contains("0 coefficients"));
}
