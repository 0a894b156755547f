//! Blocks of documents that a chore writes, each between two lines of its own:
//! `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

use std::fmt::Write as _;

use anyhow::{Result, bail};

/// A block, by the name in its two lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(pub(crate) &'static str);

impl Block {
    fn begin(self) -> String {
        format!("<!-- {}: begin -->", self.0)
    }

    fn end(self) -> String {
        format!("<!-- {}: end -->", self.0)
    }

    /// What stands before, in and behind the block, of which there is one.
    fn split(self, text: &str) -> Result<[&str; 3]> {
        let (begin, end) = (self.begin(), self.end());
        let parts = text.split_once(&begin).and_then(|(before, rest)| {
            let (block, after) = rest.split_once(&end)?;
            Some([before, block, after])
        });
        match parts {
            Some(parts) if parts.iter().all(|part| !part.contains(&begin)) => Ok(parts),
            _ => bail!("there is no block between one `{begin}` and one `{end}`"),
        }
    }

    /// What stands in the block.
    ///
    /// # Errors
    /// There is no such block, or more than one.
    pub(crate) fn read(self, text: &str) -> Result<&str> {
        self.split(text).map(|[_, block, _]| block)
    }

    /// `text` with another block.
    ///
    /// # Errors
    /// As [`Block::read`].
    pub(crate) fn replace(self, text: &str, block: &str) -> Result<String> {
        let [before, _, after] = self.split(text)?;
        let (begin, end) = (self.begin(), self.end());
        Ok(format!("{before}{begin}\n{}\n{end}{after}", block.trim()))
    }
}

/// The lines that only one of two texts has: those of `stated`, which stands in the
/// document `name`, and those of `expected`, which is from `source`.
pub(crate) fn difference(name: &str, stated: &str, source: &str, expected: &str) -> String {
    let mut out = format!("--- {name}\n+++ {source}\n");
    let (stated, expected) = (stated.trim(), expected.trim());
    for (sign, lines, others) in [("-", stated, expected), ("+", expected, stated)] {
        for line in lines
            .lines()
            .filter(|line| !others.lines().any(|other| other == *line))
        {
            // Writing to a string does not fail.
            let _ = writeln!(out, "{sign}{line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\n<!-- verdicts: begin -->\nb\n<!-- verdicts: end -->\nc\n";

    #[test]
    fn a_block_can_be_read_and_written() {
        let block = Block("verdicts");
        assert_eq!(block.read(TEXT).unwrap(), "\nb\n");
        let written = block.replace(TEXT, "x\ny\n").unwrap();
        assert_eq!(block.read(&written).unwrap(), "\nx\ny\n");
        assert_eq!(block.replace(&written, "b").unwrap(), TEXT);
        let (begin, end) = (block.begin(), block.end());
        for wrong in ["", &begin, &end, &format!("{end}{begin}"), &TEXT.repeat(2)] {
            assert!(block.read(wrong).is_err(), "{wrong}");
        }
        assert!(Block("gaps").read(TEXT).is_err());
    }

    #[test]
    fn what_differs_is_shown() {
        let text = difference("README.md", "\nsame\nold\n", "summary.md", "same\nnew\n");
        assert_eq!(text, "--- README.md\n+++ summary.md\n-old\n+new\n");
    }
}
