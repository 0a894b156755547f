//! From what a command read to what its recipe has, and back.

use std::collections::BTreeMap;
use std::path::Path;

use super::recipe::{BINARY, Given, Recipe};
use crate::session::Gathered;

impl Recipe {
    /// Takes what the command read, which was given in the directory `here`; gives the
    /// files that stand among the results since they are no texts.
    ///
    /// Names are as the words of the command give them. What a command made an absolute
    /// path of is relative again, so that no result depends on where it was made.
    pub fn take(&mut self, read: Gathered, here: &Path) -> Vec<(String, Vec<u8>)> {
        let words = self.words.iter().map(Path::new);
        let absolute = words.filter(|word| word.is_absolute());
        let said: Vec<&Path> = absolute.filter_map(Path::parent).collect();
        let names_of = |name: String| {
            let path = Path::new(&name);
            let is_said = said.iter().any(|directory| path.starts_with(directory));
            let relative = path.strip_prefix(here).unwrap_or(path);
            let relative = relative.to_string_lossy().into_owned();
            // A path that the command made absolute may look like one that was said.
            let said = is_said.then_some(name).filter(|name| *name != relative);
            said.into_iter().chain([relative])
        };
        let mut given = BTreeMap::new();
        for (name, text) in read.texts {
            for name in names_of(name) {
                given.insert(name, Given::Text(text.clone()));
            }
        }
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for (name, bytes) in read.binary {
            let known = files.iter().position(|(_, known)| *known == bytes);
            let place = known.unwrap_or_else(|| {
                let file = format!("{BINARY}{}.bin", files.len() + 1);
                files.push((file, bytes));
                files.len() - 1
            });
            let file = &files[place].0;
            for name in names_of(name) {
                given.insert(name, Given::Among(file.clone()));
            }
        }
        self.files = given;
        self.builtin = read.builtin;
        files
    }

    /// What the command read; files that are no texts are in `among`, the results.
    ///
    /// # Errors
    /// The name of a file that is not there.
    pub fn gathered(&self, among: &BTreeMap<String, Vec<u8>>) -> Result<Gathered, String> {
        let mut gathered = Gathered {
            builtin: self.builtin.clone(),
            ..Gathered::default()
        };
        for (name, given) in &self.files {
            match given {
                Given::Text(text) => {
                    gathered.texts.insert(name.clone(), text.clone());
                }
                Given::Among(file) => {
                    let bytes = among.get(file).ok_or_else(|| file.clone())?;
                    gathered.binary.insert(name.clone(), bytes.clone());
                }
            }
        }
        Ok(gathered)
    }
}
