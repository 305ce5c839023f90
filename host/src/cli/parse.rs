//! Values of flags that are more than a number.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis::learn::iht::{Refine, Step};
use tamis::learn::optimiser::Optimiser;
use tamis::learn::train::Rank;
use tamis::network::gates::{Empty, Signs};

use crate::Result;
use crate::base::check_setting;
use crate::data::augment::{MOST, PictureSize};
use crate::model::{Limited, Target};
use crate::train::{Moments, SupportRule, parse_weight};

/// What a parser of a flag gives to clap, which prefixes the flag and the value to a complaint.
type Parsed<T> = std::result::Result<T, String>;

/// A value of a flag: its name, what it stands for, and its help.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<T>(pub(super) &'static str, pub(super) T, pub(super) &'static str);

/// A parser of one of these names.
pub(super) fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [Named<T>; N],
) -> impl TypedValueParser<Value = T> {
    let names = all.map(|Named(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).try_map(move |text| {
        let value = all.iter().find(|Named(name, ..)| *name == text);
        value.map(|Named(_, value, _)| *value).ok_or("no such value")
    })
}

pub(super) const SIGNS: [Named<Signs>; 3] = [
    Named("positive", Signs::Positive, "All output weights are +1, as published"),
    Named("balanced", Signs::Balanced, "Half of them are -1: for labels of both signs"),
    Named("free", Signs::Free, "As the labels ask for (recipe lm)"),
];

pub(super) const EMPTY: [Named<Empty>; 3] = [
    Named("freeze", Empty::Freeze, "They stay without, as in the published code"),
    Named("open", Empty::Open, "Their gates are open on every row, as in the paper's formula"),
    Named("reseed", Empty::Reseed, "They start again from a random generator"),
];

pub(super) const OPTIMISERS: [Named<Optimiser>; 2] = [
    Named("adam", Optimiser::Adam, "Adam with betas 0.9 and 0.999"),
    Named("sgd", Optimiser::Sgd { momentum: 0.9 }, "Stochastic gradient descent with momentum"),
];

pub(super) const SUPPORTS: [Named<SupportRule>; 5] = [
    Named("anneal", SupportRule::Anneal, "It begins larger, shrinks, and moves meanwhile"),
    Named("gmp", SupportRule::Gmp, "Gradual magnitude pruning, from the dense network"),
    Named("rigl", SupportRule::Rigl, "RigL: the smallest make room for the largest gradients"),
    Named("set", SupportRule::Set, "SET: the smallest make room for random weights"),
    Named(
        "momentum",
        SupportRule::Momentum,
        "After sparse momentum: as rigl, by gradients over ten batches, all layers together",
    ),
];

/// `--moments`
pub(super) const MOMENTS: [Named<Moments>; 2] = [
    Named("f32", Moments::F32, "32-bit floats"),
    Named("bf16", Moments::Bf16, "bfloat16, squares rounded by chance"),
];

/// `--recipe`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RecipeName {
    /// dynamic for classes, else lm; and lm, anneal or paper where one of their settings is given
    Auto,
    /// Levenberg-Marquardt hard thresholding with tried moves: finds the exact network where there
    /// is one
    Lm,
    /// Adam on a support that starts larger and shrinks to S, for two classes or more
    Anneal,
    /// The published settings; the random starts of --trials are ours, --trials 1 leaves them out
    Paper,
    /// The published settings for several outputs or classes, with epochs that diverge undone and
    /// the best iterate as the result
    PaperSafe,
    /// The dense network, trained and pruned by magnitude round by round: the baseline, in dense
    /// memory
    Imp,
    /// The weights that --mask keeps, by stochastic gradient descent in memory for these alone
    Masked,
    /// Any number of layers from nothing, on a support that shrinks to S and moves, by Adam with weight decay
    Dynamic,
    /// A dense network, trained and pruned: whole neurons first, then weights, as tamis prune does; in dense
    /// memory
    Group,
}

/// `--device`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DeviceName {
    /// The threads of the CPU
    Cpu,
    /// A GPU: the first one, or that of --adapter
    Gpu,
    /// A GPU where there is one and the problem is large, else the CPU
    Auto,
}

/// `--augment`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AugmentName {
    /// Pictures, of a size where it is given.
    Images(Option<PictureSize>),
    /// The deviation of noise.
    Noise(f64),
}

