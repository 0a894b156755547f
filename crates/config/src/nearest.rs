//! "Did you mean ...?"

/// The candidate that is most likely meant by `word`: the one with the fewest
/// typing errors, if they are few for the length of the word; the first of
/// equals.
///
/// A typing error is a letter too many, missing, wrong, or swapped with its
/// neighbour (optimal string alignment distance). Letter case does not count. Without such a
/// candidate it is the shortest that goes on behind the word: `lat_p99_us` for `lat_p99`.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are not typing errors of any key, and comparing them costs their length.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let begun = format!("{}_", word.to_lowercase());
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let tolerance = (word.len() / 3).max(1);
    let candidates: Vec<&str> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .collect();
    let goes_on = |candidate: &&&str| word.len() > 2 && candidate.starts_with(&begun);
    let longer = candidates.iter().filter(goes_on);
    let longer = longer.min_by_key(|candidate| candidate.len()).copied();
    let by_errors = candidates
        .iter()
        .copied()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(errors, candidate)| *errors <= tolerance && *errors < candidate.chars().count())
        .min_by_key(|(errors, _)| *errors)
        .map(|(_, candidate)| candidate);
    by_errors.or(longer)
}

fn distance(word: &[char], other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    // `rows[i][j]` is the distance of the first i letters of one from the first j of the other.
    let mut rows = vec![vec![0; other.len() + 1]; word.len() + 1];
    rows[0] = (0..=other.len()).collect();
    for i in 1..=word.len() {
        rows[i][0] = i;
        for j in 1..=other.len() {
            let wrong = usize::from(word[i - 1] != other[j - 1]);
            let mut least = (rows[i - 1][j] + 1)
                .min(rows[i][j - 1] + 1)
                .min(rows[i - 1][j - 1] + wrong);
            let swapped =
                i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1];
            if swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[word.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_letters_missing_added_wrong_and_swapped() {
        let keys = ["program", "read", "erase", "transfer", "page_register"];
        for (word, meant) in [
            ("prgram", Some("program")),
            ("progrram", Some("program")),
            ("raed", Some("read")),
            ("Erase", Some("erase")),
            ("transfers", Some("transfer")),
            ("pageregister", Some("page_register")),
            ("page", Some("page_register")),
            ("pa", None),
            ("rd", None),
            ("x", None),
            ("", None),
            ("programming_time", None),
        ] {
            assert_eq!(nearest(word, keys), meant, "{word}");
        }
    }

    #[test]
    fn a_short_word_is_not_any_short_key() {
        assert_eq!(nearest("a", ["b", "c"]), None);
    }

    #[test]
    fn huge_words_cost_nothing() {
        let word = "a".repeat(10_000_000);
        assert_eq!(nearest(&word, ["program"]), None);
    }
}
