//! The vibration monitor of `examples/firmware`: what goes over its buses, and what it does when
//! they fail.

use embedded_hal::digital::{ErrorKind as PinFault, PinState};
use embedded_hal::i2c::ErrorKind;
use embedded_hal_mock::common::Generic;
use embedded_hal_mock::eh1::delay::NoopDelay;
use embedded_hal_mock::eh1::digital::{Mock as PinMock, State, Transaction as Level};
use embedded_hal_mock::eh1::i2c::{Mock as Bus, Transaction};
use embedded_hal_mock::eh1::{MockError, digital};
use std::convert::Infallible;
use tamis::Error;
use tamis::data::spi::ReadError;
use tamis_monitor::simulated::{Accelerometer, Clock, Pin};
use tamis_monitor::{
    Class, Classifier, Embedded, Fault, INPUTS, Lis3dh, MODEL_FILE, Monitor, SensorError, Status,
    Streamed, TRIES, Window,
};
use tamis_tests::simulated::Chip;

const ADDRESS: u8 = 0x19;

fn write(register: u8, value: u8) -> Transaction {
    Transaction::write(ADDRESS, vec![register, value])
}

fn read(register: u8, answer: Vec<u8>) -> Transaction {
    Transaction::write_read(ADDRESS, vec![register], answer)
}

fn switch_on() -> Vec<Transaction> {
    vec![read(0x0f, vec![0x33]), write(0x20, 0x5f), write(0x23, 0x80), write(0x24, 0x40)]
}

/// A window whose bytes on the bus are 0, 1, 2 and so on in the high halves; at the second look it
/// is there.
fn window() -> Vec<Transaction> {
    let samples = (0..INPUTS).flat_map(|k| [0, k as u8]).collect();
    vec![
        write(0x2e, 0x00),
        write(0x2e, 0x40),
        read(0x2f, vec![0x1e]),
        read(0x2f, vec![0x5f]),
        read(0xa8, samples),
    ]
}

fn bus(parts: &[Vec<Transaction>]) -> Bus {
    Generic::new(&parts.concat())
}

#[test]
fn chip_is_enabled_once_and_windows_are_gapless() {
    let mut bus = bus(&[switch_on(), window(), window()]);
    let mut sensor = Lis3dh::new(bus.clone(), ADDRESS);
    let mut read = [0; INPUTS];
    for _ in 0..2 {
        sensor.window(&mut NoopDelay::new(), &mut read).unwrap();
    }
    // 0 is in the middle: the sign's bit is turned.
    let expected: Window = std::array::from_fn(|k| k as u8 + 128);
    assert_eq!(read, expected);
    bus.done();
}

#[test]
fn wrong_chip_is_named_and_window_stays_unchanged() {
    let mut bus = bus(&[vec![read(0x0f, vec![0x68])], switch_on(), window()]);
    let mut sensor = Lis3dh::new(bus.clone(), ADDRESS);
    let mut read = [7; INPUTS];
    let error = sensor.window(&mut NoopDelay::new(), &mut read).unwrap_err();
    assert_eq!(error, SensorError::Identity { expected: 0x33, got: 0x68 });
    assert_eq!(read, [7; INPUTS]);
    sensor.window(&mut NoopDelay::new(), &mut read).unwrap();
    bus.done();
}

#[test]
fn chip_that_lost_power_is_late_then_reenabled() {
    let forgetful =
        [vec![write(0x2e, 0x00), write(0x2e, 0x40)], vec![read(0x2f, vec![0x20]); 10]].concat();
    let mut bus = bus(&[switch_on(), window(), forgetful, switch_on(), window()]);
    let mut sensor = Lis3dh::new(bus.clone(), ADDRESS);
    let mut read = [0; INPUTS];
    sensor.window(&mut NoopDelay::new(), &mut read).unwrap();
    let late = sensor.window(&mut NoopDelay::new(), &mut read).unwrap_err();
    assert_eq!(late, SensorError::Late { waited_ms: 370 });
    sensor.window(&mut NoopDelay::new(), &mut read).unwrap();
    bus.done();
}

/// Gives what it is told.
struct Script(std::vec::IntoIter<Class>);

impl Script {
    fn new(classes: impl Into<Vec<Class>>) -> Self {
        Self(classes.into().into_iter())
    }
}

impl Classifier for Script {
    type Error = Infallible;

    fn classify(&mut self, _window: &Window) -> Result<Class, Infallible> {
        Ok(self.0.next().unwrap())
    }
}

fn levels(levels: &[State]) -> PinMock {
    digital::Mock::new(&levels.iter().map(|level| Level::set(*level)).collect::<Vec<_>>())
}

#[test]
fn pin_changes_after_two_consecutive_windows() {
    use Class::{Running, Stopped, Unbalanced};
    use State::{High, Low};
    let classes = [
        Stopped, Unbalanced, Running, Stopped, Unbalanced, Running, Unbalanced, Unbalanced, Running,
    ];
    let mut pin = levels(&[Low, Low, Low, High, High, High, High, Low, Low]);
    let sensor = Lis3dh::new(Accelerometer::new(1, &[Stopped]), 0x18);
    let mut monitor = Monitor::new(sensor, Script::new(classes), pin.clone(), Clock::default());
    for class in classes {
        assert_eq!(monitor.step().unwrap().class, class);
    }
    pin.done();
}

