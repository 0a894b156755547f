//! What JavaScript calls. Everything that goes in and out is text: JSON, TOML, SVG.

use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;
use zonelab_lab::inputs::VERSION;

use crate::bench::Bench;
use crate::picture::Window;
use crate::problem::Problems;
use crate::request::Request;
use crate::starts::{Start, starts, text};

/// Everything where one can start from, with its text, as JSON.
#[wasm_bindgen]
#[must_use]
pub fn starting_points() -> String {
    let start = |start: &Start| {
        let mut value = json!(start);
        value["text"] = json!(text(start.id));
        value
    };
    let all: Vec<_> = starts().iter().map(start).collect();
    json!({ "version": VERSION, "starts": all }).to_string()
}

/// The text of a built-in profile; none if there is none of that name.
#[wasm_bindgen]
#[must_use]
pub fn profile_text(name: &str) -> Option<String> {
    zonelab_ssd::profile::builtin_text(name).map(str::to_owned)
}

/// An experiment that a page runs point by point. Errors are JSON: a list of problems.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Playground {
    bench: Bench,
}

#[wasm_bindgen]
impl Playground {
    /// Reads and checks what a page asks for (a [`Request`] as JSON).
    ///
    /// # Errors
    /// Everything that is wrong with it.
    #[wasm_bindgen(constructor)]
    pub fn new(request: &str) -> Result<Self, String> {
        let request: Result<Request, _> = serde_json::from_str(request);
        let request = request.map_err(|error| Problems::said(error).to_json())?;
        let bench = Bench::open(request).map_err(|problems| problems.to_json())?;
        Ok(Self { bench })
    }

    /// What it is, as JSON.
    #[must_use]
    pub fn overview(&self) -> String {
        self.bench.overview()
    }

    /// Runs a point, and looks closely at a window of it (a [`Window`] as JSON, or nothing).
    ///
    /// # Errors
    /// The point cannot be run.
    pub fn run(&mut self, index: usize, window: Option<String>) -> Result<String, String> {
        let window = window.map(|window| serde_json::from_str::<Window>(&window));
        let window = window.transpose();
        let window = window.map_err(|error| Problems::said(error).to_json())?;
        let ran = self.bench.run(index, window);
        ran.map_err(|problems| problems.to_json())
    }

    /// The figure of the points so far, as SVG.
    ///
    /// # Errors
    /// A published value is missing.
    pub fn figure(&self) -> Result<String, String> {
        self.bench.figure().map_err(|problems| problems.to_json())
    }

    /// The result files, when all points are run, as JSON: names and texts.
    ///
    /// # Errors
    /// Points are missing.
    pub fn files(&self) -> Result<String, String> {
        self.bench.files().map_err(|problems| problems.to_json())
    }
}
