//! Policies from outside of the crate: the built-in rules written again over the public
//! interface give the same drive to the nanosecond, and answers that make no sense are typed
//! errors that harm nothing.

mod allocation;
mod nonsense;
mod paper;
