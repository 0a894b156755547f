//! Words that stand for published results.

use zonelab_config::Override;

use super::{Files, Loaded, SessionError, load};
use crate::{catalogue, library};

/// The experiments that words stand for.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Their ids, each once, in the order of the library.
    pub ids: Vec<&'static str>,
    /// Whether these are all.
    pub is_all: bool,
    /// Those that are to be run.
    pub loaded: Vec<Loaded>,
    /// Those that are not, and why: a sentence for each reason.
    pub skipped: Vec<String>,
}

/// Reads the built-in experiments that words stand for, ids such as C10a or letters of
/// papers such as C; without words, all; with the same settings for each. Of what is not
/// part of `--quick`, only that is run which is asked for by its id.
///
/// # Errors
/// A word stands for nothing, or for what is not built.
pub fn selected(
    files: &Files,
    words: &[String],
    overrides: &[Override],
    quick: bool,
) -> Result<Selected, SessionError> {
    let ids = ids_of(words)?;
    let mut loaded = Vec::new();
    let mut skipped: Vec<(String, Vec<&str>)> = Vec::new();
    for id in &ids {
        let text = files.experiment(id).unwrap_or_default();
        let one = load(files, (&format!("{id}.toml"), &text), overrides, quick)?;
        match &one.experiment.quick.skip {
            Some(why) if quick && !words.iter().any(|word| word == id) => {
                match skipped.iter_mut().find(|(other, _)| other == why) {
                    Some((_, ids)) => ids.push(id),
                    None => skipped.push((why.clone(), vec![id])),
                }
            }
            _ => loaded.push(one),
        }
    }
    Ok(Selected {
        is_all: ids.len() == library::ids().count(),
        ids,
        loaded,
        skipped: skipped
            .iter()
            .map(|(why, ids)| left_out(ids, why))
            .collect(),
    })
}

/// That experiments are not part of `--quick`, all for one reason.
fn left_out(ids: &[&str], why: &str) -> String {
    match ids {
        [others @ .., last] if !others.is_empty() => {
            let others = others.join(", ");
            format!("{others} and {last} are not part of --quick: {why}.")
        }
        _ => format!("{} is not part of --quick: {why}.", ids.concat()),
    }
}

/// The ids that words stand for, each once, in the order of the library.
fn ids_of(words: &[String]) -> Result<Vec<&'static str>, SessionError> {
    let all: Vec<&'static str> = library::ids().collect();
    if words.is_empty() {
        return Ok(all);
    }
    let mut chosen = Vec::new();
    for word in words {
        let mut ids = library::select(word);
        if ids.is_empty() {
            ids = parts_of(word)?;
        }
        if ids.is_empty() {
            if let Some(missing) = not_built(word)? {
                return Err(missing);
            }
            let near = zonelab_config::nearest(word, all.iter().copied());
            let hint = near
                .map(|near| format!(" (did you mean {near}?)"))
                .unwrap_or_default();
            return Err(SessionError::Usage(format!(
                "there is nothing to reproduce under \"{word}\"{hint}; there are: C, P, S, V, Z, {}",
                all.join(", ")
            )));
        }
        chosen.extend(ids);
    }
    Ok(all.into_iter().filter(|id| chosen.contains(id)).collect())
}

/// The experiments of a line that stands for several figures, by its own name: `V6-8`.
fn parts_of(word: &str) -> Result<Vec<&'static str>, SessionError> {
    let results = catalogue::results()?;
    let line = results.iter().find(|line| line.id == word);
    let parts = line.map_or(&[][..], |line| &line.also);
    Ok(parts
        .iter()
        .flat_map(|part| library::select(part))
        .collect())
}

/// The failure to reproduce what is known and not built; `None` for other words.
fn not_built(word: &str) -> Result<Option<SessionError>, SessionError> {
    let missing = catalogue::not_built(word)?;
    let missing = missing.into_iter().filter_map(|result| result.not_built);
    let missing: Vec<String> = missing.collect();
    Ok((!missing.is_empty()).then(|| {
        let missing = missing.join("; ");
        SessionError::Usage(format!("{word} is not built: missing is {missing}"))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_for_one_reason_is_one_sentence() {
        let why = "wear shows after many rounds";
        let one = "S3d is not part of --quick: wear shows after many rounds.";
        assert_eq!(left_out(&["S3d"], why), one);
        let two = left_out(&["Vga", "Vgb"], why);
        assert!(two.starts_with("Vga and Vgb are not part of --quick: "));
        let three = left_out(&["Vga", "Vgb", "Vgc"], why);
        assert!(three.starts_with("Vga, Vgb and Vgc are not part of --quick: "));
    }
}
