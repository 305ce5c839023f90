//! Devices that are not there, lack something, or are lost.

use crate::{both_bodies, gpu, limited, normal};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::weights::Weights;
use tamis::operator::machine::Machine;
use tamis::operator::sensing::Sensing;
use tamis::operator::tables::Tables as _;
use tamis_gpu::wgpu::Limits;
use tamis_gpu::{Error, Gpu, GpuOperator, Values, adapters};

#[test]
fn unknown_adapter_is_refused_with_the_names() {
    let error = Gpu::open(Some("no such adapter")).unwrap_err();
    let names: Vec<String> = adapters().into_iter().map(|adapter| adapter.name).collect();
    let wanted = Some("no such adapter".to_owned());
    assert_eq!(error, Error::NoAdapter { wanted, found: names.clone() });
    assert!(names.iter().all(|name| error.to_string().contains(name)) && !names.is_empty());
}

#[test]
fn part_of_a_name_chooses_an_adapter() {
    let name = &gpu().adapter.name;
    let opened = Gpu::open(Some(&name[..name.len() / 2].to_uppercase())).unwrap();
    assert_eq!(opened.adapter.name, *name);
}

#[test]
fn no_adapter_is_an_error_that_says_what_to_install() {
    let error = Error::NoAdapter { wanted: None, found: Vec::new() };
    assert_eq!(error.to_string(), "there is no GPU adapter");
    assert!(error.help().contains("mesa-vulkan-drivers"));
}

#[test]
fn what_is_larger_than_a_binding_names_the_limit() {
    let gpu = limited(1 << 16);
    // 256 rows of 100 inputs are the smallest tile.
    let error = GpuOperator::new(&gpu, 100, 2, Values::F32(&normal(100, 1))).unwrap_err();
    let tamis::Error::Source(error @ Error::Limit { .. }) = error else { panic!("{error:?}") };
    let text = error.to_string();
    assert!(text.contains("max_storage_buffer_binding_size is 65536"), "{text}");
    assert!(text.contains(&gpu.adapter.name), "{text}");
    // A table whose rows that are added up as one no binding holds: its operations cannot fail, the next product does.
    let mut operator = GpuOperator::new(&gpu, 2, 1, Values::F32(&normal(40000, 1))).unwrap();
    let (mut memory, mut table) = (vec![0.0; 20000], vec![0.0; 20000 * 17]);
    let out = operator.machine().rows_in(&mut memory);
    let w = Weights::empty(2, 1);
    let gates = Gates::of(w, Signs::Positive, Empty::Freeze, 0, 0);
    operator.forward(gates, w, out).unwrap();
    let table = operator.machine().rows_in(&mut table);
    operator.machine().open_shares(table, &mut [0.0; 32 * 17]);
    let error = operator.forward(gates, w, out).unwrap_err();
    assert!(matches!(error, tamis::Error::Source(Error::Limit { .. })), "{error:?}");
}

#[test]
fn adapter_without_needed_limits_is_refused() {
    let limits = |_: &Limits| Limits {
        max_compute_invocations_per_workgroup: u32::MAX,
        ..Limits::default()
    };
    let error = Gpu::open_with(None, limits).unwrap_err();
    let Error::Limit { limit, needed, .. } = &error else { panic!("{error:?}") };
    assert_eq!((&limit[..], *needed), ("max_compute_invocations_per_workgroup", u32::MAX.into()));
}

#[test]
fn lost_device_is_an_error_and_no_hang() {
    let gpu = limited(1 << 24);
    let (n, d, m) = (1000, 5, 3);
    let mut operator = GpuOperator::new(&gpu, d, m, Values::F32(&normal(n * d, 1))).unwrap();
    let w = Weights::new(d, m, &[1, 7], &[1.0, -1.0]).unwrap();
    let gates = Gates::of(w, Signs::Positive, Empty::Freeze, 0, 0);
    let (mut memory, mut panel) = (vec![0.0; n], vec![0.0; m * d]);
    let out = operator.machine().rows_in(&mut memory);
    operator.forward(gates, w, out).unwrap();
    operator.gradient(gates, out, 0..m, &mut panel).unwrap();
    gpu.destroy();
    assert!(operator.machine().dot(out, out).is_nan());
    for _ in 0..2 {
        let error = operator.gradient(gates, out, 0..m, &mut panel).unwrap_err();
        let tamis::Error::Source(error) = error else { panic!("{error:?}") };
        assert!(matches!(error, Error::Lost { .. }), "{error}");
        assert!(error.to_string().contains(&gpu.adapter.name) && error.help().contains("resume"));
    }
    assert!(GpuOperator::new(&gpu, d, m, Values::F32(&normal(n * d, 1))).is_err());
}

#[test]
fn wrong_sizes_are_refused() {
    for (d, m, len) in [(0, 1, 1), (1, 0, 1), (2, 1, 3), (3, 1, 2), (1 << 20, 1 << 20, 1 << 20)] {
        assert!(GpuOperator::new(gpu(), d, m, Values::F32(&vec![0.0; len])).is_err(), "{d} {m}");
    }
}

