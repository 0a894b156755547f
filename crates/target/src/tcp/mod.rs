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
//! What a peer can make it hold is bounded: a receive buffer of fixed size, as
//! many commands as the queue is deep, and for each of them at most one buffer
//! of data and one PDU that waits to be sent. A command counts until the last
//! byte of its response is with the socket.
//!
//! | module | what |
//! | --- | --- |
//! | `connection` | the connection: phases, events, completions |
//! | `receive` | bytes to PDUs, and data to where it belongs |
//! | `header` | what must hold of a header before anything is done with it |
//! | `pointer` | what the data pointer of a command asks for |
//! | `slots` | commands in flight |
//! | `send` | PDUs to bytes |
//! | `violation` | what a peer did wrong, and how to tell it |

mod connection;
mod header;
mod pointer;
mod receive;
mod send;
mod slots;
mod violation;

pub use connection::{Connection, End, Event, Settings, SettingsError, SuccessFlag};
pub use violation::Violation;
