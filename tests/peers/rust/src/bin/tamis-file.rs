//! A model file, read by the program: all kernels are linked. Reading it, once at the start, is not
//! counted.
#![no_std]
#![no_main]

use core::cell::RefCell;
use tamis::store::wire::QuantisedView;
use tamis_peers::INPUTS;

/// The model after the start.
struct Place(RefCell<Option<QuantisedView<'static>>>);
// SAFETY: there is one thread and no interrupt.
unsafe impl Sync for Place {}
static MODEL: Place = Place(RefCell::new(None));

#[inline(never)]
fn classify(x: &[u8; INPUTS]) -> usize {
    let (mut scratch, mut y) = ([0; 80], [0; 10]);
    match &*MODEL.0.borrow() {
        Some(view) => view.model().classify(x, &mut scratch, &mut y).unwrap_or(99),
        None => 99,
    }
}

#[cortex_m_rt::entry]
fn main() -> ! {
    *MODEL.0.borrow_mut() = QuantisedView::parse(tamis_peers::models::FILE).ok();
    tamis_peers::run(|byte| byte, classify)
}
