//! Logs about what the controller supports: log pages, commands.

use crate::Reserved;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// LID Supported and Effects: what is known about a log page.
    pub struct SupportedLogPage(U32: u32) {
        /// It is supported (LSUPP).
        [0:0] lsupp / with_lsupp: bool,
        /// Its offset may be an index (IOS).
        [1:1] ios / with_ios: bool,
        /// LID specific parameter (LIDSP).
        [31:16] lidsp / with_lidsp: u16,
    }
}

/// The Supported Log Pages log.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SupportedLogPages {
    /// One for each log page identifier.
    pub lids: [SupportedLogPage; 256],
}

const _: () = assert!(size_of::<SupportedLogPages>() == 1024);

bits! {
    /// Commands Supported and Effects: what is known about a command.
    pub struct CommandEffects(U32: u32) {
        /// It is supported (CSUPP).
        [0:0] csupp / with_csupp: bool,
        /// It may change content of blocks (LBCC).
        [1:1] lbcc / with_lbcc: bool,
        /// It may change namespace capabilities (NCC).
        [2:2] ncc / with_ncc: bool,
        /// It may change the list of namespaces (NIC).
        [3:3] nic / with_nic: bool,
        /// It may change controller capabilities (CCC).
        [4:4] ccc / with_ccc: bool,
        /// Submission and execution (CSE): 0 no restriction, 1 alone on its
        /// namespace, 2 alone on all.
        [18:16] cse / with_cse: u8,
        /// It supports selection of a UUID (USS).
        [19:19] uss / with_uss: bool,
        /// Scope (CSP): bit 0 namespace, bit 1 controller, bit 2 NVM set, bit 3
        /// endurance group, bit 4 domain, bit 5 subsystem.
        [31:20] csp / with_csp: u16,
    }
}

/// The Commands Supported and Effects log: of the command set that Get Log Page
/// names.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CommandEffectsLog {
    /// Admin commands, by opcode.
    pub acs: [CommandEffects; 256],
    /// I/O commands, by opcode.
    pub iocs: [CommandEffects; 256],
    /// Zero.
    pub reserved_2048: Reserved<2048>,
}

const _: () = assert!(size_of::<CommandEffectsLog>() == 4096);
