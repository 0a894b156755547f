//! Relations hold for random drives, the generator draws every key, and the page has the table.
