//! Settings of an experiment file or of its drive, as `--set` takes them.

use zonelab_config::{Errors, Override, Problem};

use crate::run::{self, Point};

/// What a key of the drive begins with.
pub const DRIVE: &str = "drive.";

/// Settings in place of those of an experiment file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Keys of the file.
    pub file: Vec<Override>,
    /// Keys of the drive, after everything that the file says about it.
    pub drive: Vec<Override>,
}

impl Settings {
    /// Reads `key=value`, with [`DRIVE`] in front for keys of the drive.
    ///
    /// # Errors
    /// One is malformed.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, Problem> {
        let mut settings = Self::default();
        for text in texts {
            let text = text.as_ref();
            match text.strip_prefix(DRIVE) {
                Some(rest) => settings.drive.push(Override::parse(rest)?),
                None => settings.file.push(Override::parse(text)?),
            }
        }
        Ok(settings)
    }

    /// These settings, and then others.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        let join = |a: &[Override], b: &[Override]| a.iter().chain(b).cloned().collect();
        Self {
            file: join(&self.file, &others.file),
            drive: join(&self.drive, &others.drive),
        }
    }

    /// The points of an experiment file with these settings.
    ///
    /// # Errors
    /// What is wrong with the file, or with a setting of it. Settings of the
    /// drive are looked at with the drive ([`Point::check`]).
    pub fn points(&self, file: &str, text: &str) -> Result<Vec<Point>, Errors> {
        let mut points = run::points(file, text, &self.file)?;
        for point in &mut points {
            point.set_drive(&self.drive)?;
        }
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_drive_are_told_from_those_of_the_file() {
        let texts = ["drive.finish.pause=1ms", "job.0.runtime=2s", "drive=[]"];
        let settings = Settings::parse(texts).unwrap();
        let keys = |list: &[Override]| list.iter().map(Override::key).collect::<Vec<_>>();
        assert_eq!(keys(&settings.file), ["job.0.runtime", "drive"]);
        assert_eq!(keys(&settings.drive), ["finish.pause"]);
        assert!(Settings::parse(["drive.finish"]).is_err());
        assert_eq!(keys(&settings.and(&settings).drive).len(), 2);
    }
}
