//! Features: Set Features and Get Features.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::{GetFeatures, SetFeatures};
use zonelab_nvme::feature::{
    AsyncEventConfiguration, CommandSetProfile, ErrorRecovery, FeatureCapabilities, FeatureId,
    FeatureSelect, HostBehaviorSupport, HostIdentifier, NumberOfQueues, PowerManagement,
    TemperatureThreshold, WriteCache,
};
use zonelab_nvme::identify::AsyncEvents;
use zonelab_nvme::reservation::{NotificationMask, NotificationType};
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};

use super::events::{discovery_events, io_events};
use super::failure::{Failure, byte};
use super::state::{Controller, Kind};
use super::{Answer, Layer, Subsystem, admin::expect_length};
use crate::reservations::HostId;

/// Granularity of the keep alive timer in milliseconds (KAS times 100 ms).
pub(super) const KEEP_ALIVE_GRANULARITY_MS: u32 = 100;
/// Temperature at which a drive without a thermometer warns, in kelvins.
const TEMPERATURE_THRESHOLD_K: u16 = 343;

/// Values of the features of one controller.
#[derive(Clone, Debug)]
pub(super) struct Features {
    arbitration: u32,
    temperature_threshold: TemperatureThreshold,
    /// By namespace, that of NSID 1 first.
    error_recovery: Vec<ErrorRecovery>,
    write_cache: WriteCache,
    write_atomicity: u32,
    pub(super) events: AsyncEventConfiguration,
    keep_alive_ms: u32,
    host_behavior: HostBehaviorSupport,
    /// By namespace, that of NSID 1 first.
    notification_masks: Vec<NotificationMask>,
}

impl Features {
    /// Default values. Keep alive comes from the Connect command.
    pub(super) fn new(kind: Kind, namespaces: usize, keep_alive_ms: u32) -> Self {
        let events = match kind {
            Kind::Io => AsyncEvents::default(),
            Kind::Discovery => discovery_events(),
        };
        Self {
            arbitration: 0,
            temperature_threshold: TemperatureThreshold::default()
                .with_tmpth(TEMPERATURE_THRESHOLD_K),
            error_recovery: vec![ErrorRecovery::default(); namespaces],
            write_cache: WriteCache::default().with_wce(true),
            write_atomicity: 0,
            // Nothing is reported before the host asks for it, but a discovery
            // controller has one event, and who connects wants that.
            events: AsyncEventConfiguration::default().with_optional(events),
            keep_alive_ms: rounded(keep_alive_ms),
            host_behavior: HostBehaviorSupport::default(),
            notification_masks: vec![NotificationMask::default(); namespaces],
        }
    }

    /// The keep alive timeout; `None`: there is none.
    pub(super) fn keep_alive(&self) -> Option<Nanos> {
        (self.keep_alive_ms > 0).then(|| Nanos::from_ms(self.keep_alive_ms.into()))
    }

    /// The keep alive timeout in milliseconds.
    pub(super) const fn keep_alive_ms(&self) -> u32 {
        self.keep_alive_ms
    }

    /// Whether notifications of that kind are not made for a namespace.
    pub(super) fn masks_notification(&self, nsid: u32, what: NotificationType) -> bool {
        let mask = self.notification_masks.get(nsid.wrapping_sub(1) as usize);
        let mask = mask.copied().unwrap_or_default();
        match what {
            NotificationType::REGISTRATION_PREEMPTED => mask.registration_preempted(),
            NotificationType::RESERVATION_RELEASED => mask.reservation_released(),
            NotificationType::RESERVATION_PREEMPTED => mask.reservation_preempted(),
            _ => true,
        }
    }

    pub(super) fn set_notification_mask(&mut self, nsid: u32, mask: NotificationMask) {
        if let Some(place) = self
            .notification_masks
            .get_mut(nsid.wrapping_sub(1) as usize)
        {
            *place = mask;
        }
    }

