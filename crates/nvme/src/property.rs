//! Controller properties: what a host reads and writes before it can send
//! commands. On a fabric by Property Get and Property Set, on PCIe as registers.
//!
//! Source: NVMe base specification 2.0, section 3.1.3 (Controller Properties).

use zerocopy::little_endian::{U32, U64};

crate::open_enum! {
    /// A property, by its offset in bytes. On a fabric only CAP, VS, CC, CSTS,
    /// NSSR, NSSD and CRTO exist.
    pub enum Property: u32 {
        /// Controller Capabilities: [`Capabilities`], 8 bytes.
        CAP = 0x00,
        /// Version: [`Version`](crate::identify::Version).
        VS = 0x08,
        /// Interrupt Mask Set.
        INTMS = 0x0c,
        /// Interrupt Mask Clear.
        INTMC = 0x10,
        /// Controller Configuration: [`Configuration`].
        CC = 0x14,
        /// Controller Status: [`ControllerStatus`].
        CSTS = 0x1c,
        /// NVM Subsystem Reset: [`SUBSYSTEM_RESET`] resets.
        NSSR = 0x20,
        /// Admin Queue Attributes: [`AdminQueueAttributes`].
        AQA = 0x24,
        /// Admin Submission Queue Base Address, 8 bytes.
        ASQ = 0x28,
        /// Admin Completion Queue Base Address, 8 bytes.
        ACQ = 0x30,
        /// NVM Subsystem Shutdown.
        NSSD = 0x64,
        /// Controller Ready Timeouts: [`ReadyTimeouts`].
        CRTO = 0x68,
    }
}

impl Property {
    /// Bytes of the property, 4 or 8; `None` if it has no name here.
    #[must_use]
    pub fn bytes(self) -> Option<u8> {
        match self {
            Self::CAP | Self::ASQ | Self::ACQ => Some(8),
            _ => self.name().map(|_| 4),
        }
    }

    /// True if controllers on a fabric have it.
    #[must_use]
    pub const fn is_on_fabrics(self) -> bool {
        matches!(
            self,
            Self::CAP | Self::VS | Self::CC | Self::CSTS | Self::NSSR | Self::NSSD | Self::CRTO
        )
    }
}

/// What a host writes to [`Property::NSSR`] to reset the subsystem: "NVMe".
pub const SUBSYSTEM_RESET: u32 = 0x4e56_4d65;

bits! {
    /// Controller Capabilities (CAP).
    pub struct Capabilities(U64: u64) {
        /// Maximum queue entries supported (MQES), zero based.
        [15:0] mqes_z / with_mqes_z: u16,
        /// Contiguous queues required (CQR).
        [16:16] cqr / with_cqr: bool,
        /// Arbitration mechanisms supported (AMS) beside round robin. Bit 0:
        /// weighted with urgent class; bit 1: vendor specific.
        [18:17] ams / with_ams: u8,
        /// Timeout (TO) of enabling and disabling, in units of 500 ms.
        [31:24] to / with_to: u8,
        /// Doorbell stride (DSTRD): 2 to the power of it times 4 bytes.
        [35:32] dstrd / with_dstrd: u8,
        /// NVM subsystem reset supported (NSSRS).
        [36:36] nssrs / with_nssrs: bool,
        /// Command sets supported (CSS) bit 0: the NVM command set.
        [37:37] css_nvm / with_css_nvm: bool,
        /// Command sets supported (CSS) bit 6: what Identify lists (CNS 1Ch).
        [43:43] css_io / with_css_io: bool,
        /// Command sets supported (CSS) bit 7: none.
        [44:44] css_admin_only / with_css_admin_only: bool,
        /// Boot partition support (BPS).
        [45:45] bps / with_bps: bool,
        /// Controller power scope (CPS).
        [47:46] cps / with_cps: u8,
        /// Memory page size minimum (MPSMIN): 2 to the power of 12 plus it.
        [51:48] mpsmin / with_mpsmin: u8,
        /// Memory page size maximum (MPSMAX): 2 to the power of 12 plus it.
        [55:52] mpsmax / with_mpsmax: u8,
        /// Persistent memory region supported (PMRS).
        [56:56] pmrs / with_pmrs: bool,
        /// Controller memory buffer supported (CMBS).
        [57:57] cmbs / with_cmbs: bool,
        /// NVM subsystem shutdown supported (NSSS).
        [58:58] nsss / with_nsss: bool,
        /// Ready with media is supported (CRMS bit 0).
        [59:59] crwms / with_crwms: bool,
        /// Ready independent of media is supported (CRMS bit 1).
        [60:60] crims / with_crims: bool,
    }
}

