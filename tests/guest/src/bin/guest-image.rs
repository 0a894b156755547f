//! Makes the guest that the cases boot.

fn main() -> anyhow::Result<()> {
    zonelab_guest_tests::image::build(&zonelab_guest_tests::image::directory())
}
