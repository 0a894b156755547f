//! The page: one document, whose script and style are in it.
//!
//! Its style, and the script for elements, scales, charts and bars, are those of
//! the report of a run. The policy that goes with it names the hashes of its one
//! script and one style, so that a browser runs nothing else; it reads
//! `/api/state` and loads nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use zonelab_page as parts;

use crate::http::Reply;

/// Scripts in the order in which they build on each other.
const SCRIPTS: [&str; 10] = [
    parts::BASE,
    parts::SCALE,
    parts::CHART,
    parts::BARS,
    include_str!("page/numbers.js"),
    include_str!("page/zones.js"),
    include_str!("page/tables.js"),
    include_str!("page/lines.js"),
    include_str!("page/layer.js"),
    include_str!("page/live.js"),
];

/// The page, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    document: String,
    policy: String,
}

impl Page {
    /// Puts it together.
    #[must_use]
    pub fn new() -> Self {
        let script = format!("\n(() => {{\n'use strict';\n{}}})();\n", SCRIPTS.concat());
        let style = format!("\n{}{}", parts::STYLE, include_str!("page/live.css"));
        let policy = format!(
            "default-src 'none'; connect-src 'self'; img-src data:; script-src {}; style-src {}; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            source(&script),
            source(&style),
        );
        let filled = [("STYLE", style), ("SCRIPT", script)];
        Self {
            document: parts::fill(include_str!("page/page.html"), &filled),
            policy,
        }
    }

    pub(crate) fn reply(&self) -> Reply {
        Reply {
            policy: self.policy.clone().into(),
            ..Reply::ok(
                "text/html; charset=utf-8",
                self.document.clone().into_bytes(),
            )
        }
    }
}

impl Default for Page {
    fn default() -> Self {
        Self::new()
    }
}

/// Names an inline element in a policy (Content Security Policy Level 3).
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}
