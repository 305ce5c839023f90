//! What is wrong with parts of checks is said by key.

use super::super::Spec;
use super::*;

fn spec(changes: &[(&str, &str)]) -> Result<Spec> {
    let mut text = "name='t'\ntitle='t'\nsource='t'\n[[part]]\nname='p'\ntitle='p'\ns=[2]\nn=[50, \
            90]\nepochs=9\n\
                    methods=['theory']\nseeds=[0]\nmetric='error'\nrange=[0,1]\n\
                    data={kind='gates',samples=40,inputs=5,generators='patterns',weights=2}\n"
        .to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    Spec::parse(&text, None)
}

#[test]
fn check_cells_have_its_axes_and_all_patterns() {
    let own = spec(&[("n=[50, 90]", "n=[50]\nd=[3, 5]")]).unwrap();
    let part = &own.part[0];
    // C(3, 2)·4 and C(5, 2)·4 patterns.
    let point = |m, d| Point { m, s: 2, n: 50, d, variant: 0 };
    assert_eq!(part.points(), [point(12, 3), point(40, 5)]);
    let cells = own.cells();
    assert_eq!((cells.len(), part.sizes()), (2, 2));
    assert_eq!(cells[1].id(), "p-theory-m40-s2-n50-d5-seed0");
    assert_eq!(part.points()[1], point(40, 5));
    let usual = spec(&[("n=[50, 90]\n", "")]).unwrap();
    assert_eq!(usual.cells()[0].id(), "p-theory-m40-s2-seed0");
    assert_eq!(usual.part[0].points()[0].n, 40);
}

#[test]
fn too_many_sizes_are_refused_before_allocation() {
    let long = |name: &str| format!("{name}={:?}\n", (1..=900).collect::<Vec<_>>());
    let axes = long("s") + &long("n") + &long("d");
    let error = spec(&[("s=[2]\nn=[50, 90]\n", &axes)]).unwrap_err().to_string();
    assert!(error.contains("m, s, n and d") && error.contains("729000000"), "{error}");
}

#[test]
fn impossible_sketch_or_mask_is_refused_by_key() {
    const DATA: &str = "kind='gates',samples=40,inputs=5,generators='patterns',weights=2";
    let sketch = "kind='sketch',samples=40,inputs=5,weights='ones'";
    let masks = "kind='masks',from='digits',hidden=[9],train=2";
    let changes = |data: &'static str, metric, method: &'static str| {
        let own = [("epochs=9\n", ""), ("n=[50, 90]", ""), ("metric='error'", metric)];
        own.into_iter().chain([("methods=['theory']", method), (DATA, data)])
    };
    let cases = [
        (sketch, "s=[2]", "s=[12]", "at most 100000000 ways"),
        (sketch, "s=[2]", "s=[2]\ndraws=1", "2 to 100000000"),
        (sketch, "s=[2]", "s=[2]\nm=[3]", "no gates"),
        (sketch, "s=[2]", "s=[2]\nvariants=[{movement=-1.0}]", "movement"),
        (sketch, "['sketch-normal']", "['sketch-tangent']", "multiple of 8"),
        (sketch, "['sketch-normal']", "['kept-imp']", "sketches and masks"),
        (masks, "s=[2]", "s=[2]\nd=[5]", "no n or d"),
        (masks, "s=[2]", "s=[900000]", "s within the weights"),
        (masks, "train=2", "train=0", "1 to 5000"),
        (masks, "from='digits'", "from='cifar'", "pictures of mnist, fashion or digits"),
    ];
    for (data, from, to, says) in cases {
        let [metric, method] = match data == sketch {
            true => ["metric='sketch-error'", "methods=['sketch-normal']"],
            false => ["metric='kept-score'", "methods=['kept-uniform']"],
        };
        let all: Vec<_> = changes(data, metric, method).chain([(from, to)]).collect();
        let error = spec(&all).unwrap_err().to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
}

#[test]
fn impossible_check_is_refused_by_key() {
    for (from, to, says) in [
        ("s=[2]", "s=[3]", "multiple of data.weights"),
        ("s=[2]", "s=[2]\nm=[7]", "all patterns"),
        ("s=[2]\n", "", "nonzeros"),
        ("s=[2]", "s=[98]", "for each generator"),
        ("methods=['theory']", "methods=['zero']", "assumption"),
        ("methods=['theory']", "methods=['assumption']", "nothing depends on it"),
        ("epochs=9", "epochs=0", "steps"),
        ("epochs=9", "epochs=9\nhidden=2", "nothing is trained"),
        ("epochs=9", "epochs=9\ninflation=0.5", "inflation"),
        ("epochs=9", "epochs=9\ndraws=0", "draws"),
        ("metric='error'", "metric='eps'", "loss-left"),
        ("weights=2", "weights=6", "data.weights from 1 to d"),
        ("n=[50, 90]", "n=[50, 50]", "every number once"),
        ("generators='patterns'", "generators='gaussian'", "random generators"),
        (
            "kind='gates',samples=40,inputs=5,generators='patterns',weights=2",
            "kind='planted',samples=40,inputs=5,outputs=1,test=0",
            "ways to train",
        ),
    ] {
        let error = spec(&[(from, to)]).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("part p"), "{to}: {error}");
    }
}
