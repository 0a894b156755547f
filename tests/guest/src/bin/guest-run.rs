//! Boots a guest with an emulated zoned drive and runs a script in it:
//! `guest-run KERNEL SCRIPT`, where KERNEL is `stable` or `backports`.

use anyhow::{Context, Result};
use zonelab_guest_tests::{Disk, Guest, Image, Kernel, image};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: guest-run stable|backports SCRIPT";
    let name = args.next().context(usage)?;
    let script = args.next().context(usage)?;
    let kernel = Kernel::ALL.into_iter().find(|kernel| kernel.name() == name);
    let image = Image::open(&image::directory(), kernel.context(usage)?)?;
    let mut guest = Guest::boot(&image, &Disk::NAMESPACES)?;
    let output = guest.run_for(std::time::Duration::from_secs(600), &script)?;
    print!("{}", output.text);
    for complaint in guest.complaints()? {
        println!("the kernel complains:\n{complaint}");
    }
    println!("exit code {}", output.code);
    Ok(())
}
