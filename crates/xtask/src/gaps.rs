//! `cargo xtask gaps`: what the documents of the models say was tried for each
//! statement and bar that does not hold, from the list of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::blocks::{Block, difference};
use crate::{USAGE, root};

/// The list, relative to the root.
const LIST: &str = "experiments/misfits.toml";
const EXPERIMENTS: &str = "experiments";
/// Where a document has its part of the list: in its last section.
const BLOCK: Block = Block("gaps");

const ZN540: &str = "docs/models/zn540.md";
const FINISH: &str = "docs/models/finish.md";
const RESET: &str = "docs/models/reset.md";
const MAPPING: &str = "docs/models/mapping.md";
const SILENTZNS: &str = "docs/models/silentzns.md";

/// The document of a result, by how its id begins: the first that fits. C1 and C9 to
/// C12 are of designs of drives, the other results of ConfZNS++ of the ZN540, and so
/// are the bars of a real drive (D).
const DOCUMENTS: [(&str, &str); 17] = [
    ("D", ZN540),
    ("C10", FINISH),
    ("C11", RESET),
    ("C12", MAPPING),
    ("C1", FINISH),
    ("C9a", FINISH),
    ("C9b", RESET),
    ("C2", ZN540),
    ("C3", ZN540),
    ("C4", ZN540),
    ("C5", ZN540),
    ("C7", ZN540),
    ("C8", ZN540),
    ("Z", ZN540),
    ("V", ZN540),
    ("P", RESET),
    ("S", SILENTZNS),
];

/// A statement or bar that does not hold, as far as the documents of the models have it.
#[derive(Clone, Debug, PartialEq)]
struct Gap {
    id: String,
    says: String,
    /// Our size in a whole run; `None` if the statement holds there.
    today: Option<f64>,
    cause: String,
    tried: String,
}

/// A statement of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    /// The file of the experiment, from the root.
    file: String,
    /// Its size is a change, which is shown in per cent.
    is_change: bool,
}

/// The statements of all experiments, by result and sentence.
type Checks = BTreeMap<(String, String), Check>;

/// Compares the documents with the list, or writes them.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let write = match args {
        [] => false,
        [word] if word == "--write" => true,
        [word, ..] => {
            eprintln!("cargo xtask gaps: `{word}` is not understood");
            return Ok(USAGE);
        }
    };
    Ok(u8::from(update(write)? > 0))
}

/// Compares the documents with the list, or writes them. Returns how many differ and
/// were not written.
pub(crate) fn update(write: bool) -> Result<u32> {
    let gaps = listed()?;
    let checks = checks()?;
    let mut differences = 0;
    for document in documents() {
        let path = root().join(document);
        let text = std::fs::read_to_string(&path).with_context(|| document.to_owned())?;
        let own = of_document(&gaps, document)?;
        let Some(expected) = table(document, &own, &checks)? else {
            continue;
        };
        let stated = BLOCK.read(&text).with_context(|| document.to_owned())?;
        if stated.trim() == expected.trim() {
            continue;
        }
        if write {
            let text = BLOCK.replace(&text, &expected)?;
            std::fs::write(&path, text).with_context(|| document.to_owned())?;
            println!("{document} now says what {LIST} says");
        } else {
            differences += 1;
            eprint!("{}", difference(document, stated, LIST, &expected));
        }
    }
    if differences > 0 {
        eprintln!("`cargo xtask gaps --write` writes what {LIST} says");
    }
    Ok(differences)
}

/// The gaps in the order of the list.
fn listed() -> Result<Vec<Gap>> {
    let text = std::fs::read_to_string(root().join(LIST)).context(LIST)?;
    parse(&text).context(LIST)
}

