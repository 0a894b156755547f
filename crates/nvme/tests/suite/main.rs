//! Structures of NVMe against bytes that were written down from the specifications.
//!
//! | module | what |
//! | --- | --- |
//! | `golden_admin` | admin commands, features and asynchronous events, byte by byte |
//! | `golden_psk` | pre-shared keys of TLS |
//! | `golden_auth` | messages and secrets of DH-HMAC-CHAP |
//! | `golden_fabrics` | fabrics commands, the data of Connect and controller properties |
//! | `golden_logs` | log pages: bytes and offsets from the tables of the base specification 2.0 |
//! | `golden_nvm` | commands of the NVM command set beyond Read and Write, and the ranges that go with them |
//! | `golden_offsets` | where each field lies, against the numbers that the specifications print |
//! | `golden_placement` | flexible data placement: bytes and offsets from the tables of the base specification 2.1 |
//! | `golden_queue` | queue entries and commands, byte by byte |
//! | `golden_reservations` | reservations: bytes and offsets from the tables of the base specification 2.0 |
//! | `golden_structures` | structures that Identify, Zone Management Receive and Get Log Page return |
//! | `golden_tcp` | PDUs of NVMe/TCP, byte by byte |
//! | `round_trip` | what a command says survives its entry, for every command and every value |

mod golden_admin;
mod golden_auth;
mod golden_fabrics;
mod golden_logs;
mod golden_nvm;
mod golden_offsets;
mod golden_placement;
mod golden_psk;
mod golden_queue;
mod golden_reservations;
mod golden_structures;
mod golden_tcp;
mod round_trip;