#[test]
fn work_ends_on_request_once() {
    let mut operator = GpuOperator::new(gpu(), 1, 1, Values::F32(&[1.0, -2.0])).unwrap();
    let w = Weights::new(1, 1, &[0], &[1.0]).unwrap();
    let gates = Gates::of(w, Signs::Positive, Empty::Freeze, 0, 0);
    let mut panel = [0.0];
    let mut memory = vec![0.0; 2];
    let r = operator.machine().upload(&[3.0, 1.0], &mut memory);
    operator.heed(Some(Box::new(|| true)));
    let ended = operator.gradient(gates, r, 0..1, &mut panel);
    assert!(matches!(ended, Err(tamis::Error::Stopped)));
    operator.gradient(gates, r, 0..1, &mut panel).unwrap();
    assert_eq!(panel, [3.0]);
}

#[test]
fn rates_of_a_device_are_positive() {
    let rates = tamis_gpu::Roofline::measure(gpu()).unwrap();
    assert!(rates.multiply_adds > 1e6 && rates.bytes > 1e6, "{rates:?}");
    println!("{rates:?}");
}

#[test]
fn kernels_are_timed_on_request() {
    let gpu = limited(1 << 24);
    let (n, d, m) = (3000, 5, 6);
    let mut operator = GpuOperator::new(&gpu, d, m, Values::F32(&normal(n * d, 1))).unwrap();
    let w = Weights::new(d, m, &[1, 7], &[1.0, -1.0]).unwrap();
    let gates = Gates::of(w, Signs::Positive, Empty::Open, 0, 0);
    let (mut memory, mut panel) = (vec![0.0; n], vec![0.0; m * d]);
    let out = operator.machine().rows_in(&mut memory);
    operator.forward(gates, w, out).unwrap();
    operator.gradient(gates, out, 0..m, &mut panel).unwrap();
    assert_eq!(gpu.end_profile(), None);
    // Without a clock there is nothing to time by.
    if !gpu.start_profile() {
        return;
    }
    let expected = panel.clone();
    for _ in 0..3 {
        operator.forward(gates, w, out).unwrap();
        operator.gradient(gates, out, 0..m, &mut panel).unwrap();
    }
    assert_eq!(panel, expected);
    let profile = gpu.end_profile().unwrap();
    operator.forward(gates, w, out).unwrap();
    assert_eq!(gpu.end_profile(), None);
    assert!(profile.submissions >= 3 && profile.waiting > 0.0, "{profile:?}");
    let of = |name: &str| *profile.kernels.iter().find(|time| time.name == name).unwrap();
    let (forward, panel) = (of("forward"), of("panel"));
    assert_eq!((forward.calls, panel.calls, of("solve").calls), (3, 3, 0));
    assert!(panel.seconds > 0.0 && panel.seconds < 10.0, "{panel:?}");
    assert_eq!((forward.multiply_adds, panel.multiply_adds), (18e3, 3.0 * (n * m * d) as f64));
}

#[test]
fn data_that_are_no_numbers_are_refused_as_by_the_reference() {
    for bad in [f32::NAN, f32::INFINITY] {
        let mut values = normal(60, 7);
        values[32] = bad;
        let refused = tamis::data::samples::Rows::new(&values, 6).unwrap_err();
        let error = GpuOperator::new(gpu(), 6, 2, Values::F32(&values)).unwrap_err();
        assert_eq!(error, refused.widen());
    }
}

#[test]
fn products_are_those_of_the_definition() {
    let (rows, columns) = (70, 131);
    // Lines of less than a quad, of a part and of more; on a small binding in pieces.
    let [own, other] = both_bodies();
    let pieces = limited(1 << 16);
    let lines = [(1, &own), (33, &own), (512, &own), (1500, &own), (700, &other), (700, &pieces)];
    for (inner, gpu) in lines {
        let (a, b) = (normal(rows * inner, 1), normal(columns * inner, 2));
        let mut products = tamis_gpu::Products::new(gpu);
        let [own, other] = [&a, &b].map(|values| tamis_gpu::Lines { values, inner });
        let got = products.multiply(own, other).unwrap();
        assert_eq!(got, products.multiply(own, other).unwrap());
        for (at, got) in got.iter().enumerate() {
            let [i, j] = [at / columns, at % columns];
            let lines = a[i * inner..][..inner].iter().zip(&b[j * inner..]);
            let terms = lines.map(|(a, b)| f64::from(*a) * f64::from(*b));
            let wanted: f64 = terms.clone().sum();
            let size: f64 = terms.map(f64::abs).sum();
            assert!(
                (f64::from(*got) - wanted).abs() < 1e-6 * size,
                "{inner} {i} {j}: {got} {wanted}"
            );
        }
    }
}
