//! A drive and what runs on it, as the texts that a user would write.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use zonelab_config::units::quote;
use zonelab_ssd::profile::Profile;

/// Keys with their values, as `--set` takes them.
pub type Keys = BTreeMap<String, String>;

/// Name of the profile in the experiment.
pub const PROFILE: &str = "./drive.toml";

/// A drive: the keys of its profile, by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriveText {
    /// Keys but those of namespaces.
    pub keys: Keys,
    /// Keys of each namespace, by their names.
    pub namespaces: Vec<Keys>,
}

/// A job: its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobText {
    /// Its name.
    pub name: String,
    /// The others.
    pub keys: Keys,
}

/// What runs on a drive: one series of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Jobs, phase by phase.
    pub phases: Vec<Vec<JobText>>,
    /// Keys of the series.
    pub series: Keys,
    /// Keys of the host.
    pub host: Keys,
}

/// A drive with its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The drive.
    pub drive: DriveText,
    /// The work.
    pub work: Work,
}

/// A value as TOML has it: what is a number, a truth value or an array stands as it is.
fn toml(value: &str) -> String {
    let is_number = value.parse::<i64>().is_ok();
    let is_bare = is_number || matches!(value, "true" | "false") || value.starts_with('[');
    if is_bare {
        value.to_owned()
    } else {
        quote(value)
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    writeln!(text, "{key} = {}", toml(value)).expect("writing to a string does not fail");
}

impl DriveText {
    /// The value of a key, if it is stated.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// Whether a key is stated to be this.
    #[must_use]
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key) == Some(value)
    }

    /// States a key.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.keys.insert(key.to_owned(), value.to_string());
    }

    /// States several, as `--set` would: `key=value`.
    ///
    /// # Panics
    /// One of them is no setting.
    pub fn set_all(&mut self, settings: &[&str]) {
        for setting in settings {
            let (key, value) = setting.split_once('=').expect("a setting has a value");
            self.set(key, value);
        }
    }

    /// Leaves out the key, and with a dot at the end all keys of a section.
    pub fn unset(&mut self, key: &str) {
        match key.ends_with('.') {
            true => self.keys.retain(|of, _| !of.starts_with(key)),
            false => drop(self.keys.remove(key)),
        }
    }

    /// The profile as a file.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = "schema = 1\nname = \"drawn\"\n".to_owned();
        let mut sections: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for (path, value) in &self.keys {
            let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
            sections.entry(section).or_default().push((key, value));
        }
        for (section, keys) in &sections {
            if !section.is_empty() {
                text += &format!("\n[{section}]\n");
            }
            for (key, value) in keys {
                line(&mut text, key, value);
            }
        }
        for namespace in &self.namespaces {
            text += "\n[[namespaces]]\n";
            for (key, value) in namespace {
                line(&mut text, key, value);
            }
        }
        text
    }

    /// The keys that a profile states, from a file that has one on each line, as
    /// [`zonelab_ssd::profile::to_toml`] writes it.
    #[must_use]
    pub fn of_toml(text: &str) -> Self {
        let mut drive = Self::default();
        let mut section = String::new();
        for line in text.lines() {
            if line == "[[namespaces]]" {
                section = "namespaces".to_owned();
                drive.namespaces.push(Keys::new());
            } else if let Some(name) = line.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((key, value)) = line.split_once(" = ") {
                let value = value.trim_matches('"').to_owned();
                match (section.as_str(), drive.namespaces.last_mut()) {
                    ("namespaces", Some(namespace)) => {
                        drop(namespace.insert(key.to_owned(), value))
                    }
                    ("", _) => {}
                    (section, _) => drive.set(&format!("{section}.{key}"), value),
                }
            }
        }
        drive
    }

    /// The profile, read.
    ///
    /// # Errors
    /// It is refused: why.
    pub fn profile(&self) -> Result<Profile, String> {
        Profile::parse(PROFILE, &self.toml(), &[]).map_err(|errors| errors.to_string())
    }
}

impl JobText {
    /// A job of a kind.
    #[must_use]
    pub fn new(name: &str, keys: &[(&str, &str)]) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Self {
            name: name.to_owned(),
            keys: keys.iter().map(owned).collect(),
        }
    }

    /// The value of a key, if it is stated.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// States a key.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.keys.insert(key.to_owned(), value.to_string());
    }

    /// A number that it states, or what that is if it does not.
    #[must_use]
    pub fn number(&self, key: &str, default: u64) -> u64 {
        let stated = self.get(key).and_then(|value| value.parse().ok());
        stated.unwrap_or(default)
    }

    /// What it does.
    #[must_use]
    pub fn work(&self) -> &str {
        self.get("work").unwrap_or_default()
    }
}

impl Work {
    /// One phase of these jobs.
    #[must_use]
    pub fn of(jobs: Vec<JobText>) -> Self {
        Self {
            phases: vec![jobs],
            ..Self::default()
        }
    }