pub(super) fn augment(text: &str) -> std::result::Result<AugmentName, String> {
    let wrong = || {
        format!(
            "expected images, images=WIDTHxHEIGHT or noise=DEVIATION from 0 to {MOST:e}, got {text:?}"
        )
    };
    match text.split_once('=') {
        None if text == "images" => Ok(AugmentName::Images(None)),
        Some(("images", size)) => {
            let (width, height) = size.split_once('x').ok_or_else(wrong)?;
            let side = |text: &str| text.parse().ok().filter(|side| *side > 0).ok_or_else(wrong);
            let (width, height) = (side(width)?, side(height)?);
            Ok(AugmentName::Images(Some(PictureSize { width, height })))
        }
        Some(("noise", deviation)) => {
            let deviation: f64 = deviation.parse().map_err(|_| wrong())?;
            let holds = (0.0..=f64::from(MOST)).contains(&deviation);
            holds.then_some(AugmentName::Noise(deviation)).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

impl RecipeName {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Lm => "lm",
            Self::Anneal => "anneal",
            Self::Paper => "paper",
            Self::PaperSafe => "paper-safe",
            Self::Imp => "imp",
            Self::Masked => "masked",
            Self::Dynamic => "dynamic",
            Self::Group => "group",
        }
    }
}

/// `normalised`, `theory` (beta is estimated) or `fixed:ETA`.
pub(super) fn step(text: &str) -> Parsed<Step> {
    match text.split_once(':') {
        None if text == "normalised" => Ok(Step::Normalised),
        None if text == "theory" => Ok(Step::Theory { beta: 0.0 }),
        Some(("fixed", eta)) => match eta.parse::<f32>() {
            Ok(eta) if eta.is_finite() && eta > 0.0 => Ok(Step::Fixed(eta)),
            _ => Err(format!("the step size is a number above 0, not {eta:?}")),
        },
        _ => Err("one of normalised, theory, fixed:ETA".into()),
    }
}

/// `exact`, `sketch` or `sketch:DECAY`.
pub(super) fn rank(text: &str) -> Parsed<Rank> {
    match text.split_once(':') {
        None if text == "exact" => Ok(Rank::Exact),
        None if text == "sketch" => Ok(Rank::Sketch { decay: 1.0 }),
        Some(("sketch", decay)) => match decay.parse::<f32>() {
            Ok(decay) if (0.0..=1.0).contains(&decay) => Ok(Rank::Sketch { decay }),
            _ => Err(format!("the decay is a number from 0 to 1, not {decay:?}")),
        },
        _ => Err("one of exact, sketch, sketch:DECAY".into()),
    }
}

/// `armijo`, `cg` or `none`, with a number of steps if wanted: `cg:20`.
pub(super) fn refine(text: &str) -> Parsed<Refine> {
    let (name, steps) = text.split_once(':').unwrap_or((text, "10"));
    let steps = steps.parse().map_err(|_| format!("no number of steps: {steps:?}"))?;
    match (name, Refine::PAPER) {
        ("none", _) if name == text => Ok(Refine::None),
        ("cg", _) => Ok(Refine::ConjugateGradient { steps, tolerance: 1e-4 }),
        ("armijo", Refine::Armijo { decrease, halvings, .. }) => {
            Ok(Refine::Armijo { steps, decrease, halvings })
        }
        _ => Err("one of armijo, cg, none; armijo:K and cg:K set the number of steps".into()),
    }
}

/// Two numbers, `LOW,HIGH`.
pub(super) fn interval(text: &str) -> Parsed<[f32; 2]> {
    let ends = text.split_once(',').map(|(low, high)| [low, high].map(|end| end.trim().parse()));
    match ends {
        Some([Ok(low), Ok(high)]) if low < high => Ok([low, high]),
        _ => Err("two numbers LOW,HIGH, LOW below HIGH, are expected here".into()),
    }
}

pub(super) fn whole<T: TryFrom<u64>>(text: &str) -> Parsed<T> {
    let most = (u64::MAX >> (64 - 8 * size_of::<T>())).to_string();
    let parsed = text.trim().parse::<u64>().ok().and_then(|count| T::try_from(count).ok());
    parsed.ok_or_else(|| format!("a whole number from 0 to {most} is expected here"))
}

pub(super) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

pub(super) fn at_least_zero(flag: &str, value: Option<f64>) -> Result<Option<f64>> {
    let (got, help) = (value.unwrap_or(0.0), format!("leave {flag} out for the default"));
    check_setting(got >= 0.0 && got.is_finite(), format_args!("{flag} 0 or more"), got, &help)?;
    Ok(value)
}

pub(super) fn limit_above_zero(flag: &str, value: Option<f64>) -> Result<Option<f64>> {
    let (got, help) = (value.unwrap_or(1.0), format!("leave {flag} out for no limit"));
    check_setting(got > 0.0 && got.is_finite(), format_args!("{flag} above 0"), got, &help)?;
    Ok(value)
}

pub(super) fn number(text: &str) -> Parsed<f64> {
    text.trim().parse().map_err(|_| "a number is expected here, such as 0.05".into())
}

/// `A..B`, the second above the first.
pub(super) fn range(text: &str) -> Parsed<Range<usize>> {
    let parse = |(a, b): (&str, &str)| Some(a.trim().parse().ok()?..b.trim().parse().ok()?);
    let parsed = text.split_once("..").and_then(parse).filter(|range| !range.is_empty());
    parsed.ok_or_else(|| "a range A..B of counts with A below B, such as 0..5000".into())
}

/// Weights to pin, as `--must-keep` names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToPin {
    Weight(usize, usize),
    File(PathBuf),
}

