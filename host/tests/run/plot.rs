//! The pictures: well-formed whatever the data, with the labels and marks that the data asks for.

use std::fmt::Write as _;
use tamis_host::lab::plot::{self, Bins, Heat, HeatCell, Histogram, Panel, Scale, Series};

type Entries = Vec<(usize, f32)>;

/// Numbers that break careless drawing code.
const HARD: [f32; 12] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-45,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.1,
];

fn series<'a>(label: &'a str, values: &'a [f32]) -> Series<'a> {
    Series { label, first: 0, values }
}

fn falling(len: usize, rate: f32) -> Vec<f32> {
    (0..len)
        .map(|i| 3.0 * (-rate * i as f32).exp() * (1.0 + 0.2 * (i as f32 * 1.7).sin()))
        .collect()
}

/// The demo's kind of data: 50 weights among 1000, two of them missed, one too many.
fn weights() -> (Entries, Entries) {
    let planted: Entries =
        (0..50).map(|i| (i * 20 + i * i % 17, (i as f32 * 2.3).sin() * 1.5)).collect();
    let kept = planted.iter().enumerate().filter(|(i, _)| *i != 7 && *i != 30);
    let recovered =
        kept.map(|(i, &(at, v))| (at, v + if i % 9 == 4 { 0.15 } else { 0.0 })).chain([(505, 0.4)]);
    (planted.clone(), recovered.collect())
}

fn predictions() -> (Vec<f32>, Vec<f32>) {
    let labels: Vec<f32> = (0..4000).map(|i| ((i * 7919) % 4001) as f32 / 400.0 - 5.0).collect();
    let predictions =
        labels.iter().enumerate().map(|(i, l)| l + 0.4 * (i as f32 * 12.9898).sin()).collect();
    (labels, predictions)
}

fn demo() -> String {
    let (train, test) = (falling(16, 0.9), falling(16, 0.7));
    let (planted, recovered) = weights();
    let (labels, predictions) = predictions();
    let facts = [
        ("nonzeros, requested and achieved", "50 / 50".to_owned()),
        ("model in flash", "1 040 bytes".to_owned()),
        ("training state", "800 bytes".to_owned()),
        ("workspace", "203 400 bytes of 262 144".to_owned()),
        ("PSNR", "64.2 dB".to_owned()),
    ];
    plot::panel(&Panel {
        title: "A planted network, recovered",
        facts: &facts,
        time: "epoch",
        losses: &[series("training", &train), series("test", &test)],
        planted: &planted,
        recovered: &recovered,
        labels: &labels,
        predictions: &predictions,
    })
}

/// A heat map of every kind of cell: beyond the ends, starred, not measured.
fn heat(values: &[Option<f32>], range: (f32, f32), name: &str) -> String {
    let labels = |of: &[u32]| of.iter().map(u32::to_string).collect::<Vec<_>>();
    let (rows, columns) =
        (labels(&[1, 10, 1000]), labels(&[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]));
    let cells = values.iter().enumerate();
    let cells =
        cells.map(|(at, &value)| HeatCell { value, starred: at == 2, hover: String::new() });
    plot::heat(&Heat {
        title: "Recovery",
        value: "PSNR, dB",
        rows: Scale { name, labels: &rows },
        columns: Scale { name: "s (weights)", labels: &columns },
        cells: &cells.collect::<Vec<_>>(),
        range,
        digits: 0,
        star: "ended by the time limit",
    })
}

/// Magnitudes of normal numbers, and of the larger ones.
fn histograms(log: bool) -> String {
    let bins = Bins { low: if log { 1e-3 } else { 0.0 }, high: 3.0, count: 50, log };
    let mut rng = tamis::base::rng::Rng::new(1, 0);
    let all: Vec<f32> = (0..4000).map(|_| rng.normal().abs()).collect();
    let large = all.iter().copied().filter(|&x| x > 1.0);
    let samples = [
        Histogram::of("all", bins, all.iter().copied()),
        Histogram::of("above 1", bins, large),
        Histogram::of("none", bins, []),
    ];
    plot::histograms("Magnitudes", "|w|", &samples)
}

