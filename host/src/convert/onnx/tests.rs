use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::convert::{Decision, Dense};

mod linear;

/// A constant of floats.
fn floats(name: &str, dims: &[i64], values: &[f32]) -> proto::Tensor {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    proto::Tensor {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: 1,
        raw_data: raw.into(),
        ..Default::default()
    }
}

fn integers(name: &str, values: &[i64]) -> proto::Tensor {
    proto::Tensor {
        name: name.into(),
        dims: vec![values.len() as i64],
        data_type: 7,
        int64_data: values.to_vec(),
        ..Default::default()
    }
}

/// A node `op` of inputs parted by spaces.
fn node(op: &str, inputs: &str, output: &str) -> proto::Node {
    proto::Node {
        op_type: op.into(),
        name: format!("{op}-node"),
        input: inputs.split_whitespace().map(String::from).collect(),
        output: output.split_whitespace().map(String::from).collect(),
        ..Default::default()
    }
}

fn with(mut node: proto::Node, name: &str, i: i64, f: f32) -> proto::Node {
    node.attribute.push(proto::Attribute { name: name.into(), i, f, ..Default::default() });
    node
}

fn info(name: &str, dims: &[i64]) -> proto::ValueInfo {
    let dim = dims
        .iter()
        .map(|&n| proto::Dim { dim_value: (n > 0).then_some(n), dim_param: None })
        .collect();
    let tensor_type = Some(proto::TensorType { elem_type: 1, shape: Some(proto::Shape { dim }) });
    proto::ValueInfo { name: name.into(), kind: Some(proto::Type { tensor_type }) }
}

/// A file with the input `x`, of a row of `dims`, and the output that the last node gives.
fn file(dims: &[i64], nodes: Vec<proto::Node>, constants: Vec<proto::Tensor>) -> Vec<u8> {
    let output = nodes.last().and_then(|node| node.output.first()).cloned().unwrap_or_default();
    let graph = proto::Graph {
        node: nodes,
        initializer: constants,
        input: vec![info("x", &[&[0], dims].concat())],
        output: vec![info(&output, &[])],
        ..Default::default()
    };
    proto::Model { ir_version: 8, graph: Some(graph), ..Default::default() }.encode_to_vec()
}

fn load(file: Vec<u8>) -> Result<Network> {
    read(file, &mut |name| Err(Error::new(format!("{name} asked for"))))
}

fn network(dims: &[i64], nodes: Vec<proto::Node>, constants: Vec<proto::Tensor>) -> Network {
    load(file(dims, nodes, constants)).unwrap()
}

fn complaint(dims: &[i64], nodes: Vec<proto::Node>, constants: Vec<proto::Tensor>) -> String {
    load(file(dims, nodes, constants)).unwrap_err().to_string()
}

