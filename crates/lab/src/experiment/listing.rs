//! Reading listings of zones: `[[listing]]`.

use zonelab_config::{Item, Reported, Table};

use super::{Listing, ListingLine};

/// Words that a published listing may have in place of nvme-cli's.
const SYNONYMS: [(&str, &str); 5] = [
    ("Full", "FULL"),
    ("Empty", "EMPTY"),
    ("Imp. Open", "IMP_OPENED"),
    ("Exp. Open", "EXP_OPENED"),
    ("Seq. Write Required", "SEQWRITE_REQ"),
];

/// A listing.
pub(super) fn listing(table: &Table<'_>) -> Result<Listing, Reported> {
    let name = table.string("name").required();
    let series = table.string("series").required();
    let lines = table.list("lines", line).required();
    Ok(Listing {
        name: name?,
        series: series?,
        lines: lines?,
    })
}

fn line(item: &Item<'_>) -> Result<ListingLine, Reported> {
    let text = item.str()?;
    ListingLine::parse(text).ok_or_else(|| {
        item.fail(
            format!("\"{text}\" has no fields"),
            "write fields with their values: \"SLBA: 0x0 WP: 0x43500 State: Full\"",
        )
    })
}

impl ListingLine {
    /// Reads a line: what ends with a colon names a field, what follows is its value.
    /// Numbers are compared as such, and states and types by nvme-cli's names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields: Vec<(String, String)> = Vec::new();
        for word in text.split_whitespace() {
            match (word.strip_suffix(':'), fields.last_mut()) {
                (Some(name), _) => fields.push((name.to_owned(), String::new())),
                (None, None) => return None,
                (None, Some((_, value))) if value.is_empty() => word.clone_into(value),
                (None, Some((_, value))) => {
                    value.push(' ');
                    value.push_str(word);
                }
            }
        }
        for (_, value) in &mut fields {
            *value = plain(value);
        }
        let has_fields = !fields.is_empty();
        has_fields.then(|| Self {
            text: text.to_owned(),
            fields,
        })
    }
}

/// A value in the one form that is compared.
fn plain(value: &str) -> String {
    let number = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    if let Ok(number) = number {
        return number.to_string();
    }
    let synonym = SYNONYMS.into_iter().find(|(word, _)| *word == value);
    synonym.map_or(value, |(_, name)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_fields_with_values() {
        let published = ListingLine::parse(
            "SLBA: 0x00000 WP: 0x9f0b4 State: Imp. Open Type: Seq. Write Required Attrs: 0x0",
        );
        let ours = ListingLine::parse(
            "SLBA: 0x0        WP: 0x9f0b4    State: IMP_OPENED   Type: SEQWRITE_REQ   Attrs: 0x0",
        );
        let fields = published.expect("it has fields").fields;
        assert_eq!(fields, ours.expect("it has fields").fields);
        assert_eq!(fields[1], ("WP".to_owned(), "651444".to_owned()));
        assert_eq!(ListingLine::parse("no fields"), None);
        assert_eq!(ListingLine::parse(""), None);
    }
}