#[test]
fn unresponsive_pin_is_a_fault() {
    let broken = Level::set(State::Low).with_error(MockError::Io(std::io::ErrorKind::Other));
    let mut pin = digital::Mock::new(&[broken]);
    let sensor = Lis3dh::new(Accelerometer::new(1, &[Class::Stopped]), 0x18);
    let mut monitor =
        Monitor::new(sensor, Script::new([Class::Stopped]), pin.clone(), Clock::default());
    assert_eq!(monitor.step(), Err(Fault::Pin(PinFault::Other)));
    pin.done();
}

#[test]
fn failures_hold_pin_low_until_two_good_windows() {
    use State::{High, Low};
    let lost = |transaction: &Transaction| vec![transaction.clone().with_error(ErrorKind::Bus)];
    let first = &switch_on()[0];
    let tries = [lost(&write(0x2e, 0x00)), lost(first), lost(first)];
    assert_eq!(tries.len(), usize::from(TRIES));
    let good = [switch_on(), window(), window()].concat();
    let mut bus = bus(&[good.clone(), tries.concat(), good]);
    let mut pin = levels(&[Low, High, Low, Low, High]);
    let model = Script::new([Class::Running; 4]);
    let mut monitor =
        Monitor::new(Lis3dh::new(bus.clone(), ADDRESS), model, pin.clone(), NoopDelay::new());
    let may_run = std::array::from_fn(|_| monitor.step().map(|status| status.may_run));
    let fault = Err(Fault::Sensor(SensorError::Bus(ErrorKind::Bus)));
    assert_eq!(may_run, [Ok(false), Ok(true), fault, Ok(false), Ok(true)]);
    bus.done();
    pin.done();
}

/// Of a machine that runs, and then shakes.
const PLAN: &[Class] =
    &[Class::Running, Class::Running, Class::Running, Class::Unbalanced, Class::Unbalanced];

fn statuses<Model: Classifier>(model: Model, lost: u32) -> Vec<Status>
where
    Model::Error: std::fmt::Debug,
{
    let sensor = Lis3dh::new(Accelerometer::new(5, PLAN).failing(lost, 1), 0x18);
    let mut monitor = Monitor::new(sensor, model, Pin::default(), Clock::default());
    PLAN.iter().map(|_| monitor.step().unwrap()).collect()
}

#[test]
fn whichever_transfer_is_lost_it_is_tried_again() {
    let undisturbed = statuses(Embedded::default(), u32::MAX);
    let classes: Vec<Class> = undisturbed.iter().map(|status| status.class).collect();
    assert_eq!(classes, PLAN);
    assert!(undisturbed.iter().all(|status| status.retries == 0));
    // Eight of the first window, four of each other.
    for lost in 0..24 {
        let statuses = statuses(Embedded::default(), lost);
        assert_eq!(
            statuses.iter().map(|status| u32::from(status.retries)).sum::<u32>(),
            1,
            "{lost}"
        );
        for (status, wanted) in statuses.iter().zip(&undisturbed).take(2) {
            assert_eq!((status.class, status.may_run), (wanted.class, wanted.may_run), "{lost}");
        }
    }
}

#[test]
fn network_in_flash_chip_classifies_as_in_program() {
    let chip = || Streamed::open(Chip::new(MODEL_FILE), MODEL_FILE.len() as u32, 0).unwrap();
    assert_eq!(statuses(chip(), u32::MAX), statuses(Embedded::default(), u32::MAX));
    let too_small = Streamed::open(Chip::new(MODEL_FILE), 100, 0).unwrap_err();
    assert!(matches!(too_small, Error::Range { .. } | Error::Length { .. }), "{too_small:?}");
}

#[test]
fn chip_failure_during_prediction_faults_with_pin_low() {
    let capacity = MODEL_FILE.len() as u32;
    let opening = Streamed::open(Chip::new(MODEL_FILE), capacity, 0).unwrap().release().reads();
    for broken in 0..opening {
        let error =
            Streamed::open(Chip::new(MODEL_FILE).failing_in(broken), capacity, 0).unwrap_err();
        assert!(matches!(error, Error::Source(ReadError::Bus { .. })), "{broken}: {error:?}");
    }
    // One read that fails is tried again.
    let model = Streamed::open(Chip::new(MODEL_FILE).failing_in(opening), capacity, 0).unwrap();
    let retried = statuses(model, u32::MAX);
    assert_eq!((retried[0].class, retried[0].retries), (Class::Running, 1));
}

/// A network that cannot be read.
struct Unreadable;

impl Classifier for Unreadable {
    type Error = ();

    fn classify(&mut self, _window: &Window) -> Result<Class, ()> {
        Err(())
    }
}

#[test]
fn without_a_prediction_the_pin_is_low() {
    let sensor = Lis3dh::new(Accelerometer::new(5, PLAN), 0x18);
    let mut monitor = Monitor::new(sensor, Unreadable, Pin { is_high: true }, Clock::default());
    assert_eq!(monitor.step(), Err(Fault::Model(())));
    assert_eq!(PinState::from(monitor.release().1.is_high), PinState::Low);
}
