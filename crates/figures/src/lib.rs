//! Figures as SVG, and tables for a terminal: data in, text out.
//!
//! | module | what |
//! | --- | --- |
//! | [`figure`] | line and scatter charts, heat maps |
//! | [`table`] | tables, and numbers as a person reads them |
//!
//! Both are pure functions of what they are given, with the same bytes on every machine.

pub mod figure;
pub mod table;
