//! (skeleton)

pub mod figure;
pub mod rows;
pub mod output;
pub mod table;
