//! Where an operator is examined: every kind of gates with every kind of support on every kind of
//! batch.

use core::ops::Range;
use tamis::Result;
use tamis::base::budget::Workspace;
use tamis::base::rng::{Rng, stream};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::network::weights::Weights;

/// Where generators come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generators {
    /// The seed.
    Seed,
    /// The weights themselves.
    Own(Signs, Empty),
    /// Other weights, as where gates lag behind.
    Other(Signs, Empty),
}

/// Which weights are not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Support {
    /// All m·d.
    All,
    /// About a third, and none at all in every third block from the second on.
    Third,
    /// One.
    One,
    /// None.
    None,
}

const GENERATORS: [Generators; 10] = {
    use Empty::{Freeze, Open, Reseed};
    use Signs::{Balanced, Positive};
    [
        Generators::Seed,
        Generators::Own(Positive, Freeze),
        Generators::Own(Balanced, Freeze),
        Generators::Own(Positive, Open),
        Generators::Own(Balanced, Open),
        Generators::Own(Positive, Reseed),
        Generators::Own(Balanced, Reseed),
        Generators::Other(Balanced, Freeze),
        Generators::Other(Positive, Open),
        Generators::Other(Balanced, Reseed),
    ]
};
const SUPPORTS: [Support; 4] = [Support::Third, Support::All, Support::One, Support::None];
const BATCHES: usize = 4;

/// One combination of gates, support and batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation(usize);

impl Situation {
    /// How many there are.
    pub const COUNT: usize = GENERATORS.len() * SUPPORTS.len() * BATCHES;

    /// Every combination. Strides that share no factor with the counts above visit all kinds of
    /// each.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// Its place in [`Self::all`].
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }

    fn generators(self) -> Generators {
        GENERATORS.get(self.0 % GENERATORS.len()).copied().unwrap_or(Generators::Seed)
    }

    fn support(self) -> Support {
        SUPPORTS.get(self.0 / GENERATORS.len() % SUPPORTS.len()).copied().unwrap_or(Support::None)
    }

    /// The batch, of `n` rows in all: everything, from the middle to near the end, the last row,
    /// the first half.
    #[must_use]
    pub fn rows(self, n: usize) -> Range<usize> {
        match self.0 / (GENERATORS.len() * SUPPORTS.len()) {
            0 => 0..n,
            1 => n / 3..n - n / 4,
            2 => n - 1..n,
            _ => 0..n.div_ceil(2),
        }
    }

    /// Whether some gate may be random.
    #[must_use]
    pub fn is_random(self) -> bool {
        matches!(
            self.generators(),
            Generators::Seed
                | Generators::Own(_, Empty::Reseed)
                | Generators::Other(_, Empty::Reseed)
        )
    }

    pub(super) fn rng(self, salt: u64) -> Rng {
        Rng::new(salt, stream::USER + self.0 as u64)
    }

    pub(super) fn gates<'a>(self, w: Weights<'a>, other: Weights<'a>) -> Gates<'a> {
        let seed = self.0 as u64;
        match self.generators() {
            Generators::Seed => Gates::seeded(seed),
            Generators::Own(signs, empty) => Gates::of(w, signs, empty, seed, 1),
            Generators::Other(signs, empty) => Gates::of(other, signs, empty, seed, 2),
        }
    }

    /// Draws the weights in room for m·d entries.
    pub(super) fn weights<'a>(
        self,
        inputs: usize,
        hidden: usize,
        salt: u64,
        room: EntriesMut<'a>,
    ) -> Result<Weights<'a>> {
        let EntriesMut { index, value } = room;
        let mut rng = self.rng(salt);
        let total = (inputs * hidden) as u32;
        let only = rng.below(total);
        let support = self.support();
        let len = fill_support(index, total, |j| match support {
            Support::All => true,
            Support::Third => (j as usize / inputs + salt as usize) % 3 != 1 && rng.below(3) == 0,
            Support::One => j == only,
            Support::None => false,
        });
        rng.fill_normal(value);
        Weights::new(
            inputs,
            hidden,
            index.get(..len).unwrap_or(&[]),
            value.get(..len).unwrap_or(&[]),
        )
    }
}

/// Writes those of `0..total` that are to be kept, in order, as far as there is room; returns how
/// many.
pub fn fill_support(index: &mut [u32], total: u32, mut keep: impl FnMut(u32) -> bool) -> usize {
    let mut len = 0;
    for j in (0..total).filter(|&j| keep(j)) {
        let Some(slot) = index.get_mut(len) else { break };
        *slot = j;
        len += 1;
    }
    len
}

/// The memory of one trial; sparse vectors have room for m·d entries.
pub(super) struct Vectors<'a> {
    pub(super) w: EntriesMut<'a>,
    pub(super) other: EntriesMut<'a>,
    pub(super) buffers: Buffers<'a>,
}

/// What the checks write to.
pub(super) struct Buffers<'a> {
    /// What the oracle says, max(n, m·d) and one more.
    pub(super) expected: &'a mut [f32],
    /// What the operator says.
    pub(super) got: &'a mut [f32],
    /// Labels or residual, n.
    pub(super) v: &'a mut [f32],
    /// New weights of the oracle and of the operator.
    pub(super) first: EntriesMut<'a>,
    pub(super) second: EntriesMut<'a>,
    /// 3·m·d.
    pub(super) panel: &'a mut [f32],
    pub(super) scratch: &'a mut [f32],
}

impl<'a> Vectors<'a> {
    pub(super) fn carve(
        space: &mut Workspace<'a>,
        rows: usize,
        parameters: usize,
        scratch: usize,
    ) -> Result<Self> {
        let room = |space: &mut Workspace<'a>| -> Result<_> {
            let (index, value) = (space.indices(parameters)?, space.floats(parameters)?);
            Ok(EntriesMut { index, value })
        };
        let longest = rows.max(parameters) + 1;
        Ok(Self {
            w: room(space)?,
            other: room(space)?,
            buffers: Buffers {
                first: room(space)?,
                second: room(space)?,
                expected: space.floats(longest)?,
                got: space.floats(longest)?,
                v: space.floats(rows)?,
                panel: space.floats(3 * parameters)?,
                scratch: space.floats(scratch)?,
            },
        })
    }
}

impl Buffers<'_> {
    pub(super) fn reborrow(&mut self) -> Buffers<'_> {
        Buffers {
            expected: &mut *self.expected,
            got: &mut *self.got,
            v: &mut *self.v,
            first: self.first.reborrow(),
            second: self.second.reborrow(),
            panel: &mut *self.panel,
            scratch: &mut *self.scratch,
        }
    }
}
