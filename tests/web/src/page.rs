//! A page and what one does with it.

use std::path::Path;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use serde_json::{Value, json};

use crate::browser::Browser;

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// Height of the window in CSS pixels.
    pub height: u32,
    /// Whether it is a telephone: touch, two device pixels to one of CSS.
    pub phone: bool,
    /// Whether the reader prefers dark pages.
    pub dark: bool,
}

impl View {
    /// A window on a desk.
    pub const DESK: Self = Self {
        width: 1200,
        height: 900,
        phone: false,
        dark: false,
    };
    /// The same, at night.
    pub const NIGHT: Self = Self {
        dark: true,
        ..Self::DESK
    };
    /// A small telephone.
    pub const PHONE: Self = Self {
        width: 360,
        height: 740,
        phone: true,
        dark: false,
    };
}

/// A page in a browser of its own.
pub struct Page {
    browser: Browser,
    url: String,
}

impl Page {
    /// Opens a file and waits until it is loaded.
    ///
    /// # Errors
    /// There is no browser, or it does not do what it is told.
    pub fn open(file: &Path, view: View) -> Result<Self> {
        Self::load(&url_of(file)?, view, true)
    }

    /// Opens what is served at a URL, and waits until it is loaded.
    ///
    /// # Errors
    /// As [`Page::open`].
    pub fn open_url(url: &str, view: View) -> Result<Self> {
        Self::load(url, view, true)
    }

    /// Opens a file in a browser whose user has turned scripts off. Scripts of
    /// tests still run.
    ///
    /// # Errors
    /// As [`Page::open`].
    pub fn open_without_script(file: &Path, view: View) -> Result<Self> {
        Self::load(&url_of(file)?, view, false)
    }