crate::open_enum! {
    /// I/O Command Set Selected (CC.CSS): 3 bits.
    pub enum CommandSetSelected: u8 {
        /// The NVM command set.
        NVM = 0x0,
        /// All that the controller supports (CAP.CSS bit 6).
        ALL = 0x6,
        /// None.
        ADMIN_ONLY = 0x7,
    }
}

crate::open_enum! {
    /// Shutdown Notification (CC.SHN): 2 bits.
    pub enum ShutdownNotification: u8 {
        /// None.
        NONE = 0x0,
        /// Normal shutdown.
        NORMAL = 0x1,
        /// Abrupt shutdown.
        ABRUPT = 0x2,
    }
}

crate::open_enum! {
    /// Shutdown Status (CSTS.SHST): 2 bits.
    pub enum ShutdownStatus: u8 {
        /// No shutdown was asked for.
        NONE = 0x0,
        /// Under way.
        OCCURRING = 0x1,
        /// Complete.
        COMPLETE = 0x2,
    }
}

enum_fields!(CommandSetSelected: u8, ShutdownNotification: u8, ShutdownStatus: u8);

bits! {
    /// Controller Configuration (CC).
    pub struct Configuration(U32: u32) {
        /// Enable (EN). From 1 to 0 it resets the controller.
        [0:0] en / with_en: bool,
        /// I/O command set selected (CSS).
        [6:4] css / with_css: CommandSetSelected,
        /// Memory page size (MPS): 2 to the power of 12 plus it.
        [10:7] mps / with_mps: u8,
        /// Arbitration mechanism selected (AMS): 0 round robin.
        [13:11] ams / with_ams: u8,
        /// Shutdown notification (SHN).
        [15:14] shn / with_shn: ShutdownNotification,
        /// I/O submission queue entry size (IOSQES) as a power of two: 6.
        [19:16] iosqes / with_iosqes: u8,
        /// I/O completion queue entry size (IOCQES) as a power of two: 4.
        [23:20] iocqes / with_iocqes: u8,
        /// Controller ready independent of media enable (CRIME).
        [24:24] crime / with_crime: bool,
    }
}

bits! {
    /// Controller Status (CSTS).
    pub struct ControllerStatus(U32: u32) {
        /// Ready (RDY) for commands.
        [0:0] rdy / with_rdy: bool,
        /// Controller fatal status (CFS).
        [1:1] cfs / with_cfs: bool,
        /// Shutdown status (SHST).
        [3:2] shst / with_shst: ShutdownStatus,
        /// NVM subsystem reset occurred (NSSRO).
        [4:4] nssro / with_nssro: bool,
        /// Processing paused (PP).
        [5:5] pp / with_pp: bool,
        /// Shutdown type (ST): of the subsystem rather than the controller.
        [6:6] st / with_st: bool,
    }
}

bits! {
    /// Admin Queue Attributes (AQA).
    pub struct AdminQueueAttributes(U32: u32) {
        /// Admin submission queue size (ASQS) in entries, zero based.
        [11:0] asqs_z / with_asqs_z: u16,
        /// Admin completion queue size (ACQS) in entries, zero based.
        [27:16] acqs_z / with_acqs_z: u16,
    }
}

bits! {
    /// Controller Ready Timeouts (CRTO).
    pub struct ReadyTimeouts(U32: u32) {
        /// Controller ready with media timeout (CRWMT) in units of 500 ms.
        [15:0] crwmt / with_crwmt: u16,
        /// Controller ready independent of media timeout (CRIMT) in units of 500 ms.
        [31:16] crimt / with_crimt: u16,
    }
}