fn parse(text: &str) -> Result<Vec<Gap>> {
    let list: toml::Table = text.parse()?;
    let gaps = list.get("gap").and_then(toml::Value::as_array);
    let gap = |gap: &toml::Value| {
        let text = |key: &str| {
            let text = gap.get(key).and_then(toml::Value::as_str);
            text.map(str::to_owned)
                .with_context(|| format!("a gap without a text `{key}`: {gap}"))
        };
        let today = gap.get("today").and_then(number);
        Ok(Gap {
            id: text("id")?,
            says: text("says")?,
            today,
            cause: text("cause")?,
            tried: text("tried")?,
        })
    };
    gaps.into_iter().flatten().map(gap).collect()
}

/// A number of TOML, with a point or without.
fn number(value: &toml::Value) -> Option<f64> {
    let whole = value.as_integer().map(|whole| whole as f64);
    value.as_float().or(whole)
}

/// The statements of all experiments.
fn checks() -> Result<Checks> {
    let mut found = Checks::new();
    for entry in std::fs::read_dir(root().join(EXPERIMENTS)).context(EXPERIMENTS)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let file = format!("{EXPERIMENTS}/{name}");
        let text = std::fs::read_to_string(&path).with_context(|| file.clone())?;
        let table: toml::Table = text.parse().with_context(|| file.clone())?;
        let own = table.get("id").and_then(toml::Value::as_str);
        let checks = table.get("check").and_then(toml::Value::as_array);
        for check in checks.into_iter().flatten() {
            let text = |key: &str| check.get(key).and_then(toml::Value::as_str);
            if let (Some(id), Some(says)) = (text("id").or(own), text("says")) {
                let of_check = Check {
                    file: file.clone(),
                    is_change: check.get("change").is_some(),
                };
                found.insert((id.to_owned(), says.to_owned()), of_check);
            }
        }
    }
    Ok(found)
}

/// The document of a result.
fn document_of(id: &str) -> Option<&'static str> {
    let mut documents = DOCUMENTS.iter();
    let (_, document) = documents.find(|(begins, _)| id.starts_with(begins))?;
    Some(document)
}

/// The documents, each once.
fn documents() -> Vec<&'static str> {
    let mut documents: Vec<_> = DOCUMENTS.iter().map(|(_, document)| *document).collect();
    documents.sort_unstable();
    documents.dedup();
    documents
}

/// The gaps of a document, in their order.
///
/// # Errors
/// One of all gaps has no document, or does not say what was tried.
fn of_document<'g>(gaps: &'g [Gap], document: &str) -> Result<Vec<&'g Gap>> {
    let mut own = Vec::new();
    for gap in gaps {
        let name = || format!("gap {}, \"{}\"", gap.id, gap.says);
        let of = document_of(&gap.id)
            .with_context(|| format!("{}: no document of the models has {}", name(), gap.id))?;
        check_tried(&gap.tried).with_context(name)?;
        if of == document {
            own.push(gap);
        }
    }
    Ok(own)
}

/// Refuses what a reader does not understand without another entry of the list, and
/// what only says where to look.
fn check_tried(tried: &str) -> Result<()> {
    let words = tried.split_whitespace();
    let words = words.filter(|word| reference(word).is_none());
    if words.count() < 2 {
        bail!("`tried` is \"{tried}\": say what was tried, or \"nothing yet\"");
    }
    if tried.to_lowercase().starts_with("as ") {
        bail!("`tried` is \"{tried}\": say what was tried, not where else it stands");
    }
    Ok(())
}

/// What is tried and why it does not hold, by cause: a table, or `None` without gaps.
fn table(document: &str, gaps: &[&Gap], checks: &Checks) -> Result<Option<String>> {
    // By cause and what was tried, in the order in which they come first.
    let mut groups: Vec<Vec<&Gap>> = Vec::new();
    for gap in gaps {
        let is_same = |other: &&Gap| (&other.cause, &other.tried) == (&gap.cause, &gap.tried);
        match groups.iter_mut().find(|group| is_same(&group[0])) {
            Some(group) => group.push(gap),
            None => groups.push(vec![gap]),
        }
    }
    if groups.is_empty() {
        return Ok(None);
    }
    let mut out =
        "| what does not hold (ours) | why | what was tried |\n| --- | --- | --- |\n".to_owned();
    for group in groups {
        let (cause, tried) = (&group[0].cause, &group[0].tried);
        let (cause, tried) = (linked(document, cause)?, linked(document, tried)?);
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "| {} | {cause} | {tried} |",
            statements(&group, checks)
        );
    }
    Ok(Some(out))
}

