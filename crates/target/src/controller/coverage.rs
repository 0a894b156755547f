//! What of the protocol there is: the table of `docs/protocol.md`.
//!
//! A row that names no test is not covered; the tests of this crate check that
//! every test that is named exists.

/// How far something is there.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// All of it.
    Implemented,
    /// It is refused with the status that the specification has for that.
    Refused,
}

/// One row: a command, or a part of one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The command.
    pub command: &'static str,
    /// Its field or function, and the statuses that go with it.
    pub field: &'static str,
    /// How far it is there.
    pub state: State,
    /// The test that shows it: module and function in `crates/target/tests/controller`.
    pub test: &'static str,
}

macro_rules! rows {
    ($( $command:literal, $field:literal, $state:ident, $test:literal; )+) => {
        &[$( Row { command: $command, field: $field, state: State::$state, test: $test } ),+]
    };
}

/// The table, by queue and command.
pub const ROWS: &[Row] = rows! {
    "Connect", "RECFMT, SQSIZE, QID, CNTLID, SUBNQN, HOSTNQN, HOSTID", Implemented, "connecting::every_parameter_of_connect_is_checked";
    "Connect", "I/O queue: names of the association, identifier in use", Implemented, "connecting::an_io_queue_belongs_to_its_controller_and_to_one_identifier";
    "Connect", "Command Sequence Error before the controller is enabled", Implemented, "connecting::an_io_queue_needs_an_enabled_controller";
    "Connect", "Connect Invalid Host", Implemented, "connecting::only_hosts_of_the_list_may_connect";
    "Connect", "Connect Controller Busy", Implemented, "connecting::controllers_run_out_and_come_back";
    "Connect", "KATO", Implemented, "lifetime::a_silent_host_loses_its_controller";
    "Connect", "AUTHREQ: ATR", Implemented, "authentication::a_connect_says_that_authentication_is_required";
    "Connect", "Connect Invalid Host: no secret of that host", Implemented, "authentication::only_hosts_with_a_secret_may_connect";
    "Authentication Send, Authentication Receive", "DH-HMAC-CHAP, admin and I/O queues", Implemented, "authentication::every_queue_authenticates_itself";
    "Authentication Send, Authentication Receive", "authentication of the controller", Implemented, "authentication::a_host_may_ask_the_controller_for_its_secret";
    "Authentication Send, Authentication Receive", "AUTH_Failure1, AUTH_Failure2, end of the connection", Implemented, "authentication::a_wrong_secret_is_told_and_ends_the_connection";
    "Authentication Send, Authentication Receive", "SPSP0, SPSP1, SECP, TL, AL", Implemented, "authentication::fields_of_authentication_commands_are_checked";
    "Authentication Send, Authentication Receive", "Command Sequence Error; messages out of turn", Implemented, "authentication::messages_out_of_turn_fail";
    "Authentication Send, Authentication Receive", "anew, on a queue that works", Implemented, "authentication::a_host_may_authenticate_itself_anew";
    "Authentication Send, Authentication Receive", "time limit", Implemented, "authentication::a_transaction_has_a_time_limit";
    "Authentication Send, Authentication Receive", "where nothing is required", Refused, "authentication::authentication_commands_without_need_are_refused";
    "all", "Authentication Required", Implemented, "authentication::nothing_passes_before_authentication";
    "Disconnect", "OFCS bit 0 is clear", Refused, "lifetime::disconnect_is_not_offered";
    "Property Get", "CAP, VS, CC, CSTS", Implemented, "lifetime::properties_say_what_a_linux_host_needs";
    "Property Get, Property Set", "other properties, other sizes", Refused, "lifetime::a_property_that_is_not_there_or_has_another_size_is_refused";
    "Property Set", "CC.EN: enable", Implemented, "lifetime::a_controller_takes_commands_once_it_is_enabled";
    "Property Set", "CC.MPS, AMS, CSS, IOSQES, IOCQES: CSTS.CFS", Implemented, "lifetime::a_configuration_that_is_not_possible_is_fatal";
    "Property Set", "CC.EN: controller reset", Implemented, "lifetime::a_reset_ends_io_queues_and_what_is_in_flight_on_them";
    "Property Set", "CC.SHN: shutdown", Implemented, "lifetime::a_shutdown_closes_io_queues_and_says_that_it_is_complete";
    "Property Set", "CC.SHN: normal shutdown flushes", Implemented, "io::a_normal_shutdown_waits_for_the_buffer";
    "Identify", "CNS 01h", Implemented, "identify::the_controller_structure_has_what_a_linux_host_reads";
    "Identify", "CNS 00h, 05h, 08h", Implemented, "identify::a_zoned_namespace_says_its_size_and_its_limits";
    "Identify", "CNS 06h: ZASL", Implemented, "identify::the_append_limit_is_said_if_it_is_less_than_the_transfer_limit";
    "Identify", "CNS 03h", Implemented, "identify::identifiers_follow_from_the_name_of_the_subsystem";
    "Identify", "CNS 02h, 07h, 13h, 1Ch", Implemented, "identify::lists_name_the_namespaces_after_the_one_given";
    "Identify", "other CNS, CSI and NSID", Refused, "identify::what_is_not_there_is_refused";
    "Get Log Page", "LPO, NUMD, LIDs 00h, 03h", Implemented, "admin::log_pages_are_read_in_parts";
    "Get Log Page", "LID 01h: error information", Implemented, "io::the_error_log_says_which_field_of_which_command";
    "Get Log Page", "LIDs 01h, 02h, BFh: of controllers before", Implemented, "past::a_later_controller_finds_what_happened_before";
    "Get Log Page", "LIDs 01h, BFh: hosts with rules", Implemented, "past::hosts_with_rules_find_their_own_past";
    "Get Log Page", "LID 02h: SMART", Implemented, "admin::the_smart_log_counts_what_the_drive_did";
    "Get Log Page", "LID 04h: changed namespaces", Implemented, "events::a_format_is_told_to_the_others";
    "Get Log Page", "LID 05h: effects", Implemented, "admin::the_effects_log_agrees_with_what_commands_do";
    "Get Log Page", "LID 70h: discovery", Implemented, "identify::a_discovery_controller_lists_where_the_subsystem_is";
    "Get Log Page", "LID BFh: changed zones, RAE", Implemented, "events::a_zone_that_fails_is_told_once_until_its_log_is_read";
    "Get Features", "SEL", Implemented, "admin::features_have_current_default_and_saved_values_and_capabilities";
    "Set Features", "SV: Feature Identifier Not Saveable", Refused, "admin::features_have_current_default_and_saved_values_and_capabilities";
    "Set Features", "01h, 02h, 04h, 05h, 0Ah, 19h", Implemented, "admin::features_refuse_values_that_are_not_possible";
    "Set Features", "06h: volatile write cache", Implemented, "io::force_unit_access_waits_for_the_flash";
    "Set Features", "07h: number of queues", Implemented, "admin::queues_are_granted_until_there_is_one";
    "Set Features", "0Bh: asynchronous events", Implemented, "events::an_event_waits_for_a_request_and_is_told_only_if_it_is_enabled";
    "Set Features", "0Fh: keep alive timer", Implemented, "lifetime::a_silent_host_loses_its_controller";
    "Set Features, Get Features", "16h: host behavior; 81h: host identifier", Implemented, "admin::the_host_reads_its_identifier_and_says_how_it_behaves";
    "Asynchronous Event Request", "limit", Implemented, "events::requests_have_a_limit_and_can_be_aborted";
    "Asynchronous Event Request", "zone descriptor changed, reliability", Implemented, "events::a_write_that_takes_its_zone_away_is_an_event";
    "Asynchronous Event Request", "namespace attribute changed", Implemented, "events::a_format_is_told_to_the_others";
    "Asynchronous Event Request", "discovery log changed", Implemented, "identify::a_discovery_controller_lists_where_the_subsystem_is";
    "Abort", "event requests; others complete", Implemented, "events::requests_have_a_limit_and_can_be_aborted";
    "Property Get", "CSTS.CFS: a controller that gives up by itself", Implemented, "faults::a_controller_that_gives_up_says_so_until_its_host_resets_it";
    "Get Log Page", "LID 02h: read-only and degraded media", Implemented, "faults::zones_that_fail_are_told_and_seen_in_the_health_log";
    "Get Log Page", "LID 02h: power cycles, unsafe shutdowns", Implemented, "faults::a_loss_of_power_after_a_shutdown_is_a_safe_one";
    "Connect", "Connect Controller Busy while there is no power", Implemented, "faults::a_loss_of_power_ends_every_association_and_answers_nothing";
    "Format NVM", "after a completion that was lost", Implemented, "faults::a_lost_completion_holds_up_neither_a_format_nor_its_queue";
    "Keep Alive", "traffic based (TBKAS)", Implemented, "lifetime::any_command_keeps_a_controller_alive";
    "Format NVM", "LBAF: 512 B, 4 KiB", Implemented, "admin::a_format_changes_the_size_of_blocks_and_erases";
    "Format NVM", "Format In Progress", Implemented, "admin::a_format_waits_for_what_is_in_flight_and_lets_nothing_else_in";
    "Format NVM", "PI, MSET, cryptographic erase", Refused, "admin::a_format_that_is_not_possible_is_refused";
    "Read, Write, Flush", "data", Implemented, "io::what_was_written_is_read";
    "Flush", "NSID FFFFFFFFh", Implemented, "io::a_flush_can_be_of_all_namespaces";
    "Read, Write, Zone Append", "length against NLB, MDTS, ZASL", Implemented, "io::lengths_must_agree_with_the_command";
    "Write, Zone Append", "FUA", Implemented, "io::force_unit_access_waits_for_the_flash";
    "Read, Write, Zone Append", "PRINFO: Invalid Protection Information", Refused, "io::the_error_log_says_which_field_of_which_command";
    "Write", "other DTYPE", Refused, "io::a_command_for_no_namespace_or_of_another_kind_is_refused";
    "Zone Append", "assigned LBA", Implemented, "io::an_append_says_where_it_went";
    "Zone Management Send", "open, close, finish, reset", Implemented, "io::zones_go_through_their_states";
    "Zone Management Send", "select all", Implemented, "io::select_all_acts_on_the_zones_of_its_states";
    "Zone Management Send", "offline; each status of the state machine", Implemented, "io::each_error_of_the_state_machine_has_its_status";
    "Zone Management Send, Zone Management Receive", "descriptor extension, filters, partial", Implemented, "io::reports_are_filtered_and_partial_and_have_extensions";
    "Zone Management Send", "ZRWA: allocation, explicit flush", Implemented, "io::a_zone_with_a_random_write_area_is_written_anywhere_in_it";
    "Asynchronous Event Request", "zone that fails by itself", Implemented, "events::a_zone_that_fails_by_itself_is_an_event";
    "Compare, Verify", "Compare Failure, length against NLB", Implemented, "media::a_compare_finds_a_difference_and_a_verify_reads";
    "Write Zeroes", "in a zone and anywhere else", Implemented, "media::zeroes_are_written_where_a_write_could_be";
    "Dataset Management", "AD, other hints, more ranges than NR", Implemented, "media::what_is_deallocated_reads_as_zero_and_a_hint_changes_nothing";
    "Copy", "NR, MSSRL, MCL: Command Size Limit Exceeded; DESFMT 0", Implemented, "media::a_copy_puts_ranges_one_behind_the_other_within_its_limits";
    "Identify, Get Log Page", "ONCS, OCFS, DLFEAT, MSSRL, MCL, MSRC, effects", Implemented, "media::optional_commands_are_announced_and_have_their_limits";
    "Identify", "CTRATT: FDPS, endurance groups; ENDGIDMAX, ENDGID", Implemented, "placement::a_controller_says_that_it_has_flexible_data_placement";
    "Identify, Get Log Page", "CNS 19h, LID 09h: endurance groups", Implemented, "placement::there_is_one_endurance_group";
    "Get Log Page", "LIDs 20h, 21h, 22h: FDP configurations, usage of handles, statistics; LSI", Implemented, "placement::logs_of_the_endurance_group";
    "Get Log Page", "LID 23h: FDP events of the host and of the controller", Implemented, "placement::events_are_told_if_they_are_enabled";
    "Set Features, Get Features", "1Dh: flexible data placement; 1Eh: FDP events", Implemented, "placement::features_of_flexible_data_placement";
    "Write", "DTYPE 02h, DSPEC: data placement", Implemented, "placement::writes_go_where_their_placement_identifier_says";
    "I/O Management Receive, I/O Management Send", "reclaim unit handle status and update; MO", Implemented, "placement::handles_are_updated_and_their_status_is_as_long_as_it_is_asked_for";
    "I/O Management Receive, I/O Management Send", "where the drive has no flexible data placement", Refused, "placement::one_without_has_none_of_it";
    "Identify", "ONCS, RESCAP, CTRATT: RHII", Implemented, "identify::the_controller_structure_has_what_a_linux_host_reads";
    "Identify", "CMIC, NMIC: shared namespaces", Implemented, "identify::a_shared_namespace_says_so";
    "Reservation Register", "RREGA, IEKEY, CPTPL, CRKEY, NRKEY", Implemented, "reservations::keys_are_registered_replaced_and_taken_back";
    "Reservation Acquire, Reservation Release", "RACQA: acquire; RRELA: release; RTYPE, CRKEY", Implemented, "reservations::one_host_acquires_and_gives_back";
    "Reservation Acquire, Reservation Release", "RACQA: preempt; RRELA: clear", Implemented, "reservations::a_preempted_host_is_told_and_shut_out";
    "Reservation Acquire", "RACQA: preempt and abort", Implemented, "reservations::preempt_and_abort_waits_for_what_is_in_flight";
    "Reservation Acquire, Reservation Release", "IEKEY", Refused, "reservations::one_host_acquires_and_gives_back";
    "Reservation Report", "NUMD, EDS: 128-bit host identifiers", Implemented, "reservations::a_report_is_as_long_as_it_is_asked_for_and_of_the_width_of_the_host";
    "Reservation Report, Set Features", "64-bit host identifiers; Host Identifier Inconsistent Format, Host Identifier Not Initialized", Implemented, "reservations::a_host_without_an_identifier_says_one_of_64_bits_or_has_no_reservations";
    "all", "Reservation Conflict, by type of the reservation", Implemented, "reservations::each_type_lets_each_host_do_what_the_table_says";
    "Format NVM", "Reservation Conflict", Implemented, "reservations::a_format_of_all_namespaces_needs_all_of_them";
    "Get Log Page, Asynchronous Event Request", "LID 80h: reservation notification", Implemented, "reservations::a_preempted_host_is_told_and_shut_out";
    "Set Features, Get Features", "82h: reservation notification mask", Implemented, "reservations::notifications_queue_up_and_have_a_mask";
    "Set Features, Get Features", "83h: reservation persistence", Implemented, "reservations::a_loss_of_power_ends_what_is_not_kept";
    "Reservation Register, Reservation Acquire, Reservation Release", "hosts with rules: Namespace is Write Protected, rates", Refused, "reservations::hosts_keep_their_limits";
    "all", "conventional namespaces", Implemented, "media::a_conventional_namespace_is_one_of_the_nvm_command_set";
    "all", "FUSE, NSID, opcode", Refused, "io::a_command_for_no_namespace_or_of_another_kind_is_refused";
    "all", "PSDT: PRPs", Refused, "io::a_command_with_prps_is_refused";
    "all", "CID: Command ID Conflict", Refused, "io::an_identifier_in_flight_is_not_taken_twice";
    "all", "hosts with rules: namespaces of others", Refused, "hosts::a_hostile_host_can_neither_read_nor_change_what_is_not_its_own";
    "all", "Namespace is Write Protected, NSATTR", Implemented, "hosts::what_may_be_read_may_not_be_changed";
    "Format NVM, Zone Management Send", "Operation Denied; Format NVM without permission", Refused, "hosts::destructive_commands_need_a_permission";
    "Identify, Get Log Page, Set Features, Get Features", "hosts with rules: nothing of other namespaces", Implemented, "hosts::a_hostile_host_does_not_learn_of_what_is_not_its_own";
    "Asynchronous Event Request", "hosts with rules: events of their own namespaces", Implemented, "hosts::events_reach_the_hosts_that_have_the_namespace";
    "Connect", "Connect Invalid Host: no rules for that host", Implemented, "hosts::hosts_without_rules_are_let_in_no_more";
    "all", "any bytes", Implemented, "garbage::any_bytes_are_survived";
};

/// The table as Markdown: a row for each command, with what is there and what is refused.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from("| command | implemented | refused |\n| --- | --- | --- |\n");
    let mut commands: Vec<&str> = Vec::new();
    for row in ROWS {
        if !commands.contains(&row.command) {
            commands.push(row.command);
        }
    }
    for command in commands {
        let fields = |state: State| {
            let rows = ROWS
                .iter()
                .filter(|row| row.command == command && row.state == state);
            let fields: Vec<_> = rows.map(|row| row.field).collect();
            fields.join("; ")
        };
        let (implemented, refused) = (fields(State::Implemented), fields(State::Refused));
        out.push_str(&format!("| {command} | {implemented} | {refused} |\n"));
    }
    out
}