/// `NEURON:INPUT`, a weight of the first layer, both counted from 0, or `@FILE` of such names.
pub(super) fn to_pin(text: &str) -> Parsed<ToPin> {
    match (text.strip_prefix('@'), parse_weight(text)) {
        (Some(path), _) if !path.is_empty() => Ok(ToPin::File(path.into())),
        (None, Some((neuron, input))) => Ok(ToPin::Weight(neuron, input)),
        _ => Err("a weight NEURON:INPUT of two numbers from 0 is expected here, such as 0:3, or \
             @FILE with such names"
            .into()),
    }
}

pub(super) fn target(text: &str) -> Parsed<Target> {
    Target::find(text).map_err(|_| {
        let names: Vec<_> = Target::all().map(|target| target.name()).collect();
        format!("one of {}; for another device take its kind of processor", names.join(", "))
    })
}

/// `WHAT=N`, such as `ram=16K`.
pub(super) fn limit(text: &str) -> Parsed<(Limited, u64)> {
    let names: Vec<_> = Limited::value_variants().iter().map(|what| what.name()).collect();
    let wrong = || format!("a limit WHAT=N with one of {}, such as ram=16K", names.join(", "));
    let (name, most) = text.split_once('=').ok_or_else(wrong)?;
    let what = Limited::from_str(name.trim(), false).map_err(|_| wrong())?;
    if what != Limited::Instructions {
        return Ok((what, bytes(most)?));
    }
    let upper = most.trim().to_ascii_uppercase();
    let number = upper.strip_suffix(['K', 'M']).unwrap_or(&upper);
    let unit = match &upper[number.len()..] {
        "" => 1,
        "K" => 1000,
        _ => 1_000_000,
    };
    let most = units(number, unit).ok_or("a number of instructions, such as 50000 or 50K")?;
    Ok((what, most))
}

/// So many of a unit.
fn units(number: &str, unit: u64) -> Option<u64> {
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}

