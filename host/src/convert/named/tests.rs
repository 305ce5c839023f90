use proptest::prelude::*;

use super::*;

/// An array of 1, 2, ….
fn tensor(name: &str, dims: &[usize]) -> Tensor {
    let values = (1..=dims.iter().product::<usize>()).map(|i| i as f32).collect();
    Tensor { name: name.into(), dims: dims.to_vec(), values: Some(values) }
}

fn sizes(network: &Network) -> Vec<(&str, usize, usize, usize)> {
    let layers = network.layers.iter();
    layers
        .map(|layer| (layer.name.as_str(), layer.inputs, layer.outputs, layer.bias.len()))
        .collect()
}

fn complaint(tensors: Vec<Tensor>, chosen: Option<&[String]>) -> String {
    network(tensors, chosen, Layout::Auto).unwrap_err().to_string()
}

#[test]
fn names_give_roles_and_sort_numerically() {
    for (name, expected) in [
        ("fc1.weight", (Role::Weights, "fc1")),
        ("0.bias", (Role::Biases, "0")),
        ("coefs_0", (Role::Kernel, "0")),
        ("intercepts_0", (Role::Biases, "0")),
        ("dense/kernel:0", (Role::Kernel, "dense.0")),
        ("W1", (Role::Matrix, "1")),
        ("b1", (Role::Biases, "1")),
        ("model.0.weight", (Role::Weights, "model.0")),
        ("arr_0", (Role::Unknown, "arr_0")),
        ("", (Role::Unknown, "")),
    ] {
        let (role, layer) = role(name);
        assert_eq!((role, layer.as_str()), expected, "{name}");
    }
    let mut names = ["fc10", "fc9", "a", "fc", "fc09", "fc1"];
    names.sort_by_key(|name| natural(name));
    assert_eq!(names, ["a", "fc", "fc1", "fc09", "fc9", "fc10"]);
}

#[test]
fn layers_go_by_their_names_in_natural_order() {
    let tensors = vec![
        tensor("fc10.weight", &[1, 4]),
        tensor("fc2.weight", &[4, 3]),
        tensor("fc2.bias", &[4]),
        tensor("fc10.bias", &[1]),
    ];
    let found = network(tensors, None, Layout::Auto).unwrap();
    assert_eq!(sizes(&found), [("fc2", 3, 4, 4), ("fc10", 4, 1, 1)]);
    assert_eq!(found.layers[0].weights[..4], [1.0, 2.0, 3.0, 4.0]);
    assert_eq!((found.layers[0].relu, found.layers[1].relu), (true, false));
}

#[test]
fn arrays_without_telling_names_go_in_order() {
    let tensors = vec![
        tensor("arr_0", &[3, 4]),
        tensor("arr_1", &[4, 1]),
        tensor("arr_2", &[4]),
        tensor("arr_3", &[1]),
    ];
    let found = network(tensors, None, Layout::Auto).unwrap();
    assert_eq!(sizes(&found), [("arr_0", 3, 4, 4), ("arr_1", 4, 1, 1)]);
    assert_eq!(found.layers[0].weights[..3], [1.0, 5.0, 9.0], "inputs × outputs, by their sizes");
    let text = complaint(vec![tensor("arr_0", &[3, 4]), tensor("arr_1", &[3, 4, 5])], None);
    assert!(text.contains("arr_1") || text.contains("biases"), "{text}");
}

#[test]
fn layers_are_chosen_and_ordered_by_name() {
    let tensors = || {
        vec![tensor("a.weight", &[2, 3]), tensor("b.weight", &[3, 4]), tensor("bn.weight", &[4])]
    };
    assert_eq!(network(tensors(), None, Layout::Auto).unwrap().left_out, ["bn.weight"]);
    let chosen = ["b".to_owned(), "a.weight".to_owned()];
    let found = network(tensors(), Some(&chosen), Layout::Auto).unwrap();
    assert_eq!(sizes(&found), [("b", 4, 3, 0), ("a.weight", 3, 2, 0)]);
    let text = complaint(tensors(), Some(&["c".to_owned()]));
    assert!(text.contains("no layer c") && text.contains("a, b, bn"), "{text}");
    assert!(complaint(tensors(), Some(&["a".to_owned(), "a".to_owned()])).contains("named twice"));
}

