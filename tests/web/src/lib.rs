//! Tests of what zonelab shows in a browser.
//!
//! [`Page`] opens a file in headless Chromium and drives it over the Chrome
//! DevTools Protocol, by JSON over a WebSocket: a dozen methods of it. Crates
//! with the whole protocol as types take minutes to compile.

mod browser;
mod page;
mod site;

pub use page::{Page, View};
pub use site::Site;