    /// Whether writes may complete before they are durable.
    #[inline]
    pub(super) fn caches_writes(&self) -> bool {
        self.write_cache.wce()
    }
}

/// `ms` rounded up to the granularity of the timer.
fn rounded(ms: u32) -> u32 {
    ms.checked_next_multiple_of(KEEP_ALIVE_GRANULARITY_MS)
        .unwrap_or(u32::MAX - u32::MAX % KEEP_ALIVE_GRANULARITY_MS)
}

/// What can be done with a feature; `None`: there is no such feature.
fn capabilities(
    kind: Kind,
    (has_write_cache, has_placement): (bool, bool),
    fid: FeatureId,
) -> Option<FeatureCapabilities> {
    let changeable = FeatureCapabilities::default().with_changeable(true);
    let fixed = FeatureCapabilities::default();
    match fid {
        FeatureId::ASYNC_EVENT_CONFIGURATION | FeatureId::KEEP_ALIVE_TIMER => Some(changeable),
        _ if kind == Kind::Discovery => None,
        FeatureId::ARBITRATION
        | FeatureId::POWER_MANAGEMENT
        | FeatureId::TEMPERATURE_THRESHOLD
        | FeatureId::NUMBER_OF_QUEUES
        | FeatureId::WRITE_ATOMICITY_NORMAL
        | FeatureId::HOST_BEHAVIOR_SUPPORT
        | FeatureId::COMMAND_SET_PROFILE => Some(changeable),
        FeatureId::ERROR_RECOVERY
        | FeatureId::RESERVATION_NOTIFICATION_MASK
        | FeatureId::RESERVATION_PERSISTENCE => Some(changeable.with_namespace_specific(true)),
        FeatureId::VOLATILE_WRITE_CACHE => has_write_cache.then_some(changeable),
        FeatureId::FLEXIBLE_DATA_PLACEMENT => has_placement.then_some(changeable),
        FeatureId::FDP_EVENTS => has_placement.then_some(changeable.with_namespace_specific(true)),
        // On fabrics, Connect has set it.
        FeatureId::HOST_IDENTIFIER => Some(fixed),
        _ => None,
    }
}

