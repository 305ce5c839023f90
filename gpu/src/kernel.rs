//! The kernels: a file of `kernels/` each, and what is put before and behind it.

/// What a workgroup of the kernels `forward` and `sum` takes times the threads that share it: they have so many threads,
/// but `forward` on software 64, which take four times four rows each.
const SHARING: usize = 256;

/// A number of threads, which is another one on software.
#[derive(Clone, Copy)]
struct Threads {
    gpu: usize,
    software: usize,
}

impl Threads {
    const fn on(self, is_software: bool) -> usize {
        if is_software { self.software } else { self.gpu }
    }
}

/// Of these, those that share the neurons of four rows, or the groups of a number. On software the lanes of a vector are
/// threads, which read what is the same for all of them once where they go through the same neurons, and to wait for each
/// other takes long.
const SHARES: Threads = Threads { gpu: 8, software: 1 };

/// Threads of the kernel `restricted` that read rows side by side: on a GPU all of a workgroup; on software the lanes of a
/// vector, each vector in its own part of the group.
const LANES: Threads = Threads { gpu: 64, software: 8 };

/// Threads of the kernel `reduce`: on software the lanes of one vector, which waits for no other.
const ADDERS: Threads = Threads { gpu: 256, software: 8 };

const ENTRIES: &str = include_str!("kernels/entries.wgsl");

/// The kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Gates,
    Forward,
    Activations,
    Outputs,
    Restricted,
    Panel,
    Gram,
    Sum,
    Solve,
    Map,
    Reduce,
    Largest,
    Softmax,
    Project,
    Outer,
    Transpose,
    Second,
    Open,
    Select,
    Product,
    Peak,
    Stream,
}

impl Kernel {
    pub(crate) const ALL: [Self; 22] = [
        Self::Gates,
        Self::Forward,
        Self::Activations,
        Self::Outputs,
        Self::Restricted,
        Self::Panel,
        Self::Gram,
        Self::Sum,
        Self::Solve,
        Self::Map,
        Self::Reduce,
        Self::Largest,
        Self::Softmax,
        Self::Project,
        Self::Outer,
        Self::Transpose,
        Self::Second,
        Self::Open,
        Self::Select,
        Self::Product,
        Self::Peak,
        Self::Stream,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::Forward => "forward",
            Self::Activations => "activations",
            Self::Outputs => "outputs",
            Self::Restricted => "restricted",
            Self::Panel => "panel",
            Self::Gram => "gram",
            Self::Sum => "sum",
            Self::Solve => "solve",
            Self::Map => "map",
            Self::Reduce => "reduce",
            Self::Largest => "largest",
            Self::Softmax => "softmax",
            Self::Project => "project",
            Self::Outer => "outer",
            Self::Transpose => "transpose",
            Self::Second => "second",
            Self::Open => "open",
            Self::Select => "select",
            Self::Product => "product",
            Self::Peak => "peak",
            Self::Stream => "stream",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Gates => include_str!("kernels/gates.wgsl"),
            Self::Forward => include_str!("kernels/forward.wgsl"),
            Self::Activations => include_str!("kernels/activations.wgsl"),
            Self::Outputs => include_str!("kernels/outputs.wgsl"),
            Self::Restricted => include_str!("kernels/restricted.wgsl"),
            Self::Panel => include_str!("kernels/panel.wgsl"),
            Self::Gram => include_str!("kernels/gram.wgsl"),
            Self::Sum => include_str!("kernels/sum.wgsl"),
            Self::Solve => include_str!("kernels/solve.wgsl"),
            Self::Map => include_str!("kernels/map.wgsl"),
            Self::Reduce => include_str!("kernels/reduce.wgsl"),
            Self::Largest => include_str!("kernels/largest.wgsl"),
            Self::Softmax => include_str!("kernels/softmax.wgsl"),
            Self::Project => include_str!("kernels/project.wgsl"),
            Self::Outer => include_str!("kernels/outer.wgsl"),
            Self::Transpose => include_str!("kernels/transpose.wgsl"),
            Self::Second => include_str!("kernels/second.wgsl"),
            Self::Open => include_str!("kernels/open.wgsl"),
            Self::Select => include_str!("kernels/select.wgsl"),
            Self::Product => include_str!("kernels/product.wgsl"),
            Self::Peak => include_str!("kernels/peak.wgsl"),
            Self::Stream => include_str!("kernels/stream.wgsl"),
        }
    }

    /// What a workgroup takes: fours of rows, of kernels that go through weights neuron by neuron, or numbers of `sum`, on
    /// software or not.
    pub(crate) const fn own(self, is_software: bool) -> usize {
        match self {
            Self::Forward | Self::Sum => SHARING / SHARES.on(is_software),
            _ => 64,
        }
    }

    pub(crate) const fn reads_data(self) -> bool {
        matches!(
            self,
            Self::Gates
                | Self::Forward
                | Self::Activations
                | Self::Restricted
                | Self::Panel
                | Self::Gram
        )
    }

    /// The program, with what it shares with others.
    pub(crate) fn source(self, bytes: bool, is_software: bool) -> String {
        let data = match (self.reads_data(), bytes) {
            (false, _) => "",
            (true, false) => include_str!("kernels/x_f32.wgsl"),
            (true, true) => include_str!("kernels/x_u8.wgsl"),
        };
        let tile = if is_software {
            include_str!("kernels/tile_alone.wgsl")
        } else {
            include_str!("kernels/tile_shared.wgsl")
        };
        let neuron = include_str!("kernels/neuron.wgsl");
        let before = match self {
            Self::Gates => [ENTRIES, ""],
            Self::Forward | Self::Activations => [ENTRIES, neuron],
            Self::Panel | Self::Gram | Self::Product => [include_str!("kernels/tile.wgsl"), tile],
            _ => [""; 2],
        };
        let after = match self {
            Self::Forward if is_software => include_str!("kernels/forward_alone.wgsl"),
            Self::Forward => include_str!("kernels/forward_shared.wgsl"),
            _ => "",
        };
        let constants = match self {
            Self::Forward | Self::Sum => format!("const SHARES = {}u;\n", SHARES.on(is_software)),
            Self::Restricted => format!("const LANES = {}u;\n", LANES.on(is_software)),
            Self::Reduce => format!("const THREADS = {}u;\n", ADDERS.on(is_software)),
            _ => String::new(),
        };
        [&constants, data, before[0], before[1], self.text(), after].concat()
    }
}
