//! (skeleton)

pub mod figure;
pub mod output;
pub mod reference;
pub mod rows;
pub mod table;