impl<L: Layer> Subsystem<L> {
    /// Set Features.
    pub(super) fn set_features(
        &mut self,
        slot: u32,
        command: SetFeatures,
        data: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        let (now, queues) = (self.now, self.settings.io_queues);
        let nsid = command.nsid;
        let is_its = nsid == u32::MAX || self.rights(slot, nsid).is_some();
        let has = (self.has_volatile_cache(), self.has_placement());
        let controller = self.controllers.at(slot);
        let fid = command.fid;
        capabilities(controller.kind, has, fid).ok_or_else(|| Failure::field(byte::CDW10))?;
        if command.sv {
            return Err(Failure::bit(
                Status::FEATURE_NOT_SAVEABLE,
                byte::CDW10 + 3,
                7,
            ));
        }
        let value = command.dword11;
        let features = &mut controller.features;
        let mut result = 0;
        match fid {
            FeatureId::ARBITRATION => features.arbitration = value,
            FeatureId::POWER_MANAGEMENT => {
                if PowerManagement::from_bits(value).ps() != 0 {
                    return Err(Failure::field(byte::CDW11));
                }
            }
            FeatureId::TEMPERATURE_THRESHOLD => {
                let threshold = TemperatureThreshold::from_bits(value);
                if !matches!(threshold.tmpsel(), 0 | 0xf) || threshold.thsel() > 1 {
                    return Err(Failure::field(byte::CDW11 + 2));
                }
                if threshold.thsel() == 0 {
                    features.temperature_threshold = threshold.with_tmpsel(0);
                }
            }
            FeatureId::ERROR_RECOVERY if !is_its => return Err(no_namespace()),
            FeatureId::ERROR_RECOVERY => {
                let recovery = ErrorRecovery::from_bits(value);
                if recovery.dulbe() {
                    // DAE of NSFEAT is clear.
                    return Err(Failure::field(byte::CDW11 + 2));
                }
                set_error_recovery(features, command.nsid, recovery)?;
            }
            FeatureId::VOLATILE_WRITE_CACHE => {
                features.write_cache = WriteCache::from_bits(value & 1)
            }
            FeatureId::NUMBER_OF_QUEUES => {
                result = number_of_queues(controller, value, queues)?.into();
            }
            FeatureId::WRITE_ATOMICITY_NORMAL => features.write_atomicity = value & 1,
            FeatureId::ASYNC_EVENT_CONFIGURATION => {
                features.events = AsyncEventConfiguration::from_bits(value);
            }
            FeatureId::KEEP_ALIVE_TIMER => {
                features.keep_alive_ms = rounded(value);
                controller.arm_keep_alive(now);
                self.find_alarm();
            }
            FeatureId::HOST_BEHAVIOR_SUPPORT => {
                let data = expect_length(data, size_of::<HostBehaviorSupport>())?;
                let behavior = HostBehaviorSupport::read_from_bytes(data)
                    .map_err(|_| Failure::from(Status::DATA_SGL_LENGTH_INVALID))?;
                features.host_behavior = behavior;
            }
            FeatureId::COMMAND_SET_PROFILE => {
                if CommandSetProfile::from_bits(value).iocsci() != 0 {
                    return Err(Failure::at(
                        Status::COMMAND_SET_COMBINATION_REJECTED,
                        byte::CDW11,
                    ));
                }
            }
            FeatureId::FLEXIBLE_DATA_PLACEMENT => return Self::set_placement(&command),
            FeatureId::FDP_EVENTS => return self.set_placement_events(slot, &command, data),
            FeatureId::RESERVATION_NOTIFICATION_MASK => {
                return self.set_notification_mask(slot, &command);
            }
            FeatureId::RESERVATION_PERSISTENCE => return self.set_persistence(slot, &command),
            _ => return self.set_host_identifier(slot, &command, data),
        }
        Ok(Answer::value(result))
    }