    fn load(url: &str, view: View, script: bool) -> Result<Self> {
        let mut browser = Browser::start()?;
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach)?;
        browser.session = text(&session["sessionId"])?;
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        let scheme = if view.dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        )?;
        let metrics = json!({
            "width": view.width, "height": view.height, "mobile": view.phone,
            "deviceScaleFactor": if view.phone { 2 } else { 1 },
        });
        browser.call("Emulation.setDeviceMetricsOverride", metrics)?;
        browser.call(
            "Emulation.setTouchEmulationEnabled",
            json!({ "enabled": view.phone }),
        )?;
        browser.call(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": !script }),
        )?;
        browser.events.clear();
        browser.call("Page.navigate", json!({ "url": url }))?;
        browser.wait_for("Page.loadEventFired")?;
        let url = url.to_owned();
        let mut page = Self { browser, url };
        if script {
            page.settle()?;
        }
        Ok(page)
    }

    /// The value of a JavaScript expression.
    ///
    /// # Errors
    /// It throws.
    pub fn eval(&mut self, expression: &str) -> Result<Value> {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let answer = self.browser.call("Runtime.evaluate", params)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until the page has drawn what is due: two frames, so that what
    /// observers change in the first is there.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn settle(&mut self) -> Result<()> {
        let frames =
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
        self.eval(&format!("{frames}.then(() => null)")).map(drop)
    }

    /// Moves the mouse onto the middle of the first element of a selector,
    /// after scrolling there.
    ///
    /// # Errors
    /// There is none.
    pub fn hover(&mut self, selector: &str) -> Result<()> {
        let (x, y) = self.middle(selector)?;
        self.mouse("mouseMoved", x, y, 0)?;
        self.settle()
    }

    /// Moves the mouse to a place in it, from its upper left corner.
    ///
    /// # Errors
    /// There is none.
    pub fn hover_at(&mut self, selector: &str, (x, y): (f64, f64)) -> Result<()> {
        self.middle(selector)?;
        let name = serde_json::to_string(selector)?;
        let corner = self.eval(&format!(
            "(() => {{ const r = document.querySelector({name}).getBoundingClientRect(); \
             return [r.x, r.y]; }})()"
        ))?;
        let at = |index: usize| corner[index].as_f64().context("no corner");
        self.mouse("mouseMoved", at(0)? + x, at(1)? + y, 0)?;
        self.settle()
    }

    /// Clicks on it.
    ///
    /// # Errors
    /// There is none.
    pub fn click(&mut self, selector: &str) -> Result<()> {
        let (x, y) = self.middle(selector)?;
        self.mouse("mouseMoved", x, y, 0)?;
        self.mouse("mousePressed", x, y, 1)?;
        self.mouse("mouseReleased", x, y, 1)?;
        self.settle()
    }

    /// Taps on it with a finger.
    ///
    /// # Errors
    /// There is none.
    pub fn tap(&mut self, selector: &str) -> Result<()> {
        let (x, y) = self.middle(selector)?;
        let touch = |kind: &str, points| json!({ "type": kind, "touchPoints": points });
        let finger = json!([{ "x": x, "y": y }]);
        self.browser
            .call("Input.dispatchTouchEvent", touch("touchStart", finger))?;
        self.browser
            .call("Input.dispatchTouchEvent", touch("touchEnd", json!([])))?;
        self.settle()
    }

    /// Shows the page as it is printed.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn print_media(&mut self) -> Result<()> {
        self.browser
            .call("Emulation.setEmulatedMedia", json!({ "media": "print" }))?;
        self.settle()
    }

    /// Presses a key that has no character: `Tab`, `ArrowRight`.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn press(&mut self, key: &str) -> Result<()> {
        for kind in ["keyDown", "keyUp"] {
            let params = json!({ "type": kind, "key": key, "code": key });
            self.browser.call("Input.dispatchKeyEvent", params)?;
        }
        self.settle()
    }

    /// Presses a key with its number, which fields of the browser's own ask for: 37 is
    /// `ArrowLeft`.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn press_number(&mut self, key: &str, number: u32) -> Result<()> {
        for kind in ["rawKeyDown", "keyUp"] {
            let params = json!({
                "type": kind, "key": key, "code": key,
                "windowsVirtualKeyCode": number, "nativeVirtualKeyCode": number,
            });
            self.browser.call("Input.dispatchKeyEvent", params)?;
        }
        self.settle()
    }

    /// Types into what has the focus.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn type_text(&mut self, text: &str) -> Result<()> {
        self.browser
            .call("Input.insertText", json!({ "text": text }))?;
        self.settle()
    }

    /// What the page complained about: messages on the console of any level,
    /// exceptions, and what the browser logged about it.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let methods = [
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
        ];
        let events = self.browser.events.iter();
        events
            .filter(|event| methods.iter().any(|method| event["method"] == *method))
            .map(|event| event["params"].to_string())
            .collect()
    }

    /// Everything that was asked of a network or a file system, besides the page.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let events = self.browser.events.iter();
        events
            .filter(|event| event["method"] == "Network.requestWillBeSent")
            .filter_map(|event| event["params"]["request"]["url"].as_str())
            .filter(|url| *url != self.url && !url.starts_with("data:"))
            .map(str::to_owned)
            .collect()
    }

    /// Writes a PNG of the window, or of an element as a whole.
    ///
    /// # Errors
    /// There is no such element, or the file cannot be written.
    pub fn screenshot(&mut self, file: &Path, selector: Option<&str>) -> Result<()> {
        let mut params = json!({ "format": "png" });
        if let Some(selector) = selector {
            let name = serde_json::to_string(selector)?;
            let script = format!(
                "(() => {{ const r = document.querySelector({name}).getBoundingClientRect(); return \
                 {{ x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1 }}; }})()"
            );
            params["clip"] = self.eval(&script)?;
            params["captureBeyondViewport"] = json!(true);
        }
        let answer = self.browser.call("Page.captureScreenshot", params)?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text(&answer["data"])?)?;
        std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
    }

    fn middle(&mut self, selector: &str) -> Result<(f64, f64)> {
        let name = serde_json::to_string(selector)?;
        let script = format!(
            "(() => {{ const node = document.querySelector({name}); if (!node) return null; \
             node.scrollIntoView({{ block: 'center' }}); const r = node.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let middle = self.eval(&script)?;
        self.settle()?;
        match (middle[0].as_f64(), middle[1].as_f64()) {
            (Some(x), Some(y)) => Ok((x, y)),
            _ => bail!("there is no {selector}"),
        }
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64, clicks: u32) -> Result<()> {
        let button = if clicks > 0 { "left" } else { "none" };
        let params = json!({
            "type": kind, "x": x, "y": y, "button": button, "clickCount": clicks,
        });
        self.browser
            .call("Input.dispatchMouseEvent", params)
            .map(drop)
    }
}

fn url_of(file: &Path) -> Result<String> {
    Ok(format!("file://{}", file.canonicalize()?.display()))
}

fn text(value: &Value) -> Result<String> {
    value
        .as_str()
        .map(str::to_owned)
        .context("the browser answers nonsense")
}