fn recovery() -> Vec<Option<f32>> {
    let cell = |i: usize| (i % 7 != 6).then_some(200.0 - 8.0 * i as f32);
    (0..30).map(cell).collect()
}

/// The structure of a picture: its size, how often each element occurs, and its words.
fn outline(svg: &str) -> String {
    let document = parse(svg);
    let root = document.root_element();
    let mut out =
        format!("{} × {}\n", root.attribute("width").unwrap(), root.attribute("height").unwrap());
    let elements: Vec<_> = root.descendants().filter(|n| n.is_element()).collect();
    for name in ["rect", "line", "polyline", "polygon", "circle", "text"] {
        let count = elements
            .iter()
            .filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", name)))
            .count();
        writeln!(out, "{name} {count}").unwrap();
    }
    for text in texts(&document) {
        writeln!(out, "\"{text}\"").unwrap();
    }
    out
}

fn parse(svg: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error} in\n{svg}"))
}

fn texts(document: &roxmltree::Document<'_>) -> Vec<String> {
    let texts =
        document.descendants().filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts.map(|n| n.text().unwrap_or_default().trim().to_owned()).collect()
}

/// Compares with the golden file, or writes it, and the picture to look at, where `UPDATE_GOLDEN`
/// is set.
fn check(name: &str, svg: &str) {
    let path = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let found = outline(svg);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).unwrap();
        let picture = format!("{}/{name}.svg", env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(&picture, svg).unwrap();
        println!("look at {picture}");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(found, expected, "{name}: run with UPDATE_GOLDEN=1 after looking at the picture");
}

/// Every word and every mark of a well-formed picture lies on the page, and no number in it is NaN.
fn sound(svg: &str) {
    let document = parse(svg);
    let number = |node: &roxmltree::Node<'_, '_>, name: &str| -> Option<f64> {
        node.attribute(name).map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
    };
    let root = document.root_element();
    let (wide, high) = (number(&root, "width").unwrap(), number(&root, "height").unwrap());
    for node in root.descendants().filter(|n| n.is_element()) {
        for (names, limit) in [(["x", "cx", "x1", "x2"], wide), (["y", "cy", "y1", "y2"], high)] {
            for at in names.iter().filter_map(|name| number(&node, name)) {
                assert!((0.0..=limit).contains(&at), "{at} outside in {node:?}");
            }
        }
        for pair in node.attribute("points").unwrap_or_default().split_whitespace() {
            let (x, y) = pair.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..=wide).contains(&x) && (0.0..=high).contains(&y), "{pair} in {node:?}");
        }
    }
}

#[test]
fn pictures_keep_their_structure() {
    let (train, test) = (falling(16, 0.9), falling(16, 0.7));
    check(
        "loss",
        &plot::loss_curve("Loss", "epoch", &[series("training", &train), series("test", &test)]),
    );
    let (planted, recovered) = weights();
    check("weights", &plot::weights("Weights", &planted, &recovered));
    let (labels, predictions) = predictions();
    check("scatter", &plot::scatter("Predictions", &labels, &predictions));
    check("panel", &demo());
    let exact = [
        series("training", &[1.0, 0.1, f32::NAN, 1e-4, 1e-9, 0.0, 0.0]),
        series("test", &[1.2, 0.2]),
    ];
    check("loss-to-zero", &plot::loss_curve("Exact recovery", "epoch", &exact));
    check(
        "scatter-binary",
        &plot::scatter("Binary", &[0.0, 1.0, 0.0, 1.0], &[0.1, 0.9, -0.2, f32::NAN]),
    );
    check("heat", &heat(&recovery(), (-20.0, 160.0), "m (neurons)"));
    check("histograms", &histograms(false));
    check("histograms-log", &histograms(true));
    check("weights-single", &plot::weights("One weight", &[(5, 1e-8)], &[(5, 1e-8)]));
}

