//! What is said of a job of a series beside its numbers: of its worst axis value.

use crate::idle::place;
use crate::run::{JobMeasured, PointResult};

/// Something about a series, or one job of it, at one axis value.
pub(crate) struct Notice {
    series: String,
    job: Option<String>,
    x: String,
    /// Notices of a job that are about the same become one sentence.
    about: String,
    /// The sentence of the greatest is shown.
    size: f64,
    text: String,
}

impl Notice {
    /// About what a drive did for all jobs.
    pub(crate) fn of_point(point: &PointResult, about: &str, (size, text): (f64, String)) -> Self {
        Self {
            series: point.series.clone(),
            job: None,
            x: point.x.text.clone(),
            about: about.to_owned(),
            size,
            text,
        }
    }

    pub(crate) fn of(
        (point, job): (&PointResult, &JobMeasured),
        about: impl Into<String>,
        (size, text): (f64, String),
    ) -> Self {
        Self {
            job: Some(job.name.clone()),
            about: about.into(),
            ..Self::of_point(point, "", (size, text))
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.series, &self.job, &self.about) == (&other.series, &other.job, &other.about)
    }
}

/// A sentence for each job of each series, with the axis values that it is about. Where these are
/// several, its number is "up to" the one that it names.
pub(crate) fn gathered(notices: impl IntoIterator<Item = Notice>, axis: &str) -> Vec<String> {
    let mut groups: Vec<(Notice, Vec<String>)> = Vec::new();
    for notice in notices {
        let x = notice.x.clone();
        match groups.iter_mut().find(|(of, _)| of.is_like(&notice)) {
            Some((worst, values)) => {
                values.push(x);
                if notice.size > worst.size {
                    *worst = notice;
                }
            }
            None => groups.push((notice, vec![x])),
        }
    }
    let sentence = |(worst, values): &(Notice, Vec<String>)| {
        let shown: Vec<&str> = values.iter().map(String::as_str).collect();
        let place = place((&worst.series, worst.job.as_deref()), axis, &shown);
        let is_number = worst.text.starts_with(|c: char| c.is_ascii_digit());
        let is_amount = is_number || worst.text.starts_with("the last");
        let most = if values.len() > 1 && is_amount {
            "up to "
        } else {
            ""
        };
        format!("{place}: {most}{}", worst.text)
    };
    groups.iter().map(sentence).collect()
}
