//! The ZNS command set: zone states and actions.

crate::open_enum! {
    /// Zone Send Action (ZNS command set 1.1, section 3.4.3).
    pub enum ZoneSendAction: u8 {
        /// Close the zone.
        CLOSE = 0x01,
        /// Finish the zone: it becomes full.
        FINISH = 0x02,
        /// Open the zone explicitly.
        OPEN = 0x03,
        /// Reset the zone: it becomes empty.
        RESET = 0x04,
        /// Take a read-only zone offline.
        OFFLINE = 0x05,
        /// Attach a zone descriptor extension.
        SET_DESCRIPTOR_EXTENSION = 0x10,
        /// Commit data of the zone random write area.
        ZRWA_FLUSH = 0x11,
    }
}

crate::open_enum! {
    /// Zone state as a zone descriptor reports it (ZNS command set 1.1, section 3.4.2.2.3).
    pub enum ZoneState: u8 {
        /// Empty.
        EMPTY = 0x1,
        /// Implicitly opened.
        IMPLICITLY_OPENED = 0x2,
        /// Explicitly opened.
        EXPLICITLY_OPENED = 0x3,
        /// Closed.
        CLOSED = 0x4,
        /// Read only.
        READ_ONLY = 0xd,
        /// Full.
        FULL = 0xe,
        /// Offline.
        OFFLINE = 0xf,
    }
}

crate::open_enum! {
    /// Which zones a zone report lists: Zone Receive Action Specific (ZNS command set 1.1, section 3.4.2).
    pub enum ReportFilter: u8 {
        /// All zones.
        ALL = 0x0,
        /// Empty zones.
        EMPTY = 0x1,
        /// Implicitly opened zones.
        IMPLICITLY_OPENED = 0x2,
        /// Explicitly opened zones.
        EXPLICITLY_OPENED = 0x3,
        /// Closed zones.
        CLOSED = 0x4,
        /// Full zones.
        FULL = 0x5,
        /// Read-only zones.
        READ_ONLY = 0x6,
        /// Offline zones.
        OFFLINE = 0x7,
    }
}
