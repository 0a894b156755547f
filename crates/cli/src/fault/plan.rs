//! `zonelab fault add`: a fault from options in the words of plans, or a file.

use zonelab_config::Problem;
use zonelab_ssd::faults::FaultPlan;

use crate::exit::Failure;
use crate::files;

/// Options of `fault add`. All but `--file` are keys of a plan.
#[derive(clap::Args)]
#[command(after_help = ADD_HELP)]
pub(crate) struct AddArgs {
    /// A plan as a TOML file, instead of the options
    #[arg(long, value_name = "FILE", conflicts_with_all = KEYS)]
    file: Option<String>,
    /// What sets it off: read, write, append, ..., any, time
    #[arg(long, required_unless_present = "file")]
    on: Option<String>,
    /// What it does: fail, media-error, read-only, offline, delay, lose, power-cut
    #[arg(long, required_unless_present = "file")]
    effect: Option<String>,
    /// With --on time: when, from now
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Only commands for this namespace; zones and blocks count from its start
    #[arg(long, value_name = "NSID")]
    namespace: Option<u64>,
    /// Only commands that touch these zones: 3, or 0..=9
    #[arg(long, value_name = "RANGE")]
    zones: Option<String>,
    /// Only commands that touch these blocks: 4096, or 4096..=4351
    #[arg(long, value_name = "RANGE")]
    lbas: Option<String>,
    /// Only commands that come later than this, from now
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only commands that come before this, from now
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Commands that are spared first
    #[arg(long, value_name = "N")]
    skip: Option<u64>,
    /// How often it strikes then
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// It strikes with this probability: 0.1%
    #[arg(long, value_name = "PERCENT")]
    probability: Option<String>,
    /// With --effect fail: the status
    #[arg(long)]
    status: Option<String>,
    /// With --effect delay: how much later
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// With --effect power-cut: for how long
    #[arg(long, value_name = "TIME")]
    off: Option<String>,
    /// Of what is drawn for --probability
    #[arg(long)]
    seed: Option<u64>,
}

/// Keys of a fault that are options, in the order of the documents; and the seed.
pub(crate) const KEYS: [&str; 15] = [
    "on",
    "at",
    "namespace",
    "zones",
    "lbas",
    "from",
    "until",
    "skip",
    "count",
    "probability",
    "effect",
    "status",
    "delay",
    "off",
    "seed",
];

const ADD_HELP: &str = "\
A weak spot, a slow drive, a write that kills its zone, an answer that is lost:

  zonelab fault --control s add --on read --lbas 4096..=4351 --effect media-error
  zonelab fault --control s add --on any --probability 1% --effect delay --delay 20ms
  zonelab fault --control s add --on append --skip 99 --count 1 --effect offline
  zonelab fault --control s add --on write --count 1 --effect lose
  zonelab fault --control s add --on time --at 2s --effect power-cut --off 500ms
  zonelab fault --control s add --file plan.toml";

impl AddArgs {
    /// The plan as TOML, which is one.
    ///
    /// # Errors
    /// A file that cannot be read or is no plan, or options that are none.
    pub(crate) fn plan(&self) -> Result<String, Failure> {
        if let Some(file) = &self.file {
            let text = files::read(file)?;
            FaultPlan::parse(file, &text, &[]).map_err(Failure::input)?;
            return Ok(text);
        }
        let text = self.text();
        FaultPlan::parse("", &text, &[]).map_err(|errors| {
            let problems: Vec<String> = errors.problems().iter().map(in_options).collect();
            Failure::usage(problems.join("\n"))
        })?;
        Ok(text)
    }

    /// The options as a plan.
    fn text(&self) -> String {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let text = |value: &Option<String>| value.as_deref().map(quoted);
        // As in a file: one is a number, several are a text.
        let range = |value: &Option<String>| {
            let value = value.as_deref()?;
            let is_number = value.parse::<u64>().is_ok();
            Some(if is_number {
                value.to_owned()
            } else {
                quoted(value)
            })
        };
        let keys = [
            ("on", text(&self.on)),
            ("at", text(&self.at)),
            ("namespace", number(self.namespace)),
            ("zones", range(&self.zones)),
            ("lbas", range(&self.lbas)),
            ("from", text(&self.from)),
            ("until", text(&self.until)),
            ("skip", number(self.skip)),
            ("count", number(self.count)),
            ("probability", text(&self.probability)),
            ("effect", text(&self.effect)),
            ("status", text(&self.status)),
            ("delay", text(&self.delay)),
            ("off", text(&self.off)),
        ];
        let mut out = format!("seed = {}\n[[fault]]\n", self.seed.unwrap_or_default());
        for (key, value) in keys {
            if let Some(value) = value {
                out.push_str(&format!("{key} = {value}\n"));
            }
        }
        out
    }
}

/// A text as TOML has it, which is as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A problem of a key, as one of the option.
fn in_options(problem: &Problem) -> String {
    let key = problem.key.rsplit('.').next().unwrap_or_default();
    let valid = match problem.valid.as_str() {
        "" => String::new(),
        valid => format!("; {valid}"),
    };
    format!("--{key}: {}{valid}", problem.what)
}
