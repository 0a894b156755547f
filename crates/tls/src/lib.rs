//! TLS 1.3 with pre-shared keys before NVMe/TCP (NVMe/TCP transport specification 1.0,
//! section 3.6; TP 8011).
//!
//! A [`Front`] listens on a port of its own, where nobody gets anywhere without TLS. It
//! ends TLS, and hands over a socket with what is inside, together with the name of the
//! host whose key it was: the server behind it needs to know nothing of TLS. Encryption runs
//! in a thread of its own, so that it takes the thread of the server no time.
//!
//! Keys are those of [`zonelab_auth::TlsKey`]: identities `NVMe0R` and `NVMe1R`, always with a
//! Diffie-Hellman exchange (`psk_dhe_ke`). There are no certificates, no other versions
//! of TLS, no tickets and no early data.

mod front;
mod guests;
mod keys;
mod offer;
mod relay;

pub use front::{Admitted, Behind, Front, FrontLimits};
pub use keys::{HostPsk, Keys, KeysError};
