//! The drive as its host sees it, in one program: most of these tests share their drives,
//! and what they share is compiled once.
//!
//! | module | what |
//! | --- | --- |
//! | `allocator` | the allocator beside an integer-programming solver |
//! | `changed_zones` | the changed zone list: what a drive tells of zones that it changed by itself |
//! | `conventional` | conventional namespaces against a plain array |
//! | `counterfactual` | what commands would have taken without something they waited for |
//! | `data_placement` | flexible data placement: reclaim unit handles against an oracle |
//! | `drive_allocation` | how and when a zone comes by its flash |
//! | `drive_blocks` | what NAND flash asks for, block by block, on any drive |
//! | `drive_buffer` | the write-back buffer, by hand and under random commands |
//! | `drive_clock` | time as the owner of a drive gives it |
//! | `drive_data` | data of a drive that keeps it |
//! | `drive_designs` | all designs in all combinations, under random command streams |
//! | `drive_details` | details of closely modelled drives on examples that are computed by hand |
//! | `drive_figures` | what a profile says of an idle drive is what the drive does |
//! | `drive_finish` | zone finish beside host I/O, and what can happen to it on the way |
//! | `drive_found` | what commands found to do: reads of nothing, resets of empty zones |
//! | `drive_front_end` | firmware cores and the host link: what commands pass besides the flash |
//! | `drive_in_flight` | data that the drive works on at the same time, and what waits behind it |
//! | `drive_isolation` | zones on a part of the dies: what they share, and what they do not |
//! | `drive_layout` | pages of zones on planes and blocks |
//! | `drive_mapping` | which flash a zone stands on, and what its first write pays for it |
//! | `drive_peers` | defects of other emulators of zoned drives, which this one must not have |
//! | `drive_peers_buffers` | the same: defects of write buffers and of garbage collection |
//! | `drive_placement` | which die takes the next program of a zone |
//! | `drive_precondition` | zones that are declared full are as those that were written |
//! | `drive_preemptive` | the zone mapping method and preemptive zone reset |
//! | `drive_record` | what a drive records of itself |
//! | `drive_reset` | zone reset: preemption, Select All, and resets that meet other work |
//! | `drive_support` | what the tests of the whole drive share |
//! | `drive_timing` | times on the emulated drive of ConfZNS++ (SYSTOR'24), worked out by hand |
//! | `elements` | zones that are assembled from storage elements (SilentZNS, section 4) |
//! | `elements_oracle` | storage elements as sets, run beside a drive |
//! | `elements_thin` | drives with more zones than flash: what a zone accepts always has flash |
//! | `faults` | faults between a drive and its host |
//! | `media_cases` | flash timing on examples that are computed by hand |
//! | `media_details` | details of flash timing on examples that are computed by hand |
//! | `media_engines` | the engine on events and the closed form agree where service is in order of arrival |
//! | `media_idle` | who asks to be told when a unit is idle is told once, and in time |
//! | `media_policies` | what holds on events under every policy, for random groups |
//! | `media_support` | what the tests of flash timing share |
//! | `namespaces` | namespaces: address spaces and limits of their own on shared flash |
//! | `nvm_commands` | Write Zeroes, Compare, Verify, Deallocate and Copy on zones |
//! | `pairs_of_features` | features that are right alone, two at a time |
//! | `plain_way` | commands that take the plain way come to the same as by the general way |
//! | `policies` | policies from outside of the crate |
//! | `power` | loss of power: what is left of zones and data |
//! | `preemptive_adapt` | thresholds that adapt to the load |
//! | `preemptive_elements` | erasure by thresholds of zones that are assembled from storage elements |
//! | `profile_builtin` | the profiles that come with zonelab: what they say, and what follows |
//! | `profile_garbage` | no profile and no configuration panics: it is read, or it is refused |
//! | `profile_page` | the page of all keys of a profile says what their declarations say |
//! | `profile_refusals` | what is wrong with a profile: every refusal, word for word |
//! | `profile_roundtrip` | configurations and their files agree |
//! | `profile_support` | configurations for the tests of profiles |
//! | `slc_cache` | the SLC cache: what it takes and holds, folding, the cliff |
//! | `snapshot` | snapshots |
//! | `zones_oracle` | the zone state machine against that of `zonelab-oracle` |
//! | `zones_status` | each status code of the zone state machine |
//! | `zones_table` | the table of the zone state machine |
//! | `zrwa` | random write areas of the whole drive |

mod allocator;
mod changed_zones;
mod conventional;
mod counterfactual;
mod data_placement;
mod drive_allocation;
mod drive_blocks;
mod drive_buffer;
mod drive_clock;
mod drive_data;
mod drive_designs;
mod drive_details;
mod drive_figures;
mod drive_finish;
mod drive_found;
mod drive_front_end;
mod drive_in_flight;
mod drive_isolation;
mod drive_layout;
mod drive_mapping;
mod drive_peers;
mod drive_peers_buffers;
mod drive_placement;
mod drive_precondition;
mod drive_preemptive;
mod drive_record;
mod drive_reset;
mod drive_support;
mod drive_timing;
mod elements;
mod elements_oracle;
mod elements_thin;
mod faults;
mod media_cases;
mod media_details;
mod media_engines;
mod media_idle;
mod media_policies;
mod media_support;
mod namespaces;
mod nvm_commands;
mod pairs_of_features;
mod plain_way;
mod policies;
mod power;
mod preemptive_adapt;
mod preemptive_elements;
mod profile_builtin;
mod profile_garbage;
mod profile_page;
mod profile_refusals;
mod profile_roundtrip;
mod profile_support;
mod slc_cache;
mod snapshot;
mod zones_oracle;
mod zones_status;
mod zones_table;
mod zrwa;
