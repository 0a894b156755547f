//! Opcodes of the admin and the I/O queues.

crate::open_enum! {
    /// Opcodes of admin commands (base specification 2.0, section 5).
    pub enum AdminOpcode: u8 {
        /// Delete an I/O submission queue.
        DELETE_IO_SQ = 0x00,
        /// Create an I/O submission queue.
        CREATE_IO_SQ = 0x01,
        /// Read a log page.
        GET_LOG_PAGE = 0x02,
        /// Delete an I/O completion queue.
        DELETE_IO_CQ = 0x04,
        /// Create an I/O completion queue.
        CREATE_IO_CQ = 0x05,
        /// Read a data structure that describes controller or namespace.
        IDENTIFY = 0x06,
        /// Give up a command.
        ABORT = 0x08,
        /// Set the value of a feature.
        SET_FEATURES = 0x09,
        /// Read the value of a feature.
        GET_FEATURES = 0x0a,
        /// Completes when something happens that the host should know.
        ASYNCHRONOUS_EVENT_REQUEST = 0x0c,
        /// Create or delete a namespace.
        NAMESPACE_MANAGEMENT = 0x0d,
        /// Commit a firmware image.
        FIRMWARE_COMMIT = 0x10,
        /// Load a part of a firmware image.
        FIRMWARE_IMAGE_DOWNLOAD = 0x11,
        /// Start or stop a self-test.
        DEVICE_SELF_TEST = 0x14,
        /// Attach a namespace to controllers, or detach it.
        NAMESPACE_ATTACHMENT = 0x15,
        /// Restart the keep alive timer.
        KEEP_ALIVE = 0x18,
        /// Change the state of a directive.
        DIRECTIVE_SEND = 0x19,
        /// Read the state of a directive.
        DIRECTIVE_RECEIVE = 0x1a,
        /// Move resources between primary and secondary controllers.
        VIRTUALIZATION_MANAGEMENT = 0x1c,
        /// NVMe-MI command to the controller.
        NVME_MI_SEND = 0x1d,
        /// NVMe-MI response from the controller.
        NVME_MI_RECEIVE = 0x1e,
        /// Change the capacity configuration.
        CAPACITY_MANAGEMENT = 0x20,
        /// Forbid commands or features.
        LOCKDOWN = 0x24,
        /// Place doorbells in memory.
        DOORBELL_BUFFER_CONFIG = 0x7c,
        /// A fabrics command; its type is in byte 4.
        FABRICS = 0x7f,
        /// Format a namespace.
        FORMAT_NVM = 0x80,
        /// Security protocol, to the controller.
        SECURITY_SEND = 0x81,
        /// Security protocol, from the controller.
        SECURITY_RECEIVE = 0x82,
        /// Erase all user data.
        SANITIZE = 0x84,
        /// List blocks that may be unreadable.
        GET_LBA_STATUS = 0x86,
    }
}

crate::open_enum! {
    /// Opcodes of I/O commands: Flush and reservations of the base
    /// specification 2.0 (section 7), the NVM command set 1.0 (section 3.2) and
    /// the ZNS command set 1.1 (section 3.4). A zoned namespace takes all of them.
    pub enum IoOpcode: u8 {
        /// Make written data durable.
        FLUSH = 0x00,
        /// Write blocks.
        WRITE = 0x01,
        /// Read blocks.
        READ = 0x02,
        /// Make blocks unreadable.
        WRITE_UNCORRECTABLE = 0x04,
        /// Compare blocks with a buffer.
        COMPARE = 0x05,
        /// Write zeroes without a transfer.
        WRITE_ZEROES = 0x08,
        /// Dataset management (DSM): hints on ranges, deallocation among them.
        DATASET_MANAGEMENT = 0x09,
        /// Check that blocks can be read.
        VERIFY = 0x0c,
        /// Register a reservation key.
        RESERVATION_REGISTER = 0x0d,
        /// Read the state of reservations.
        RESERVATION_REPORT = 0x0e,
        /// Take a reservation.
        RESERVATION_ACQUIRE = 0x11,
        /// Read what the controller knows of reclaim unit handles (base
        /// specification 2.1, section 7.3).
        IO_MANAGEMENT_RECEIVE = 0x12,
        /// Release a reservation.
        RESERVATION_RELEASE = 0x15,
        /// Copy ranges of blocks inside the device.
        COPY = 0x19,
        /// Change what reclaim unit handles refer to (base specification 2.1,
        /// section 7.4).
        IO_MANAGEMENT_SEND = 0x1d,
        /// Change the state of a zone, or of all.
        ZONE_MANAGEMENT_SEND = 0x79,
        /// Report zones.
        ZONE_MANAGEMENT_RECEIVE = 0x7a,
        /// Write blocks at the write pointer of a zone, wherever that is.
        ZONE_APPEND = 0x7d,
        /// A fabrics command; its type is in byte 4.
        FABRICS = 0x7f,
    }
}