#[test]
fn exact_recovery_puts_every_dot_in_its_ring() {
    let planted: Vec<(usize, f32)> = (0..20).map(|i| (i * 5, i as f32 - 10.0)).collect();
    let svg = plot::weights("Weights", &planted, &planted);
    let document = parse(&svg);
    let circles = |fill: bool| -> Vec<(String, String)> {
        let circles = document.descendants().filter(|n| n.tag_name().name() == "circle");
        let kind = circles.filter(|n| (n.attribute("fill") != Some("none")) == fill);
        kind.map(|n| (n.attribute("cx").unwrap().to_owned(), n.attribute("cy").unwrap().to_owned()))
            .collect()
    };
    // One of each more stands in the legend.
    assert_eq!((circles(false).len(), circles(true).len()), (21, 21));
    let places = |fill| circles(fill).into_iter().skip(1).collect::<Vec<_>>();
    assert_eq!(places(false), places(true));
    assert!(svg.contains("20 of 20 planted weights found, 0 missing, 0 extra"));
    assert_eq!(svg.matches("<polygon").count(), 0);
}

#[test]
fn hard_numbers_neither_panic_nor_leave_the_page() {
    for a in HARD {
        sound(&plot::loss_curve("", "", &[series("", &[a])]));
        sound(&plot::scatter("", &[a], &[a]));
        sound(&plot::weights("", &[(0, a)], &[(usize::MAX, a)]));
        for b in HARD {
            sound(&plot::loss_curve("t", "step", &[series("a", &[a, b, a]), series("b", &[b])]));
            sound(&plot::scatter("t", &[a, b], &[b, a]));
            sound(&plot::weights("t", &[(0, a), (7, b)], &[(0, b), (9, a)]));
            sound(&heat(&[Some(a), Some(b)], (b, a), ""));
            let [low, high] = [a, b].map(f64::from);
            for log in [false, true] {
                let bins = Bins { low, high, count: 3, log };
                sound(&plot::histograms("t", "x", &[Histogram::of("a", bins, HARD)]));
            }
            assert!(plot::sparkline(&[a, b]).chars().count() == 2);
        }
    }
    let last = Series { label: "late", first: usize::MAX, values: &[1.0, 2.0] };
    sound(&plot::loss_curve("t", "step", &[last]));
}

#[test]
fn nothing_to_draw_is_said() {
    let pictures = [
        plot::loss_curve("Loss", "epoch", &[]),
        plot::loss_curve("Loss", "epoch", &[series("none", &[]), series("lost", &[f32::NAN])]),
        plot::weights("Weights", &[], &[(3, f32::INFINITY)]),
        plot::scatter("Predictions", &[], &[1.0]),
        plot::panel(&Panel::default()),
        plot::histograms("Magnitudes", "|w|", &[]),
        heat(&[None, Some(f32::NAN)], (0.0, 1.0), "m"),
    ];
    for (svg, count) in pictures.iter().zip([1, 1, 1, 1, 3, 1, 1]) {
        sound(svg);
        assert_eq!(svg.matches("no data").count(), count, "{svg}");
    }
}

#[test]
fn what_is_left_out_is_counted() {
    let values = [1.0, 0.0, f32::NAN, f32::INFINITY, 1e-9];
    let svg = plot::loss_curve("Loss", "epoch", &[series("training", &values)]);
    assert!(svg.contains("1 value: not above 0, drawn on the line 0"), "{svg}");
    assert!(svg.contains("2 values: not finite, left out"), "{svg}");
    let svg = plot::scatter("Predictions", &[0.0; 9000], &[0.5; 9000]);
    assert!(svg.contains("1500 of 9000 samples drawn"), "{svg}");
}

