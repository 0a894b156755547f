//! One NVMe/TCP connection of a controller, without a socket.
//!
//! A [`Connection`] takes the bytes that arrive and holds the bytes to send. It
//! checks every field of every PDU, collects the data of commands (in the
//! capsule, or asked for with R2T), and gives whole commands to its owner; it
//! makes PDUs of completions. A peer that breaks the protocol gets the
//! termination request that the specification has for it, and the connection
//! is over; nobody else's is touched.
//!
//! Source: NVMe/TCP transport specification 1.0. Reserved fields of a peer are
//! not looked at.
//!
//! What a peer can make it hold is bounded by its [`Terms`]: a receive buffer,
//! a number of commands, and bytes of data of all commands together. Data that
//! has to be asked for is asked for only once the owner has looked at the
//! command ([`Event::Announced`]) and there is room for all of it; until then
//! the command waits. A command counts until the last byte of its response is
//! with the socket.
//!
//! | module | what |
//! | --- | --- |
//! | `settings` | what a controller offers, what a peer may hold |
//! | `connection` | the connection: its phases, and what its owner does with it |
//! | `arriving` | PDUs to commands |
//! | `answering` | completions to PDUs |
//! | `allowance` | how much data a connection holds, and may hold |
//! | `receive` | bytes to PDUs, and data to where it belongs |
//! | `header` | what must hold of a header before anything is done with it |
//! | `pointer` | what the data pointer of a command asks for |
//! | `slots` | commands in flight |
//! | `send` | PDUs to bytes |
//! | `violation` | what a peer did wrong, and how to tell it |

mod allowance;
mod answering;
mod arriving;
mod connection;
mod header;
mod pointer;
mod receive;
mod send;
mod settings;
mod slots;
mod violation;

pub use connection::{Connection, End, Event};
pub use settings::{Settings, SettingsError, SuccessFlag, Terms};
pub use violation::Violation;
