//! A page as its reader has it: blocks to paste, with what comments in its source say of them.

use std::fmt::Write as _;

/// What a comment right before a block says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// `file: NAME`: the reader writes it to this file.
    File(String),
    /// `at the end of: NAME`: the reader adds it to this file.
    AtTheEndOf(String),
    /// `in: NAME`: its lines take the place of those of this file that have the same key.
    In(String),
    /// `not run: WHY`.
    NotRun(String),
    /// `long: WHY`: it is run in the long form alone.
    Long(String),
    /// `printed`, or `printed: COMMAND`: what the last block of commands prints, or this command.
    Printed(Option<String>),
}

/// A block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Number of its first line in the page.
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
    pub(super) marks: Vec<Mark>,
}

/// `prints: WORDS; WORDS`: the last block of commands prints lines with these words, of which
/// the last is a figure that the paragraph above states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) line: usize,
    pub(super) lines: Vec<Vec<String>>,
    pub(super) paragraph: String,
}

/// What the reader of a page meets, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Block(Block),
    Claim(Claim),
}

fn mark_of(comment: &str) -> Option<Mark> {
    let (word, text) = comment.split_once(": ").unwrap_or((comment, ""));
    let text = || text.trim().to_owned();
    Some(match word {
        "file" => Mark::File(text()),
        "at the end of" => Mark::AtTheEndOf(text()),
        "in" => Mark::In(text()),
        "not run" => Mark::NotRun(text()),
        "long" => Mark::Long(text()),
        "printed" => Mark::Printed(Some(text()).filter(|text| !text.is_empty())),
        _ => return None,
    })
}

/// The parts of a page.
///
/// # Errors
/// A comment that is none of those above, with its line.
pub(super) fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut marks: Vec<Mark> = Vec::new();
    let mut paragraph = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let mut text = String::new();
            for (_, line) in lines.by_ref().take_while(|(_, line)| *line != "```") {
                let _ = writeln!(text, "{line}");
            }
            parts.push(Part::Block(Block {
                line: at + 2,
                language: language.to_owned(),
                text,
                marks: std::mem::take(&mut marks),
            }));
            paragraph.clear();
        } else if let Some(comment) = line.trim().strip_prefix("<!-- ") {
            let comment = comment.strip_suffix(" -->").unwrap_or(comment);
            if let Some(words) = comment.strip_prefix("prints: ") {
                parts.push(Part::Claim(Claim {
                    line: at + 1,
                    lines: words.split(';').map(words_of).collect(),
                    paragraph: paragraph.clone(),
                }));
            } else if let Some(found) = mark_of(comment) {
                marks.push(found);
            } else if !comment.ends_with(": begin") && !comment.ends_with(": end") {
                return Err(format!("{}: no such comment: {comment}", at + 1));
            }
        } else if !line.trim().is_empty() {
            if !marks.is_empty() {
                return Err(format!("{}: no block follows the comment", at + 1));
            }
            paragraph.push_str(line);
            paragraph.push('\n');
        } else if marks.is_empty()
            && !lines
                .clone()
                .next()
                .is_some_and(|(_, l)| l.starts_with("<!--"))
        {
            paragraph.clear();
        }
    }
    Ok(parts)
}

pub(super) fn words_of(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// A block `console` taken apart: what is typed, as a script, and the lines that are printed.
///
/// # Errors
/// A line that root types, which no test does.
pub(super) fn console(block: &str) -> Result<(String, Vec<&str>), String> {
    let (mut script, mut printed) = (String::new(), Vec::new());
    let mut goes_on = false;
    for line in block.lines() {
        let typed = line.strip_prefix("$ ").or(goes_on.then_some(line));
        goes_on = typed.is_some_and(|typed| typed.ends_with('\\'));
        match typed {
            Some(typed) => script = script + typed + "\n",
            None if line.starts_with("# ") => return Err(format!("root types: {line}")),
            None => printed.push(line),
        }
    }
    Ok((script, printed))
}

/// Which of the lines that a page says are printed are not, in this order. `...` stands for
/// anything, at the end of a line as well; how many blanks there are does not matter.
pub(super) fn missing<'a>(expected: impl Iterator<Item = &'a str>, printed: &str) -> Vec<String> {
    let mut printed = printed.lines().map(words_of);
    let mut is_printed = |line: &&str| {
        let mut words = words_of(line);
        let is_open = words.last().is_some_and(|word| word == "...");
        words.truncate(words.len() - usize::from(is_open));
        let matches = |printed: Vec<String>| match is_open {
            true => printed.starts_with(&words),
            false => printed == words,
        };
        words.is_empty() || printed.any(matches)
    };
    let missing = expected.filter(|line| !is_printed(line));
    missing.map(str::to_owned).collect()
}

/// Whether a figure of a page is what was printed, rounded to the digits of the page.
pub(super) fn is_figure(claimed: &str, printed: &str) -> bool {
    let (Ok(value), Ok(ours)) = (claimed.parse::<f64>(), printed.parse::<f64>()) else {
        return claimed == printed;
    };
    let mantissa = claimed.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.trim_start_matches(['+', '-', '0', '.']);
    let digits = digits.chars().filter(char::is_ascii_digit).count().max(1);
    let rounded = format!("{ours:.*e}", digits - 1).parse::<f64>();
    rounded.is_ok_and(|rounded| (rounded - value).abs() <= 1e-9 * value.abs())
}

impl Claim {
    /// What is wrong with it after a block that printed this.
    pub(super) fn problems(&self, printed: &str) -> Vec<String> {
        let mut problems = Vec::new();
        for words in &self.lines {
            let has_all = |line: &str| {
                let mut there = line.split_whitespace();
                words.iter().all(|word| there.any(|of| is_figure(word, of)))
            };
            if !printed.lines().any(has_all) {
                problems.push(format!("no line with {}", words.join(" ")));
            }
            let figure = words.last().map_or("", String::as_str);
            let figure = figure.split('e').next().unwrap_or_default();
            let digits = |word: &str| word.replace(['.', ',', '(', '+', '-'], "");
            let mut stated = self.paragraph.split_whitespace().map(digits);
            if !stated.any(|word| word.starts_with(&digits(figure))) {
                problems.push(format!("{figure} is not in the paragraph above"));
            }
        }
        problems
    }
}
