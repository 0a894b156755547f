//! The zone state machine of the ZNS command set.