    /// Get Features.
    pub(super) fn get_features(
        &mut self,
        slot: u32,
        command: GetFeatures,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        let has = (self.has_volatile_cache(), self.has_placement());
        let queues = self.settings.io_queues;
        let namespaces = self.namespaces.len();
        let is_its = self.rights(slot, command.nsid).is_some();
        let controller = self.controllers.at(slot);
        let fid = command.fid;
        let capabilities =
            capabilities(controller.kind, has, fid).ok_or_else(|| Failure::field(byte::CDW10))?;
        let defaults;
        let features = match command.sel {
            FeatureSelect::CURRENT => &controller.features,
            // Nothing is saveable, and then the saved value is the default.
            FeatureSelect::DEFAULT | FeatureSelect::SAVED => {
                defaults = Features::new(controller.kind, namespaces, 0);
                &defaults
            }
            FeatureSelect::SUPPORTED_CAPABILITIES => {
                return Ok(Answer::value(capabilities.bits().into()));
            }
            _ => return Err(Failure::field(byte::CDW10 + 1)),
        };
        match fid {
            FeatureId::FLEXIBLE_DATA_PLACEMENT => return Self::get_placement(&command),
            FeatureId::FDP_EVENTS => return self.get_placement_events(slot, &command, data_len),
            FeatureId::RESERVATION_PERSISTENCE if command.sel == FeatureSelect::CURRENT => {
                return self.persistence(slot, &command);
            }
            _ => {}
        }
        let value = match fid {
            FeatureId::ARBITRATION => features.arbitration,
            FeatureId::TEMPERATURE_THRESHOLD => {
                let selected = TemperatureThreshold::from_bits(command.dword11);
                match (selected.tmpsel(), selected.thsel()) {
                    (0, 0) => features.temperature_threshold.bits(),
                    (0, 1) => 0,
                    _ => return Err(Failure::field(byte::CDW11 + 2)),
                }
            }
            FeatureId::ERROR_RECOVERY => namespace_index(command.nsid, namespaces)
                .filter(|_| is_its)
                .and_then(|index| features.error_recovery.get(index))
                .ok_or_else(no_namespace)?
                .bits(),
            FeatureId::RESERVATION_NOTIFICATION_MASK => namespace_index(command.nsid, namespaces)
                .filter(|_| is_its)
                .and_then(|index| features.notification_masks.get(index))
                .ok_or_else(no_namespace)?
                .bits(),
            FeatureId::RESERVATION_PERSISTENCE if !is_its => return Err(no_namespace()),
            FeatureId::VOLATILE_WRITE_CACHE => features.write_cache.bits(),
            FeatureId::NUMBER_OF_QUEUES => granted(queues).bits(),
            FeatureId::WRITE_ATOMICITY_NORMAL => features.write_atomicity,
            FeatureId::ASYNC_EVENT_CONFIGURATION => features.events.bits(),
            FeatureId::KEEP_ALIVE_TIMER => features.keep_alive_ms,
            FeatureId::HOST_BEHAVIOR_SUPPORT => {
                let bytes = *features
                    .host_behavior
                    .as_bytes()
                    .first_chunk::<512>()
                    .unwrap_or(&[0; 512]);
                return self.structure(&bytes, data_len);
            }
            FeatureId::HOST_IDENTIFIER => {
                let wide = HostIdentifier::from_bits(command.dword11).exhid();
                return match (controller.identifier, wide) {
                    (Some(HostId::Short(id)), false) => self.structure(&id.to_le_bytes(), data_len),
                    (Some(HostId::Extended(id)), true) => self.structure(&id, data_len),
                    (None, true) => self.structure(&[0; 16], data_len),
                    (None, false) => self.structure(&[0; 8], data_len),
                    // On fabrics only the long form exists.
                    _ => Err(Failure::field(byte::CDW11)),
                };
            }
            // Power state 0; command set combination 0.
            _ => 0,
        };
        Ok(Answer::value(value.into()))
    }
}

fn no_namespace() -> Failure {
    Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID)
}

/// Position of a namespace; `None`: there is no such namespace.
fn namespace_index(nsid: u32, namespaces: usize) -> Option<usize> {
    let index = usize::try_from(nsid).ok()?.checked_sub(1)?;
    (index < namespaces).then_some(index)
}

fn set_error_recovery(
    features: &mut Features,
    nsid: u32,
    recovery: ErrorRecovery,
) -> Result<(), Failure> {
    if nsid == u32::MAX {
        features.error_recovery.fill(recovery);
        return Ok(());
    }
    let index = namespace_index(nsid, features.error_recovery.len()).ok_or_else(no_namespace)?;
    features.error_recovery[index] = recovery;
    Ok(())
}

/// What a host gets, whatever it asks for: the specification allows more.
fn granted(queues: u16) -> NumberOfQueues {
    NumberOfQueues::default()
        .with_nsq_z(queues - 1)
        .with_ncq_z(queues - 1)
}

fn number_of_queues(controller: &Controller, value: u32, queues: u16) -> Result<u32, Failure> {
    let wanted = NumberOfQueues::from_bits(value);
    if wanted.nsq_z() == u16::MAX || wanted.ncq_z() == u16::MAX {
        return Err(Failure::field(byte::CDW11));
    }
    if controller.io.iter().any(Option::is_some) {
        return Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR));
    }
    Ok(granted(queues).bits())
}

/// Events of a controller of that kind, for Identify.
pub(super) fn supported_events(kind: Kind) -> AsyncEvents {
    match kind {
        Kind::Io => io_events(),
        Kind::Discovery => discovery_events(),
    }
}
