//! The driver for PCIe on an endpoint in memory.

mod bringup;
mod commands;
mod drive;
mod faults;
mod queues;
mod random;
mod reactor;