#[test]
fn long_runs_stay_small_and_keep_their_spikes() {
    let mut values = vec![1.0_f32; 1_000_000];
    values[123_456] = 1e6;
    values[765_432] = 1e-6;
    let svg = plot::loss_curve("Loss", "step", &[series("training", &values)]);
    sound(&svg);
    assert!(svg.len() < 40_000, "{} bytes", svg.len());
    let all: Vec<f32> = vec![1e-6, 1.0, 1e6];
    let ticks = |svg: &str| {
        texts(&parse(svg)).into_iter().filter(|t| t.starts_with("10")).collect::<Vec<_>>()
    };
    assert_eq!(ticks(&svg), ticks(&plot::loss_curve("Loss", "step", &[series("training", &all)])));
    let curve = svg.lines().filter(|l| l.starts_with("<polyline")).max_by_key(|l| l.len()).unwrap();
    let (_, points) = curve.split_once("points=\"").unwrap();
    let mut heights: Vec<&str> =
        points.split_whitespace().filter_map(|p| p.split_once(',')).map(|(_, y)| y).collect();
    heights.sort_unstable();
    heights.dedup();
    assert!(heights.len() >= 3, "the spikes are gone: {heights:?}");
    let many: Vec<(usize, f32)> = (0..100_000).map(|i| (i, i as f32)).collect();
    assert!(plot::weights("Weights", &many, &many).len() < 500_000);
}

#[test]
fn the_legend_shows_what_is_drawn() {
    let circles = |values: &[f32]| {
        plot::loss_curve("Loss", "step", &[series("run", values)]).matches("<circle").count()
    };
    // One dot a value and one in the legend; a long curve has none, and its legend neither.
    assert_eq!(
        (circles(&[0.5]), circles(&falling(15, 0.5)), circles(&falling(300, 0.99))),
        (2, 16, 0)
    );
    assert_eq!(circles(&[0.5, f32::NAN, 0.25]), 3);
}

#[test]
fn heat_map_has_a_coloured_cell_per_number() {
    let values = recovery();
    let svg = heat(&values, (-20.0, 160.0), "m");
    let words = texts(&parse(&svg));
    for value in values.iter().flatten() {
        let word = format!("{value:.0}");
        assert!(words.iter().any(|w| w.trim_end_matches('*') == word), "{word} in {words:?}");
    }
    assert_eq!(words.iter().filter(|w| w.ends_with('*')).count(), 1);
    // The ground, the colour bar, and one rectangle a cell.
    let rectangles = svg.matches("<rect").count();
    assert_eq!(rectangles, 1 + 60 + values.iter().flatten().count());
    assert!(!heat(&[Some(1.0)], (0.0, 1.0), "m").contains("time limit"), "no star, no note");
}

#[test]
fn names_cannot_break_the_page() {
    let nasty = "</text><script>&\"'\u{0}\u{8}\u{ffff}";
    let long = "a very long name ".repeat(40);
    for name in [nasty, &long] {
        let facts = [(name, name.to_owned())];
        let losses: Vec<Series<'_>> = (0..9).map(|_| series(name, &[1.0, 0.5])).collect();
        let panel =
            Panel { title: name, facts: &facts, time: name, losses: &losses, ..Panel::default() };
        let map = heat(&recovery(), (-20.0, 160.0), name);
        for svg in [plot::panel(&panel), map] {
            sound(&svg);
            assert!(!svg.contains("<script"));
        }
    }
}

#[test]
fn dark_readers_get_dark_colours() {
    let svg = plot::loss_curve("Loss", "epoch", &[series("training", &[1.0, 0.1])]);
    let (_, rules) = svg.split_once("prefers-color-scheme:dark").unwrap();
    let (rules, drawing) = rules.split_once("</style>").unwrap();
    let colours = drawing.split(['"']).filter(|part| part.starts_with('#'));
    for colour in colours {
        assert!(rules.contains(&format!("[fill=\"{colour}\"]")), "{colour} has no dark form");
    }
}
