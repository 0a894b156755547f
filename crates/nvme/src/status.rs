//! Status codes (NVMe base specification 2.0, section 4.2.3; ZNS command set 1.1, section 4.1).

crate::open_enum! {
    /// Status code type and status code in one value: `SCT << 8 | SC`.
    pub enum Status: u16 {
        /// The command completed without error.
        SUCCESS = 0x000,
        /// The opcode is not supported.
        INVALID_OPCODE = 0x001,
        /// A field of the command holds a value that is not allowed.
        INVALID_FIELD = 0x002,
        /// The device failed inside.
        INTERNAL_ERROR = 0x006,
        /// The namespace or its format is not valid.
        INVALID_NAMESPACE_OR_FORMAT = 0x00b,
        /// The range exceeds the size of the namespace.
        LBA_OUT_OF_RANGE = 0x080,
        /// A read or write runs across the end of a zone, or beyond its capacity.
        ZONE_BOUNDARY_ERROR = 0x1b8,
        /// The zone is full.
        ZONE_IS_FULL = 0x1b9,
        /// The zone is read only.
        ZONE_IS_READ_ONLY = 0x1ba,
        /// The zone is offline.
        ZONE_IS_OFFLINE = 0x1bb,
        /// The write does not start at the write pointer.
        ZONE_INVALID_WRITE = 0x1bc,
        /// The active resources are used up.
        TOO_MANY_ACTIVE_ZONES = 0x1bd,
        /// The open resources are used up.
        TOO_MANY_OPEN_ZONES = 0x1be,
        /// The zone has no transition for this action.
        INVALID_ZONE_STATE_TRANSITION = 0x1bf,
    }
}

impl Status {
    /// True for successful completion.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}
