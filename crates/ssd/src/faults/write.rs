//! Faults in the words of plans.

use core::fmt;

use zonelab_config::units::{fmt_duration, fmt_percent};
use zonelab_device::Nanos;

use super::read::{EFFECTS, EffectName, STATUSES};
use super::{ALWAYS_PPM, Effect, Fault, Match, Trigger};

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A text, without quotes.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Fault {
    /// Keys and values that say it in a plan. What has its default is left out.
    #[must_use]
    pub fn keys(&self) -> Vec<(&'static str, Value)> {
        let Match {
            trigger,
            namespace,
            zones,
            lbas,
            from,
            until,
            skip,
            count,
            probability_ppm,
        } = &self.when;
        let text = |key, text: String| Some((key, Value::Text(text)));
        let time = |key, at: Nanos| text(key, fmt_duration(at.0));
        let when = [
            text("on", trigger_name(*trigger).to_owned()),
            match trigger {
                Trigger::Time(at) => time("at", *at),
                _ => None,
            },
            namespace.map(|nsid| ("namespace", Value::Number(nsid.0.into()))),
            zones
                .as_ref()
                .and_then(|of| text("zones", format!("{}..={}", of.start(), of.end()))),
            lbas.as_ref()
                .and_then(|of| text("lbas", format!("{}..={}", of.start(), of.end()))),
            time("from", *from).filter(|_| *from != Nanos::ZERO),
            time("until", *until).filter(|_| *until != Nanos::MAX),
            Some(("skip", Value::Number(*skip))).filter(|_| *skip != 0),
            Some(("count", Value::Number(*count))).filter(|_| *count != u64::MAX),
            text("probability", fmt_percent(*probability_ppm))
                .filter(|_| *probability_ppm != ALWAYS_PPM),
        ];
        let (name, detail) = match self.effect {
            Effect::Fail(status) => {
                let named = STATUSES.iter().find(|(_, of)| *of == status);
                let name = named.map_or_else(|| status.to_string(), |of| of.0.to_owned());
                (EffectName::Fail, text("status", name))
            }
            Effect::MediaError => (EffectName::MediaError, None),
            Effect::ReadOnly => (EffectName::ReadOnly, None),
            Effect::Offline => (EffectName::Offline, None),
            Effect::Delay(delay) => (EffectName::Delay, time("delay", delay)),
            Effect::Lose { timeout } => {
                let timeout = timeout.and_then(|timeout| time("timeout", timeout));
                (EffectName::Lose, timeout)
            }
            Effect::PowerCut { off } => (EffectName::PowerCut, time("off", off)),
        };
        let effect = EFFECTS.iter().find(|(_, of)| *of == name);
        let effect = effect.and_then(|(name, _)| text("effect", (*name).to_owned()));
        when.into_iter().chain([effect, detail]).flatten().collect()
    }

    /// The fault as a table of a plan, to be read by
    /// [`FaultPlan::parse`](super::FaultPlan::parse).
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = "[[fault]]\n".to_owned();
        for (key, value) in self.keys() {
            // None of the texts has anything to be escaped.
            out.push_str(&match value {
                Value::Number(number) => format!("{key} = {number}\n"),
                Value::Text(text) => format!("{key} = \"{text}\"\n"),
            });
        }
        out
    }
}

fn trigger_name(trigger: Trigger) -> &'static str {
    let mut named = Trigger::BY_NAME.iter();
    // A time is the only one that is not in the list.
    named
        .find(|(_, of)| *of == trigger)
        .map_or("time", |(name, _)| name)
}