/// `[[1, 2, 3], [4, 5, 6]]`, two inputs and three outputs of `MatMul`.
fn w() -> proto::Tensor {
    floats("w", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

#[test]
fn every_layer_spelling_gives_the_same_weights() {
    let expected = vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    let turned = || floats("t", &[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let held = |tensor| {
        let mut constant = node("Constant", "", "c");
        constant.attribute.push(proto::Attribute {
            name: "value".into(),
            t: Some(tensor),
            ..Default::default()
        });
        constant
    };
    let as_list = proto::Tensor {
        raw_data: Bytes::new(),
        float_data: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        ..w()
    };
    let doubles = proto::Tensor {
        data_type: 11,
        raw_data: Bytes::new(),
        double_data: (1..=6).map(f64::from).collect(),
        ..w()
    };
    let halves: Vec<u8> =
        (1..=6).flat_map(|i| half::f16::from_f32(i as f32).to_le_bytes()).collect();
    let halves = proto::Tensor { data_type: 10, raw_data: halves.into(), ..w() };
    let cases = [
        (vec![node("MatMul", "x w", "y")], vec![w()]),
        (vec![node("MatMul", "x w", "y")], vec![as_list]),
        (vec![node("MatMul", "x w", "y")], vec![doubles]),
        (vec![node("MatMul", "x w", "y")], vec![halves]),
        (vec![node("Gemm", "x w", "y")], vec![w()]),
        (vec![with(node("Gemm", "x t", "y"), "transB", 1, 0.0)], vec![turned()]),
        (vec![node("Transpose", "t", "u"), node("MatMul", "x u", "y")], vec![turned()]),
        (vec![held(w()), node("MatMul", "x c", "y")], vec![]),
        (
            vec![node("Identity", "x", "z"), node("Cast", "w", "v"), node("MatMul", "z v", "y")],
            vec![w()],
        ),
    ];
    for (at, (nodes, constants)) in cases.into_iter().enumerate() {
        let network = network(&[2], nodes, constants);
        let [layer] = &network.layers[..] else { panic!("case {at}") };
        assert_eq!((layer.inputs, layer.outputs, &layer.weights), (2, 3, &expected), "case {at}");
        assert!(layer.bias.is_empty() && !layer.relu);
    }
}

#[test]
fn biases_come_from_gemm_and_either_add_operand() {
    let b = || floats("b", &[1, 3], &[0.5, 0.0, -1.0]);
    for nodes in [
        vec![node("Gemm", "x w b", "y")],
        vec![node("MatMul", "x w", "m"), node("Add", "m b", "y")],
        vec![node("MatMul", "x w", "m"), node("Add", "b m", "y")],
    ] {
        assert_eq!(network(&[2], nodes, vec![w(), b()]).layers[0].bias, [0.5, 0.0, -1.0]);
    }
    let scaled = with(with(node("Gemm", "x w b", "y"), "alpha", 0, 2.0), "beta", 0, -0.5);
    let layer = &network(&[2], vec![scaled], vec![w(), b()]).layers[0];
    assert_eq!((&layer.weights[..2], &layer.bias[..]), (&[2.0, 8.0][..], &[-0.25, 0.0, 0.5][..]));
}

#[test]
fn leading_affine_maps_are_folded_into_the_layer() {
    // ((x - 3) * 2) / 4 + 1 = x / 2 - 1/2 for both inputs
    let nodes = vec![
        node("Sub", "x three", "a"),
        node("Mul", "a two", "b"),
        node("Div", "b four", "c"),
        node("Add", "c one", "d"),
        node("MatMul", "d w", "y"),
    ];
    let constants = vec![
        floats("three", &[], &[3.0]),
        floats("two", &[1, 2], &[2.0, 2.0]),
        floats("four", &[1], &[4.0]),
        floats("one", &[2], &[1.0, 1.0]),
        w(),
    ];
    let network = network(&[2], nodes, constants);
    let layer = &network.layers[0];
    assert_eq!(layer.weights, [0.5, 2.0, 1.0, 2.5, 1.5, 3.0]);
    assert_eq!(layer.bias, [-2.5, -3.5, -4.5]);
    assert!(
        network.notes[0].contains("Mul-node") && network.notes[0].contains("folded"),
        "{:?}",
        network.notes
    );
}

#[test]
fn every_hidden_layer_of_chain_ends_with_relu() {
    let second = floats("v", &[3, 1], &[1.0, -1.0, 0.5]);
    let nodes = vec![
        node("Flatten", "x", "f"),
        node("MatMul", "f w", "m"),
        node("Relu", "m", "r"),
        node("Dropout", "r", "d mask"),
        node("MatMul", "d v", "n"),
        node("Reshape", "n shape", "y"),
    ];
    let network = network(&[2, 1], nodes, vec![w(), second, integers("shape", &[-1, 1])]);
    let sizes: Vec<_> =
        network.layers.iter().map(|layer| (layer.inputs, layer.outputs, layer.relu)).collect();
    assert_eq!(sizes, [(2, 3, true), (3, 1, false)]);
    assert_eq!(network.decision, None);
    assert!(network.notes[0].contains("Dropout"));
}

#[test]
fn the_end_of_a_classifier_is_a_decision() {
    let layer = || node("MatMul", "x w", "m");
    let softmax = network(&[2], vec![layer(), node("Softmax", "m", "y")], vec![w()]);
    assert_eq!(softmax.decision, Some(Decision::Largest));
    let argmax = with(node("ArgMax", "m", "y"), "axis", -1, 0.0);
    assert_eq!(network(&[2], vec![layer(), argmax], vec![w()]).decision, Some(Decision::Largest));
    let one = || floats("v", &[2, 1], &[1.0, -1.0]);
    let sigmoid = || vec![node("MatMul", "x v", "m"), node("Sigmoid", "m", "p")];
    let plain = network(&[2], sigmoid(), vec![one()]);
    assert_eq!(plain.decision, Some(Decision::LogOdds));

    let pair = |sub: &str, concat: &str| {
        let mut nodes = sigmoid();
        let argmax = with(node("ArgMax", "pair", "class"), "axis", 1, 0.0);
        let labels = node("ArrayFeatureExtractor", "labels class", "y");
        nodes.extend([node("Sub", sub, "q"), node("Concat", concat, "pair"), argmax, labels]);
        (nodes, vec![one(), floats("one", &[], &[1.0]), integers("labels", &[3, 8])])
    };
    let (nodes, constants) = pair("one p", "q p");
    let two = network(&[2], nodes, constants);
    assert_eq!(two.decision, Some(Decision::LogOdds));
    assert!(two.notes.iter().any(|note| note.contains("0 is 3, 1 is 8")), "{:?}", two.notes);
    let (nodes, constants) = pair("one p", "p q");
    assert!(complaint(&[2], nodes, constants).contains("Concat"), "classes the other way round");

    let several = complaint(&[2], vec![layer(), node("Sigmoid", "m", "y")], vec![w()]);
    assert!(several.contains("Sigmoid of several outputs"), "{several}");
    let rows = with(node("ArgMax", "m", "y"), "axis", 0, 0.0);
    assert!(complaint(&[2], vec![layer(), rows], vec![w()]).contains("axis 0"));
}

#[test]
fn unsupported_features_are_named_with_their_node() {
    let layer = || node("MatMul", "x w", "m");
    for op in ["Tanh", "Conv", "LayerNormalization", "QLinearMatMul"] {
        let text = complaint(&[2], vec![layer(), node(op, "m", "y")], vec![w()]);
        assert!(text.starts_with(&format!("operator {op} (node {op}-node)")), "{text}");
    }
    let foreign = proto::Node { domain: "com.acme".into(), ..node("Relu", "m", "y") };
    assert!(complaint(&[2], vec![layer(), foreign], vec![w()]).contains("com.acme"));
    let trans_a = with(node("Gemm", "x w", "y"), "transA", 1, 0.0);
    assert!(complaint(&[2], vec![trans_a], vec![w()]).contains("transA"));
    let twice = vec![layer(), node("MatMul", "m v", "y")];
    let text = complaint(&[2], twice, vec![w(), floats("v", &[3, 1], &[1.0; 3])]);
    assert!(text.contains("Relu behind layer w"), "{text}");
    let residual = vec![layer(), node("Relu", "m", "r"), node("Add", "r m", "y")];
    assert!(complaint(&[2], residual, vec![w()]).contains("a chain"));
    let rows = vec![node("Flatten", "x", "f"), layer()];
    assert!(complaint(&[2], rows, vec![w()]).contains("a chain"), "x is used twice");
    assert!(complaint(&[3], vec![layer()], vec![w()]).contains("for 2"), "three inputs");
    assert!(complaint(&[2, 2], vec![layer()], vec![w()]).contains("Flatten"), "rows of rows");
    let reshape = vec![node("Reshape", "x shape", "f"), node("MatMul", "f w", "y")];
    assert!(
        complaint(&[4], reshape, vec![w(), integers("shape", &[-1, 2])])
            .contains("rows that stay rows")
    );
    assert!(complaint(&[2], vec![node("Relu", "x", "y")], vec![]).contains("Relu behind a layer"));
    assert!(
        complaint(&[2], vec![node("Identity", "x", "y")], vec![]).contains("a layer with weights")
    );
    assert!(
        complaint(&[2], vec![node("MatMul", "w x", "y")], vec![w()]).contains("rows times weights")
    );
    let scaled = vec![layer(), node("Relu", "m", "r"), node("Mul", "r two", "y")];
    assert!(complaint(&[2], scaled, vec![w(), floats("two", &[], &[2.0])]).contains("Mul-node"));
    let rows = vec![layer(), node("Add", "m b", "y")];
    assert!(
        complaint(&[2], rows, vec![w(), floats("b", &[2, 3], &[1.0; 6])]).contains("row to row")
    );
}

#[test]
fn damaged_constants_are_named() {
    let layer = |tensor| complaint(&[2], vec![node("MatMul", "x w", "y")], vec![tensor]);
    for dims in [vec![2, 4], vec![1 << 40, 3]] {
        assert!(layer(proto::Tensor { dims, ..w() }).contains("w has more or fewer values"));
    }
    assert!(
        layer(proto::Tensor { dims: vec![i64::MAX, i64::MAX], ..w() })
            .contains("axes that no array has")
    );
    assert!(layer(proto::Tensor { dims: vec![2, -3], ..w() }).contains("axes that no array has"));
    assert!(layer(proto::Tensor { dims: vec![6], ..w() }).contains("two axes"));
    assert!(layer(proto::Tensor { data_type: 3, ..w() }).contains("not of floats"));
    assert!(layer(floats("w", &[2, 1], &[1.0, f32::NAN])).contains("NaN at place 1"));
    let twice = complaint(&[2], vec![node("MatMul", "x w", "y")], vec![w(), w()]);
    assert!(twice.contains("two constants have one name") && twice.contains("w twice"), "{twice}");
    let gone = vec![node("MatMul", "x y", "z")];
    assert!(complaint(&[2], gone, vec![]).contains("a chain"));
}

#[test]
fn external_weights_are_read_only_from_model_folder() {
    let entry = |key: &str, value: &str| proto::Entry { key: key.into(), value: value.into() };
    let outside = |location: &str, offset: &str| {
        let external_data =
            vec![entry("location", location), entry("offset", offset), entry("length", "24")];
        let tensor =
            proto::Tensor { raw_data: Bytes::new(), data_location: 1, external_data, ..w() };
        let bytes = file(&[2], vec![node("MatMul", "x w", "y")], vec![tensor]);
        let held = Bytes::from([&[0; 8][..], &w().raw_data].concat());
        read(bytes, &mut |name| {
            if name == "m.data" { Ok(held.clone()) } else { Err(Error::new("opened")) }
        })
    };
    assert_eq!(outside("m.data", "8").unwrap().layers[0].weights, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    for (location, offset) in [
        ("../m.data", "8"),
        ("/m.data", "8"),
        ("a/m.data", "8"),
        ("..", "8"),
        ("", "8"),
        ("C:m.data", "8"),
    ] {
        let text = outside(location, offset).unwrap_err().to_string();
        assert!(text.contains("not opened"), "{location}: {text}");
    }
    for offset in ["9", "-1", "18446744073709551615", "x"] {
        let text = outside("m.data", offset).unwrap_err().to_string();
        assert!(text.contains("not where the model says"), "{offset}: {text}");
    }
}

#[test]
fn excessive_reuse_of_constants_is_an_error() {
    let wide = floats("b", &[1, 3], &[0.5; 3]);
    let many: Vec<_> =
        (0..5000).map(|i| node("Add", &format!("m{i} b"), &format!("m{}", i + 1))).collect();
    let nodes = [vec![node("MatMul", "x w", "m0")], many].concat();
    assert_eq!(
        network(&[2], nodes, vec![w(), wide]).layers[0].bias,
        [2500.0; 3],
        "small ones are harmless"
    );
    let side = 300;
    let square = floats("w", &[side, side], &vec![0.5; (side * side) as usize]);
    let twice =
        vec![node("MatMul", "x w", "m"), node("Relu", "m", "r"), node("MatMul", "r w", "y")];
    assert!(complaint(&[side], twice, vec![square]).contains("one large array"));
}

/// Layers of any sizes and weights.
fn layers() -> impl Strategy<Value = Vec<Dense>> {
    (prop::collection::vec(1usize..6, 2..6), any::<u64>()).prop_map(|(sizes, seed)| {
        let mut rng = tamis::base::rng::Rng::new(seed, 0);
        let count = sizes.len() - 1;
        let pairs = sizes.iter().zip(sizes.iter().skip(1)).enumerate();
        pairs
            .map(|(l, (&inputs, &outputs))| {
                let mut draw = |n: usize| (0..n).map(|_| rng.normal()).collect::<Vec<f32>>();
                let weights = draw(inputs * outputs);
                let bias = if l % 2 == 0 { draw(outputs) } else { Vec::new() };
                Dense {
                    name: format!("{}.weight", 2 * l),
                    inputs,
                    outputs,
                    weights,
                    bias,
                    relu: l + 1 < count,
                }
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_to_the_bit(layers in layers()) {
        prop_assert_eq!(load(write(&layers, None).unwrap()).unwrap().layers, layers);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = load(bytes);
    }

    #[test]
    fn mutated_files_never_panic_the_reader(
        layers in layers(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = write(&layers, None).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = load(bytes.clone());
        bytes.truncate(cut.index(bytes.len()));
        let _ = load(bytes);
    }

    #[test]
    fn graphs_of_known_operators_never_panic_the_reader(
        ops in prop::collection::vec((0usize..20, 0usize..8, 0usize..8, -2i64..3), 1..12),
    ) {
        const OPS: [&str; 20] = [
            "MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "Scaler", "Relu", "Identity", "Dropout", "Cast", "Flatten",
            "Reshape", "Squeeze", "Softmax", "Sigmoid", "ArgMax", "Concat", "Transpose", "Constant",
        ];
        const NAMES: [&str; 8] = ["w", "v", "b", "one", "shape", "x", "", "gone"];
        let nodes = ops.iter().enumerate().map(|(at, &(op, a, b, i))| {
            let last = if at == 0 { "x".to_owned() } else { format!("n{}", at - 1) };
            let first = if a < 4 { last.clone() } else { NAMES[a].to_owned() };
            let node = node(OPS[op], &format!("{first} {}", NAMES[b]), &format!("n{at}"));
            with(with(node, "axis", i, 0.0), "transB", i, 0.0)
        });
        let constants = vec![
            floats("w", &[2, 2], &[1.0; 4]),
            floats("v", &[2, 1], &[1.0; 2]),
            floats("b", &[2], &[0.0, 1.0]),
            floats("one", &[], &[1.0]),
            integers("shape", &[-1, 2]),
        ];
        let _ = load(file(&[2], nodes.collect(), constants));
    }
}
