//! As much of Rust's syntax as the rules need.

/// `source` with comments and the contents of strings and characters blanked
/// out: every line keeps its number and its length in characters.
pub(crate) fn code(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block(&chars, at),
            '"' => end_of_string(&chars, at + 1),
            'r' if !follows_word(&chars, at) => end_of_raw(&chars, at + 1).unwrap_or(at),
            '\'' => end_of_char(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether what is at `at` goes on with a word, `b` of byte strings aside.
fn follows_word(chars: &[char], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).map(|i| chars[i]);
    match before(1) {
        Some('b') => before(2).is_some_and(is_word),
        Some(c) => is_word(c),
        None => false,
    }
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..]
        .iter()
        .position(|c| *c == '\n')
        .map_or(chars.len(), |length| at + length)
}

/// Block comments nest.
fn end_of_block(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

/// The end of a string whose contents begin at `at`.
fn end_of_string(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of a raw string whose hashes, if any, begin at `at`.
fn end_of_raw(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + hashes) != Some(&'"') {
        return None;
    }
    let closing: Vec<char> = std::iter::once('"')
        .chain((0..hashes).map(|_| '#'))
        .collect();
    let from = at + hashes + 1;
    let found = chars[from..]
        .windows(closing.len())
        .position(|window| window == closing);
    Some(found.map_or(chars.len(), |length| from + length + closing.len()))
}

/// The end of a character literal; `None` for a lifetime.
fn end_of_char(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        let length = chars[at + 3..].iter().position(|c| *c == '\'')?;
        return Some(at + 3 + length + 1);
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

/// Whether `line` contains `word` as a word of its own.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    })
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of its `fn`, from 1.
    pub(crate) line: usize,
    /// Lines from there to the closing brace.
    pub(crate) lines: usize,
}

/// The functions in what [`code`] returned.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let chars: Vec<char> = code.chars().collect();
    let mut functions = Vec::new();
    let mut line = 1;
    for at in 0..chars.len() {
        line += usize::from(chars[at] == '\n');
        let is_fn =
            chars[at..].starts_with(&['f', 'n', ' ']) && (at == 0 || !is_word(chars[at - 1]));
        if !is_fn {
            continue;
        }
        let name: String = chars[at + 3..]
            .iter()
            .take_while(|c| is_word(**c))
            .collect();
        if let Some(lines) = body_lines(&chars[at..]).filter(|_| !name.is_empty()) {
            functions.push(Function { name, line, lines });
        }
    }
    functions
}

/// Lines from the start of `chars` to the brace that closes the first block;
/// `None` if a semicolon comes first: there is no body.
fn body_lines(chars: &[char]) -> Option<usize> {
    let (mut braces, mut others, mut lines) = (0_i32, 0_i32, 1);
    for c in chars {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others -= 1,
            ';' if braces == 0 && others == 0 => return None,
            '{' if others == 0 || braces > 0 => braces += 1,
            '}' if braces > 0 => {
                braces -= 1;
                if braces == 0 {
                    return Some(lines);
                }
            }
            '\n' => lines += 1,
            _ => {}
        }
    }
    None
}