/// The statements of a group, a line each with our size: those of a result follow its id,
/// which leads to the experiment that has them in their order. A bar of a real drive has none.
fn statements(group: &[&Gap], checks: &Checks) -> String {
    let mut out = String::new();
    let mut last = "";
    for gap in group {
        if !out.is_empty() {
            out.push_str("<br>");
        }
        let id = &gap.id;
        let check = checks.get(&(id.clone(), gap.says.clone()));
        if gap.id != last {
            let _ = match check {
                Some(check) => write!(out, "[{id}]({}): ", relative(&check.file)),
                None => write!(out, "{id}: "),
            };
            last = id;
        }
        out.push_str(&escaped(&gap.says));
        if let Some(today) = gap.today {
            let figure = match check {
                None => format!("{:.1}%", 100.0 * today),
                Some(check) if check.is_change => format!("{:+.1}%", 100.0 * today),
                Some(_) => four_digits(today),
            };
            let _ = write!(out, " ({figure})");
        }
    }
    out
}

/// A number with four significant digits, or more if it is a larger one.
fn four_digits(value: f64) -> String {
    let scientific = format!("{value:.3e}");
    let exponent = scientific.split_once('e').map(|(_, exponent)| exponent);
    let exponent: i32 = exponent.and_then(|e| e.parse().ok()).unwrap_or_default();
    // At most eight decimals are shown, and none of a large number.
    let decimals = usize::try_from((3 - exponent).min(8)).unwrap_or_default();
    format!("{value:.decimals$}")
}

/// Text in a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A word without the punctuation around it; `None` if there is nothing else.
fn bare(word: &str) -> Option<&str> {
    let bare = word.trim_matches(|c: char| "()\"',.;:".contains(c));
    (!bare.is_empty()).then_some(bare)
}

/// A text with links, relative to `document`, in the place of references. These are
/// `docs/NAME.md#ANCHOR`.
///
/// # Errors
/// There is no such document, or no such section.
fn linked(document: &str, text: &str) -> Result<String> {
    let mut words = Vec::new();
    for word in text.split(' ') {
        let Some(reference) = reference(word) else {
            words.push(escaped(word));
            continue;
        };
        let (path, anchor) = resolved(reference)?;
        let heading = heading(path, anchor)?;
        let link = match path == document {
            true => format!("[{heading}](#{anchor})"),
            false => format!("[{}]({}#{anchor})", name(path), relative(path)),
        };
        words.push(word.replace(reference, &link));
    }
    Ok(words.join(" "))
}

/// What a document is called where it is linked: `schedulers`, `decision 11`.
fn name(path: &str) -> String {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str());
    let stem = stem.unwrap_or(path);
    let number = path.strip_prefix("docs/decisions/").and(stem.get(..4));
    match number.and_then(|number| number.parse::<u32>().ok()) {
        Some(number) => format!("decision {number}"),
        None => stem.to_owned(),
    }
}

/// A path from the root, as seen from `docs/models`.
fn relative(path: &str) -> String {
    match (
        path.strip_prefix("docs/models/"),
        path.strip_prefix("docs/"),
    ) {
        (Some(name), _) => name.to_owned(),
        (None, Some(name)) => format!("../{name}"),
        (None, None) => format!("../../{path}"),
    }
}

/// What a word refers to, if it begins with `docs/`.
fn reference(word: &str) -> Option<&str> {
    bare(word).filter(|word| word.starts_with("docs/"))
}

