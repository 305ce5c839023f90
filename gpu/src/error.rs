//! The one error of the crate.

use std::fmt;

/// What failed on a device, with the adapter's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// No adapter, or none of the name asked for.
    NoAdapter {
        /// The name asked for.
        wanted: Option<String>,
        /// The names that there are.
        found: Vec<String>,
    },
    /// More than a limit of the adapter.
    Limit {
        /// The adapter.
        adapter: String,
        /// The limit, as the WebGPU standard names it.
        limit: String,
        /// What needs it.
        what: String,
        /// What is needed.
        needed: u64,
        /// What the adapter has.
        has: u64,
    },
    /// The memory of the device is used up.
    Memory {
        /// The adapter.
        adapter: String,
        /// What the driver says.
        message: String,
    },
    /// The device was lost: unplugged, reset, or destroyed.
    Lost {
        /// The adapter.
        adapter: String,
        /// What the driver says.
        message: String,
    },
    /// A call that the driver refused.
    Refused {
        /// The adapter.
        adapter: String,
        /// What the driver says.
        message: String,
    },
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        match self {
            Self::NoAdapter { wanted: Some(_), found } if !found.is_empty() => {
                "choose one of these names with --adapter, or leave it out"
            }
            Self::NoAdapter { .. } => {
                "install a driver for Vulkan (Debian: mesa-vulkan-drivers; VK_LOADER_DEBUG=error says what an installed one lacks), or use --device cpu"
            }
            Self::Limit { .. } => "choose another adapter or smaller sizes, or use --device cpu",
            Self::Memory { .. } => {
                "choose smaller sizes, close other programs on the device, or use --device cpu"
            }
            Self::Lost { .. } => {
                "start again; where there is a checkpoint, --resume continues on any device"
            }
            Self::Refused { .. } => "report it with the adapter's driver, and use --device cpu",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdapter { wanted: Some(name), found } if !found.is_empty() => {
                write!(f, "no GPU adapter is named \"{name}\"; there are: {}", found.join(", "))
            }
            Self::NoAdapter { .. } => write!(f, "there is no GPU adapter"),
            Self::Limit { adapter, limit, what, needed, has } => write!(
                f,
                "{what} is beyond a limit of the adapter {adapter}: {limit} is {has}, needed is {needed}"
            ),
            Self::Memory { adapter, message } => {
                write!(f, "the memory of the adapter {adapter} is used up: {message}")
            }
            Self::Lost { adapter, message } => {
                write!(f, "the adapter {adapter} was lost: {message}")
            }
            Self::Refused { adapter, message } => {
                write!(f, "the adapter {adapter} refused a call: {message}")
            }
        }
    }
}

impl std::error::Error for Error {}
