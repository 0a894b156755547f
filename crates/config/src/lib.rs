//! Reading zonelab's input files: TOML with units, and errors that help.
//!
//! Profiles, experiments and sweeps are TOML. A plain deserialiser stops at the
//! first mistake and often cannot say where it is; here a reader *asks* a
//! [`Document`] for what it needs, and the document
//!
//! * knows file, line and key path of every value, so that each [`Problem`]
//!   says where, what is wrong, and what would be valid;
//! * collects problems, so that one run shows all of them ([`Errors`]);
//! * remembers what was asked for, so that a key that nobody asked for is an
//!   error too, with the nearest key that would have been understood;
//! * takes `--set a.b.c=value` overrides ([`Override`]) as if the file said so;
//! * puts values in for `$name` in strings ([`Document::put_in`]);
//! * reads sizes, times, rates and percentages only with their unit, in exact
//!   integer arithmetic ([`units`]).
//!
//! No file is opened here: text comes in, values or errors come out, and no
//! input makes it panic.
//!
//! ```
//! use zonelab_config::Document;
//!
//! let text = "[media]\nprgram = \"700us\"\nread = \"60\"\n";
//! let document = Document::parse("x.toml", text, &[]).expect("TOML");
//! let media = document.root().table("media");
//! // Ask for every key of a table first; leave with `?` only after that.
//! let program = media.duration_ns("program").required();
//! let read = media.duration_ns("read").or(60_000);
//! let both = || Ok((program?, read?));
//! let errors = document.finish(both()).expect_err("two typing errors");
//! assert_eq!(
//!     errors.to_string(),
//!     "x.toml:1: media.program: missing\n\
//!      x.toml:2: media.prgram: unknown key `prgram`; did you mean `program`?\n\
//!      x.toml:3: media.read: \"60\" has no unit; write for example \"60us\" or \"60s\"",
//! );
//! ```

mod document;
mod error;
mod item;
mod kind;
mod nearest;
mod node;
mod number;
mod overrides;
mod table;
pub mod units;

pub use document::{Document, PutIn, PutInAt, Reported, is_placeholder_name};
pub use error::{Elsewhere, Errors, Place, Problem};
pub use item::Item;
pub use kind::FileKind;
pub use nearest::nearest;
pub use overrides::Override;
pub use table::{Field, Table};