/// A number of bytes: `65536`, `64K`, `1.5M`, `2G` (powers of 1024; `KB` and `KiB` are the same).
pub(super) fn bytes(text: &str) -> Parsed<u64> {
    let wrong = || "a number of bytes, such as 65536, 64K, 1.5M or 2G".to_owned();
    let upper = text.trim().to_ascii_uppercase();
    let number = upper.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &upper[number.len()..] {
        "" | "B" => 1_u64,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number = number.trim();
    if number.bytes().all(|digit| digit.is_ascii_digit()) {
        return units(number, unit).ok_or_else(wrong);
    }
    match number.parse::<f64>().map(|value| value * unit as f64) {
        Ok(value) if (0.0..u64::MAX as f64).contains(&value) => Ok(value as u64),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_suffixes() {
        let read = |text| bytes(text).ok();
        assert_eq!(
            (read("0"), read("17"), read("64K"), read("64kb")),
            (Some(0), Some(17), Some(65536), Some(65536))
        );
        assert_eq!((read("1.5M"), read("2 GiB")), (Some(3 << 19), Some(2 << 30)));
        for wrong in ["", "K", "-1", "1T", "1e400", "nan", "99999999999999999999", "17179869184G"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn limits_have_a_name_and_a_number() {
        assert_eq!(limit("ram=16K"), Ok((Limited::Ram, 16_384)));
        assert_eq!(limit("flash = 1.5M"), Ok((Limited::Flash, 3 << 19)));
        assert_eq!(limit("instructions=50k"), Ok((Limited::Instructions, 50_000)));
        assert_eq!(limit("stack=0"), Ok((Limited::Stack, 0)));
        for wrong in [
            "",
            "ram",
            "ram=",
            "ram=x",
            "=5",
            "RAM=5",
            "time=5",
            "instructions=1.5",
            "instructions=5G",
        ] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
        assert!(limit("time=5").unwrap_err().contains("flash, ram, stack, instructions"));
        assert!(target("z80").unwrap_err().contains("RP2040"));
        assert_eq!(target("rp2040").map(|target| target.name()), Ok("RP2040".into()));
    }

    #[test]
    fn counts_say_what_they_may_be() {
        assert_eq!((whole::<u32>("0"), whole::<u32>("4294967295")), (Ok(0), Ok(u32::MAX)));
        assert_eq!(whole::<u64>("18446744073709551615"), Ok(u64::MAX));
        assert!(whole::<u32>("4294967296").unwrap_err().contains("from 0 to 4294967295"));
        for wrong in ["", "-1", "1.5", "1e3", "ten", "18446744073709551616"] {
            assert!(
                whole::<u64>(wrong).unwrap_err().contains("from 0 to 18446744073709551615"),
                "{wrong}"
            );
        }
        assert_eq!(number("-0.5"), Ok(-0.5));
        assert!(number("half").is_err());
    }

    #[test]
    fn ranges_have_something_in_them() {
        assert_eq!(range("0..5000"), Ok(0..5000));
        for wrong in ["", "5", "5..5", "6..5", "a..b", "..5", "1..=3", "-1..3"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pinned_weights_are_neuron_input_pairs_or_files() {
        assert_eq!(to_pin("0:3"), Ok(ToPin::Weight(0, 3)));
        assert_eq!(to_pin(" 12 : 0 "), Ok(ToPin::Weight(12, 0)));
        assert_eq!(to_pin("@0:3"), Ok(ToPin::File("0:3".into())));
        for wrong in [
            "",
            "@",
            "3",
            ":",
            "0:",
            ":3",
            "-1:3",
            "0:3:1",
            "a:b",
            "0;3",
            "1.5:2",
            "0:99999999999999999999",
        ] {
            assert!(to_pin(wrong).unwrap_err().contains("NEURON:INPUT"), "{wrong}");
        }
    }

    #[test]
    fn rules_are_named_and_checked() {
        assert_eq!(step("fixed:0.5"), Ok(Step::Fixed(0.5)));
        assert_eq!(step("theory"), Ok(Step::Theory { beta: 0.0 }));
        for wrong in
            ["", "fixed", "fixed:0", "fixed:-1", "fixed:nan", "fixed:inf", "theory:2", "newton"]
        {
            assert!(step(wrong).is_err(), "{wrong}");
        }
        assert_eq!(rank("exact"), Ok(Rank::Exact));
        assert_eq!(
            (rank("sketch"), rank("sketch:0.5")),
            (Ok(Rank::Sketch { decay: 1.0 }), Ok(Rank::Sketch { decay: 0.5 }))
        );
        for wrong in ["", "sketch:", "sketch:2", "sketch:-1", "sketch:nan", "exact:1"] {
            assert!(rank(wrong).is_err(), "{wrong}");
        }
        assert_eq!(refine("armijo"), Ok(Refine::PAPER));
        assert_eq!(refine("cg:3"), Ok(Refine::ConjugateGradient { steps: 3, tolerance: 1e-4 }));
        for wrong in ["", "cg:", "cg:-1", "none:3", "newton"] {
            assert!(refine(wrong).is_err(), "{wrong}");
        }
    }
}
