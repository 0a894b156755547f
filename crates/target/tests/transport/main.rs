//! NVMe/TCP from the side of a host that shares no code with the target: PDUs
//! are written byte by byte, as the specification lays them out.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod end_to_end;
mod golden;
mod streams;
mod terms;
mod violations;
mod wire;
