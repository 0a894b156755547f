//! `report.html`: what the report of a run says besides its results.

use std::rc::Rc;

use zonelab_lab::difference;
use zonelab_lab::experiment::{AxisValue, Experiment};
use zonelab_lab::figure::Figure;
use zonelab_lab::rows::{Misfits, Row, Summary};
use zonelab_lab::run::{Point, PointResult};
use zonelab_report::{PointSection, Report, Section};
use zonelab_search::explore::quoted;

use crate::session::Finished;

/// Name of the file.
pub(crate) const FILE: &str = "report.html";

/// What was asked for.
pub(crate) enum Asked {
    /// `reproduce`, with these words.
    Reproduce(Vec<String>),
    /// `run` of an experiment, with these `--set` options.
    Run(String, Vec<String>),
}

/// The part of a command line that results depend on: not where they go, nor
/// on how many threads they come about.
pub(crate) struct Invocation {
    pub(crate) asked: Asked,
    pub(crate) quick: bool,
    pub(crate) seed: u64,
    /// Further options, with their values.
    pub(crate) options: Vec<String>,
}

impl Invocation {
    /// The command that gives the same results, for a POSIX shell.
    pub(crate) fn command(&self) -> String {
        line(&self.words())
    }

    /// The words of the command that gives the same results, without the program.
    pub(crate) fn words(&self) -> Vec<String> {
        match &self.asked {
            Asked::Reproduce(words) => self.reproduce(words),
            Asked::Run(experiment, set) => self.run(experiment, set),
        }
    }

    /// The command that gives the same results of one experiment.
    fn of_experiment(&self, id: &str) -> String {
        match &self.asked {
            Asked::Reproduce(_) => line(&self.reproduce(&[id.to_owned()])),
            Asked::Run(..) => self.command(),
        }
    }

    /// The command that runs one axis value of an experiment again.
    fn of_point(&self, experiment: &Experiment, x: &AxisValue) -> String {
        let (name, mut set) = match &self.asked {
            Asked::Reproduce(_) => (&experiment.id, Vec::new()),
            Asked::Run(name, set) => (name, set.clone()),
        };
        if experiment.axis.values.len() > 1 {
            let values = &experiment.axis.values;
            let index = values.iter().position(|value| value == x);
            set.extend(index.map_or_else(Vec::new, |index| experiment.axis.settings_of(index)));
        }
        line(&self.run(name, &set))
    }

    fn reproduce(&self, words: &[String]) -> Vec<String> {
        let mut command = vec!["reproduce".to_owned()];
        command.extend_from_slice(words);
        self.with_options(command)
    }

    fn run(&self, experiment: &str, set: &[String]) -> Vec<String> {
        let mut command = vec!["run".to_owned(), experiment.to_owned()];
        for setting in set {
            command.extend(["--set".to_owned(), setting.clone()]);
        }
        self.with_options(command)
    }

    fn with_options(&self, mut words: Vec<String>) -> Vec<String> {
        if self.quick {
            words.push("--quick".to_owned());
        }
        words.extend_from_slice(&self.options);
        words.extend(["--seed".to_owned(), self.seed.to_string()]);
        words
    }
}

/// The program with these words, for a POSIX shell.
pub(crate) fn line(words: &[String]) -> String {
    let program = std::iter::once("zonelab".to_owned());
    let words = program.chain(words.iter().map(|word| quoted(word)));
    words.collect::<Vec<_>>().join(" ")
}

/// What the report is made of, besides experiments and figures.
pub(crate) struct Parts<'a> {
    pub(crate) tool: &'a str,
    pub(crate) invocation: &'a Invocation,
    pub(crate) rows: &'a [Row],
    /// What the rows come to.
    pub(crate) summary: &'a Summary,
    pub(crate) misfits: &'a Misfits,
    pub(crate) notices: Vec<String>,
    /// The drive of each point of each experiment, as TOML.
    pub(crate) drives: &'a [Vec<Rc<str>>],
}

/// The report of `finished` experiments with their figures.
pub(crate) fn html(parts: Parts<'_>, finished: &[Finished], figures: &[Option<Figure>]) -> String {
    let sections: Vec<Section<'_>> = finished
        .iter()
        .zip(figures)
        .enumerate()
        .map(|(index, (one, figure))| Section {
            experiment: &one.experiment,
            text: &one.text,
            command: parts.invocation.of_experiment(&one.experiment.id),
            figure: figure.as_ref(),
            matrix: one.matrix.as_ref(),
            differences: difference::differences(&one.experiment, &one.results),
            points: one
                .results
                .iter()
                .map(|result| PointSection {
                    result,
                    drive: drive(one, &parts.drives[index], result),
                    command: parts.invocation.of_point(&one.experiment, &result.x),
                })
                .collect(),
        })
        .collect();
    let title = match (&parts.invocation.asked, finished) {
        (Asked::Run(..), [one]) => format!("{}: {}", one.experiment.id, one.experiment.title),
        _ => "Published results, reproduced".to_owned(),
    };
    let report = Report {
        title,
        tool: parts.tool,
        command: parts.invocation.command(),
        seed: parts.invocation.seed,
        notices: parts.notices,
        sections,
        rows: parts.rows,
        summary: parts.summary,
        misfits: parts.misfits,
    };
    report.to_html()
}

/// The drive of a point, as TOML: of an interrupted run, results are fewer than
/// points.
fn drive<'a>(one: &Finished, drives: &'a [Rc<str>], result: &PointResult) -> &'a str {
    let mut points = one.points.iter().zip(drives);
    let is_its = |point: &Point| point.series() == result.series && *point.x() == result.x;
    let found = points.find(|(point, _)| is_its(point));
    found.map_or("", |(_, drive)| drive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_a_shell() {
        let run = Invocation {
            asked: Asked::Run(
                "my file.toml".to_owned(),
                vec!["title=it's".to_owned(), "job.0.runtime=2s".to_owned()],
            ),
            quick: true,
            seed: 7,
            options: Vec::new(),
        };
        assert_eq!(
            run.command(),
            r"zonelab run 'my file.toml' --set 'title=it'\''s' --set job.0.runtime=2s --quick --seed 7"
        );
        let all = Invocation {
            asked: Asked::Reproduce(vec!["C".to_owned()]),
            quick: false,
            seed: 1,
            options: vec!["--faults".to_owned(), "f.toml".to_owned()],
        };
        assert_eq!(
            all.command(),
            "zonelab reproduce C --faults f.toml --seed 1"
        );
        assert_eq!(
            all.of_experiment("C10a"),
            "zonelab reproduce C10a --faults f.toml --seed 1"
        );
    }
}
