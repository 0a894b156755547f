//! What a fit came to: a table, JSON, the profile.