#[test]
fn state_dicts_hold_more_than_layers() {
    let layers =
        || vec![tensor("a.weight", &[4, 3]), tensor("a.bias", &[4]), tensor("b.weight", &[2, 4])];
    let own = network(layers(), None, Layout::Auto).unwrap();
    let normalisation =
        [("n.weight", &[4][..]), ("n.bias", &[4]), ("n.running_mean", &[4]), ("n.steps", &[])];
    let optimiser = [("exp_avg.a.weight", &[4, 3][..]), ("optimizer.0.step", &[])];
    let more = |names: &[(&str, &[usize])]| names.iter().map(|(n, d)| tensor(n, d)).collect();
    let all = [layers(), more(&normalisation), more(&optimiser)].concat();
    let found = network(all, None, Layout::Auto).unwrap();
    assert_eq!((&found.layers, &found.names), (&own.layers, &own.names));
    assert_eq!(found.skipped, optimiser.map(|(name, _)| name));
    assert_eq!(found.left_out, normalisation.map(|(name, _)| name));
    // Biases and arrays of more axes without weights are no such thing.
    for (name, dims) in [("c.bias", &[4][..]), ("c.weight", &[2, 3, 3]), ("table", &[4, 4])] {
        let text = complaint([layers(), vec![tensor(name, dims)]].concat(), None);
        assert!(text.contains(name), "{text}");
    }
    let names: Vec<_> = (0..10).map(|k| format!("n{k}")).collect();
    assert_eq!(listed(&names).unwrap(), "n0, n1, n2, n3, n4, n5, n6, n7 and 2 more");
    assert_eq!(listed(&[]), None);
}

#[test]
fn squares_need_a_name_or_a_layout() {
    let square = |name: &str| vec![tensor(name, &[2, 2])];
    let weights =
        |name, layout| network(square(name), None, layout).unwrap().layers.remove(0).weights;
    assert_eq!(weights("0.weight", Layout::Auto), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(weights("0.kernel", Layout::Auto), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(weights("0.weight", Layout::InOut), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(weights("W0", Layout::OutIn), [1.0, 2.0, 3.0, 4.0]);
    assert!(complaint(square("W0"), None).contains("fit both ways"));
    let found =
        network(vec![tensor("a.weight", &[3, 4]), tensor("b.weight", &[4, 2])], None, Layout::Auto)
            .unwrap();
    assert!(found.notes[0].contains("inputs × outputs"), "{:?}", found.notes);
}

#[test]
fn layers_that_do_not_fit_are_named() {
    let text = complaint(vec![tensor("a.weight", &[2, 3]), tensor("b.weight", &[4, 5])], None);
    assert!(text.contains("layer b does not take"), "{text}");
    let text = complaint(vec![tensor("a.weight", &[2, 3]), tensor("a.bias", &[5])], None);
    assert!(text.contains("biases of layer a"), "{text}");
    let text = complaint(vec![tensor("a.bias", &[5])], None);
    assert!(text.contains("biases"), "{text}");
    let integers = Tensor { values: None, ..tensor("a.weight", &[2, 3]) };
    assert!(complaint(vec![integers], None).contains("no matrix of floats"));
    assert!(
        complaint(vec![tensor("conv.weight", &[2, 3, 3, 3])], None).contains("no matrix of floats")
    );
    assert!(complaint(vec![], None).contains("axis"));
}

proptest! {
    #[test]
    fn any_arrays_are_layers_or_an_error(
        shapes in prop::collection::vec(
            ("[a-c.]{0,3}(weight|bias|kernel|w|)[0-2]{0,2}", prop::collection::vec(0usize..4, 0..4)),
            0..6,
        ),
        chosen in prop::option::of(prop::collection::vec("[a-c.]{0,3}[0-2]{0,2}", 0..3)),
        layout in prop::sample::select(vec![Layout::Auto, Layout::OutIn, Layout::InOut]),
    ) {
        let tensors = shapes.iter().map(|(name, dims)| tensor(name, dims)).collect();
        if let Ok(network) = network(tensors, chosen.as_deref(), layout) {
            prop_assert!(network.check().is_ok());
        }
    }

    #[test]
    fn the_natural_order_is_one(names in prop::collection::vec("[a0-2]{0,4}", 3)) {
        let [a, b, c] = &names[..] else { unreachable!() };
        prop_assert_eq!(natural(a) == natural(b), a == b);
        if natural(a) <= natural(b) && natural(b) <= natural(c) {
            prop_assert!(natural(a) <= natural(c));
        }
    }
}