/// Document and anchor of a reference.
fn resolved(reference: &str) -> Result<(&str, &str)> {
    let parts = reference.split_once('#');
    let is_document = |path: &str| Path::new(path).extension().is_some_and(|end| end == "md");
    parts
        .filter(|(path, anchor)| is_document(path) && !anchor.is_empty())
        .ok_or_else(|| {
            anyhow!("\"{reference}\" names no section: docs/NAME.md#anchor-of-a-heading")
        })
}

/// The heading with an anchor.
fn heading(path: &str, anchor: &str) -> Result<String> {
    let text = std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())?;
    let headings = headings(&text);
    let found = headings.iter().find(|(_, own)| own == anchor);
    found.map(|(heading, _)| heading.clone()).ok_or_else(|| {
        let anchors: Vec<_> = headings.iter().map(|(_, own)| own.as_str()).collect();
        let anchors = anchors.join(", ");
        anyhow!("{path} has no heading with the anchor \"{anchor}\"; it has {anchors}")
    })
}

/// The headings of a document and their anchors, as GitHub makes them: in small letters,
/// without punctuation, with hyphens for spaces.
fn headings(text: &str) -> Vec<(String, String)> {
    let mut headings: Vec<(String, String)> = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        let is_heading = line.starts_with('#') && title.starts_with(' ');
        if is_code || !is_heading {
            continue;
        }
        let title = title.trim();
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let lower = title.to_lowercase();
        let anchor: String = lower.chars().filter(kept).collect();
        headings.push((title.to_owned(), anchor.replace(' ', "-")));
    }
    headings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heading of the section with the block, the last one of its document.
    const SECTION: &str = "## Statements that do not hold";

    #[test]
    fn documents_say_what_was_tried() {
        let gaps = listed().expect("the list is sound");
        assert!(!gaps.is_empty());
        let checks = checks().expect("experiments are sound");
        let mut stated = 0;
        for document in documents() {
            let own = of_document(&gaps, document).expect("the list is sound");
            let expected = table(document, &own, &checks).expect("references are sound");
            let text = std::fs::read_to_string(root().join(document)).expect("it is there");
            let Some(expected) = expected else {
                assert!(BLOCK.read(&text).is_err(), "{document} has no gaps");
                continue;
            };
            stated += own.len();
            let block = BLOCK
                .read(&text)
                .unwrap_or_else(|error| panic!("{document}: {error}"));
            assert!(
                block.trim() == expected.trim(),
                "`cargo xtask gaps --write` writes what follows\n{}",
                difference(document, block, LIST, &expected)
            );
            let last = text
                .rsplit_once("\n## ")
                .map(|(_, last)| format!("## {last}"));
            let last = last.expect("it has sections");
            assert!(last.starts_with(SECTION), "the last section of {document}");
            assert!(BLOCK.read(&last).is_ok(), "{SECTION} of {document}");
        }
        assert_eq!(stated, gaps.len(), "every gap is in one document");
    }

    /// Every text of a value, however deep.
    fn texts(value: &toml::Value, out: &mut Vec<String>) {
        match value {
            toml::Value::String(text) => out.push(text.clone()),
            toml::Value::Array(values) => values.iter().for_each(|value| texts(value, out)),
            toml::Value::Table(table) => table.values().for_each(|value| texts(value, out)),
            _ => {}
        }
    }

    #[test]
    fn what_lists_refer_to_is_there() {
        let mut count = 0;
        for list in [LIST, "reference/results.toml"] {
            let text = std::fs::read_to_string(root().join(list)).expect("it is there");
            let table: toml::Table = text.parse().expect("it is TOML");
            let mut all = Vec::new();
            texts(&toml::Value::Table(table), &mut all);
            for text in &all {
                count += text.split(' ').filter_map(reference).count();
                if let Err(error) = linked("", text) {
                    panic!("{list}: {text}: {error:#}");
                }
            }
        }
        assert!(count > 50, "{count} references");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("docs/none.md#zinc", "docs/none.md"),
            (
                "docs/schedulers.md#nothing",
                "no heading with the anchor \"nothing\"",
            ),
            ("docs/schedulers.md#", "names no section"),
            ("(docs/schedulers.md)", "names no section"),
            ("docs/schedulers#zinc", "names no section"),
        ] {
            let error = linked(ZN540, text).expect_err(text);
            assert!(format!("{error:#}").contains(words), "{error:#}");
        }
        for tried in [
            "docs/schedulers.md#zinc",
            "As C2b",
            "as P95 of resets alone",
            "nothing",
            "",
        ] {
            assert!(check_tried(tried).is_err(), "{tried}");
        }
        assert!(check_tried("nothing yet").is_ok());
        assert_eq!(document_of("CM"), None);
        let text = "[[gap]]\nid = 'CM'\nsays = 's'\ncause = 'c'\ntried = 'nothing yet'\n";
        let error = of_document(&parse(text).unwrap(), ZN540).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("no document of the models has CM"),
            "{error}"
        );
        let error = parse(&text.replace("tried", "trial")).unwrap_err();
        assert!(error.to_string().contains("`tried`"), "{error}");
    }

    #[test]
    fn results_have_their_documents() {
        for (id, document) in [
            ("C1q", FINISH),
            ("C10b", FINISH),
            ("C9b", RESET),
            ("C2a", ZN540),
            ("C8g", ZN540),
            ("D", ZN540),
            ("P9b", RESET),
            ("S4c", SILENTZNS),
            ("V2", ZN540),
            ("Z13", ZN540),
        ] {
            assert_eq!(document_of(id), Some(document), "{id}");
        }
    }

    #[test]
    fn gaps_of_one_cause_are_one_row() {
        let gap = |id: &str, says: &str, cause: &str| Gap {
            id: id.to_owned(),
            says: says.to_owned(),
            today: (id == "C8").then_some(-0.0814),
            cause: cause.to_owned(),
            tried: "A limit (docs/schedulers.md#zinc), of a|b.".to_owned(),
        };
        let gaps = [
            gap("C8", "1", "x"),
            gap("C9", "2", "y"),
            gap("C8", "3", "x"),
            gap("C7a", "4", "x"),
        ];
        let all: Vec<_> = gaps.iter().collect();
        let names = [("C8", "1"), ("C8", "3"), ("C7a", "4")];
        let check = |(id, says): (&str, &str)| {
            let check = Check {
                file: format!("experiments/{id}.toml"),
                is_change: says == "1",
            };
            ((id.to_owned(), says.to_owned()), check)
        };
        let checks: Checks = names.into_iter().map(check).collect();
        let text = table(ZN540, &all, &checks)
            .unwrap()
            .expect("there are gaps");
        let tried = "A limit ([schedulers](../schedulers.md#zinc)), of a\\|b.";
        let expected = format!(
            "| what does not hold (ours) | why | what was tried |\n| --- | --- | --- |\n\
             | [C8](../../experiments/C8.toml): 1 (-8.1%)<br>3 (-0.08140)<br>[C7a](../../experiments/C7a.toml): 4 | x | {tried} |\n\
             | C9: 2 | y | {tried} |\n"
        );
        assert_eq!(text, expected);
        assert_eq!(table(ZN540, &[], &checks).unwrap(), None);
    }

    #[test]
    fn figures_have_four_digits() {
        for (value, text) in [
            (6.3034, "6.303"),
            (45_820.4, "45820"),
            (0.028_24, "0.02824"),
            (-0.3, "-0.3000"),
            (0.0, "0.000"),
        ] {
            assert_eq!(four_digits(value), text);
        }
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# A zone: S1, `S2`\n```\n# no heading\n```\n#none\n### What it takes_\n";
        let found: Vec<_> = headings(text)
            .into_iter()
            .map(|(_, anchor)| anchor)
            .collect();
        assert_eq!(found, ["a-zone-s1-s2", "what-it-takes_"]);
    }
}
