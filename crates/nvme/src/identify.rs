//! What Identify returns: structures of 4096 bytes about controllers and namespaces.
//!
//! Source: NVMe base specification 2.0, section 5.17 (Identify command); NVM
//! command set 1.0 and ZNS command set 1.1, section 4.1 each, for theirs.
//!
//! They are large: read one in place with
//! `IdentifyController::ref_from_bytes(&buffer)` rather than by value.

mod attributes;
mod command_sets;
mod controller;
mod lists;
mod namespace;
mod text;
mod zoned;

pub use attributes::{
    AsyncEvents, ControllerAttributes, ControllerType, EntrySizes, FabricsAttributes,
    FirmwareUpdates, FormatAttributes, FusedOperations, LogPageAttributes, MultiPath, NvmOptions,
    OptionalAdmin, OptionalFabrics, SglSupport, Version, VolatileWriteCache,
};
pub use command_sets::{
    ExtendedLbaFormat, IdentifyControllerNvm, IdentifyNamespaceIndependent, IdentifyNamespaceNvm,
    IndependentFeatures, NamespaceStatus, ProtectionCapabilities,
};
pub use controller::{IdentifyController, PowerState};
pub use lists::{
    CommandSetCombinations, CommandSetVector, ControllerList, NamespaceIdHeader, NamespaceIdType,
    NamespaceList, namespace_ids,
};
pub use namespace::{FormattedLba, IdentifyNamespace, LbaFormat, NamespaceFeatures};
pub use text::{Ascii, Nqn};
pub use zoned::{
    IdentifyControllerZns, IdentifyNamespaceZns, LbaFormatExtension, ZoneCharacteristics,
    ZonedOptions, ZrwaCapability,
};

crate::open_enum! {
    /// Controller or Namespace Structure (CNS): what Identify returns.
    pub enum Cns: u8 {
        /// [`IdentifyNamespace`].
        NAMESPACE = 0x00,
        /// [`IdentifyController`].
        CONTROLLER = 0x01,
        /// Active namespaces: [`NamespaceList`].
        ACTIVE_NAMESPACES = 0x02,
        /// Identifiers of a namespace: [`NamespaceIdHeader`], one after the other;
        /// [`namespace_ids`] reads them.
        NAMESPACE_ID_DESCRIPTORS = 0x03,
        /// NVM sets.
        NVM_SETS = 0x04,
        /// What a command set adds to the namespace: [`IdentifyNamespaceNvm`] or
        /// [`IdentifyNamespaceZns`].
        COMMAND_SET_NAMESPACE = 0x05,
        /// What a command set adds to the controller: [`IdentifyControllerNvm`] or
        /// [`IdentifyControllerZns`].
        COMMAND_SET_CONTROLLER = 0x06,
        /// Active namespaces of a command set: [`NamespaceList`].
        COMMAND_SET_ACTIVE_NAMESPACES = 0x07,
        /// What all command sets have in common about the namespace:
        /// [`IdentifyNamespaceIndependent`].
        COMMAND_SET_INDEPENDENT_NAMESPACE = 0x08,
        /// Namespace structure for a format rather than a namespace.
        NAMESPACE_FOR_FORMAT = 0x09,
        /// Command set specific namespace structure for a format.
        COMMAND_SET_NAMESPACE_FOR_FORMAT = 0x0a,
        /// Allocated namespaces: [`NamespaceList`].
        ALLOCATED_NAMESPACES = 0x10,
        /// [`IdentifyNamespace`] of an allocated namespace.
        ALLOCATED_NAMESPACE = 0x11,
        /// Controllers that a namespace is attached to: [`ControllerList`].
        ATTACHED_CONTROLLERS = 0x12,
        /// Controllers of the subsystem: [`ControllerList`].
        CONTROLLERS = 0x13,
        /// Capabilities of the primary controller.
        PRIMARY_CONTROLLER_CAPABILITIES = 0x14,
        /// Secondary controllers.
        SECONDARY_CONTROLLERS = 0x15,
        /// Granularities of namespace sizes.
        NAMESPACE_GRANULARITIES = 0x16,
        /// UUIDs that vendor-specific things refer to.
        UUIDS = 0x17,
        /// Domains.
        DOMAINS = 0x18,
        /// Endurance groups:
        /// [`EnduranceGroupList`](crate::placement::EnduranceGroupList).
        ENDURANCE_GROUPS = 0x19,
        /// Allocated namespaces of a command set: [`NamespaceList`].
        COMMAND_SET_ALLOCATED_NAMESPACES = 0x1a,
        /// Command set specific structure of an allocated namespace.
        COMMAND_SET_ALLOCATED_NAMESPACE = 0x1b,
        /// [`CommandSetCombinations`].
        COMMAND_SETS = 0x1c,
    }
}

crate::open_enum! {
    /// Command Set Identifier (CSI).
    pub enum CommandSet: u8 {
        /// The NVM command set: blocks.
        NVM = 0x00,
        /// Key value.
        KEY_VALUE = 0x01,
        /// Zoned namespaces.
        ZNS = 0x02,
    }
}

enum_fields!(Cns: u8, CommandSet: u8);