    /// All jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &JobText> {
        self.phases.iter().flatten()
    }

    /// All jobs, to change them.
    pub fn jobs_mut(&mut self) -> impl Iterator<Item = &mut JobText> {
        self.phases.iter_mut().flatten()
    }

    /// Whether a job does this.
    #[must_use]
    pub fn has(&self, work: &str) -> bool {
        self.jobs().any(|job| job.work() == work)
    }

    /// Whether something states a key.
    #[must_use]
    pub fn states(&self, key: &str) -> bool {
        self.jobs().any(|job| job.get(key).is_some())
    }

    /// The experiment as a file.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = "schema = 1\nid = \"relation\"\ntitle = \"relation\"\n".to_owned();
        line(&mut text, "profile", PROFILE);
        if !self.host.is_empty() {
            text += "\n[host]\n";
        }
        for (key, value) in &self.host {
            line(&mut text, key, value);
        }
        for job in self.jobs() {
            text += "\n[[job]]\n";
            line(&mut text, "name", &job.name);
            for (key, value) in &job.keys {
                line(&mut text, key, value);
            }
        }
        let names = |jobs: &Vec<JobText>| {
            let names: Vec<String> = jobs.iter().map(|job| quote(&job.name)).collect();
            format!("[{}]", names.join(", "))
        };
        let phases: Vec<String> = self.phases.iter().map(names).collect();
        text += "\n[[series]]\nname = \"run\"\n";
        line(&mut text, "phases", &format!("[{}]", phases.join(", ")));
        for (key, value) in &self.series {
            line(&mut text, key, value);
        }
        text
    }
}

/// What `--set` would have to say to make `other` of `base`.
fn changes(prefix: &str, base: &Keys, other: &Keys) -> Vec<String> {
    let changed = other
        .iter()
        .filter(|(key, value)| base.get(*key) != Some(value))
        .map(|(key, value)| format!("{prefix}{key}={value}"));
    let removed = base.keys().filter(|key| !other.contains_key(*key));
    let removed = removed.map(|key| format!("{prefix}{key}="));
    changed.chain(removed).collect()
}

impl Case {
    /// The keys that it states, and what its jobs do.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        let namespaces = self.drive.namespaces.iter().flat_map(Keys::keys);
        let drive = self.drive.keys.keys().chain(namespaces);
        let works = self.work.jobs().map(JobText::work);
        drive.map(String::as_str).chain(works).collect()
    }

    /// The same with ten seconds at its end in which nobody wants anything, so that the drive
    /// does all that it has put off; then `work` is done once, which a case of zones may choose.
    #[must_use]
    pub fn settled_by(&self, work: &str) -> Self {
        let mut other = self.clone();
        let last = self.work.jobs().last();
        let mut job = match last.filter(|job| job.get("blocks").is_some()) {
            Some(_) => JobText::new("settle", &[("work", "read"), ("blocks", "0%..100%")]),
            None => JobText::new("settle", &[("work", work), ("zones", "0..=0")]),
        };
        if let Some(nsid) = last.and_then(|job| job.get("namespace")) {
            job.set("namespace", nsid);
        }
        job.set("operations", 1);
        job.set("start", "10s");
        other.work.phases.push(vec![job]);
        other
    }

    /// The settings that make `other` of this case, for the experiment of this one; `None`: it
    /// takes more than settings.
    #[must_use]
    pub fn settings_for(&self, other: &Self) -> Option<Vec<String>> {
        let shape = |case: &Self| {
            let names = |jobs: &Vec<JobText>| jobs.iter().map(|job| job.name.clone()).collect();
            let phases: Vec<Vec<String>> = case.work.phases.iter().map(names).collect();
            (case.drive.namespaces.len(), phases)
        };
        if shape(self) != shape(other) {
            return None;
        }
        let mut all = changes("drive.", &self.drive.keys, &other.drive.keys);
        let both = self.drive.namespaces.iter().zip(&other.drive.namespaces);
        for (index, (base, other)) in both.enumerate() {
            all.extend(changes(&format!("drive.namespaces.{index}."), base, other));
        }
        for (index, (base, other)) in self.work.jobs().zip(other.work.jobs()).enumerate() {
            all.extend(changes(&format!("job.{index}."), &base.keys, &other.keys));
        }
        all.extend(changes("series.0.", &self.work.series, &other.work.series));
        all.extend(changes("host.", &self.work.host, &other.work.host));
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_lead_from_one_case_to_another() {
        let mut base = Case::default();
        base.drive.set_all(&["media.read=50us", "media.erase=3ms"]);
        let job = JobText::new("a", &[("work", "read"), ("threads", "2")]);
        base.work = Work::of(vec![job]);
        let mut other = base.clone();
        other.drive.unset("media.erase");
        other.drive.set("media.read", "60us");
        for job in other.work.jobs_mut() {
            job.set("threads", 1);
        }
        assert_eq!(
            base.settings_for(&other).expect("they have the same jobs"),
            [
                "drive.media.read=60us",
                "drive.media.erase=",
                "job.0.threads=1"
            ]
        );
        other.work.phases.clear();
        assert_eq!(base.settings_for(&other), None);
    }

    #[test]
    fn values_are_text_unless_toml_knows_them() {
        let mut drive = DriveText::default();
        drive.set_all(&[
            "zones.count=3",
            "zones.size=1MiB",
            "media.read=[\"1us\", \"2us\"]",
        ]);
        let text = drive.toml();
        assert!(text.contains("count = 3\n"), "{text}");
        assert!(text.contains("size = \"1MiB\"\n"), "{text}");
        assert!(text.contains("read = [\"1us\", \"2us\"]\n"), "{text}");
    }
}
