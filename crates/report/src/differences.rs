//! Differences between two series, as a table of the page.

use zonelab_lab::difference::{Difference, Verdict};
use zonelab_lab::table::{measured, percent};

/// The differences of an experiment; empty without any.
pub(super) fn figure(id: &str, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let rows: String = differences.iter().map(row).collect();
    let id = zonelab_page::html(id);
    format!(
        "<figure class=\"differences\" data-experiment=\"{id}\">\n<figcaption>Differences \
         between series, paired by seed, with 95 % confidence intervals</figcaption>\n<table>\n\
         <thead><tr><th>series</th><th>baseline</th><th>at</th><th>metric</th>\
         <th class=\"number\">difference</th><th class=\"number\">relative</th>\
         <th>verdict</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</figure>\n"
    )
}

fn row(of: &Difference) -> String {
    let (metric, unit) = &of.metric;
    let metric = match *unit {
        "" | "1" => metric.clone(),
        unit => format!("{metric} ({unit})"),
    };
    let difference = measured(of.statistics.mean, of.statistics.half_width, unit);
    let relative = of.relative().map_or_else(|| "-".to_owned(), percent);
    let verdict = match of.verdict {
        Verdict::Higher | Verdict::Lower => format!("<strong>{}</strong>", of.verdict.words()),
        Verdict::NotShown | Verdict::OneRepeat | Verdict::Alike | Verdict::Unmeasured => {
            of.verdict.words().to_owned()
        }
    };
    let at = format!("{} {}", of.axis, of.at);
    let named = |series: &str, job: &str| match of.job == of.baseline_job {
        true => series.to_owned(),
        false => format!("{series}: {job}"),
    };
    let texts = [
        named(&of.series, &of.job),
        named(&of.baseline, &of.baseline_job),
        at,
        metric,
    ];
    let [series, baseline, at, metric] = texts.map(|text| zonelab_page::html(&text));
    format!(
        "<tr><th scope=\"row\">{series}</th><td>{baseline}</td><td>{at}</td><td>{metric}</td>\
         <td class=\"number\">{difference}</td><td class=\"number\">{relative}</td>\
         <td>{verdict}</td></tr>\n"
    )
}
