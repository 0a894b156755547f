//! DMA memory: copies at any offset, and what a device may access.

use zonelab_device::{Buf, BufMemory};
use zonelab_driver::pcie::dma::{copy_in, copy_out};
use zonelab_driver::pcie::{DmaBuf, DmaMemory, HostMemory};

#[test]
fn bytes_come_back_from_any_offset() {
    let memory = HostMemory::new();
    let region = memory.allocate(64).unwrap();
    for offset in 0..20 {
        for bytes in 0..20_u8 {
            let from: Vec<u8> = (0..bytes).map(|at| at ^ offset as u8 ^ 0xa5).collect();
            region.copy_in(&[0x11; 64]);
            copy_in(region.words(), offset, &from);
            let mut to = vec![0; from.len()];
            copy_out(region.words(), offset, &mut to);
            assert_eq!(to, from);
            let mut all = [0; 64];
            region.copy_out(&mut all);
            let end = offset + from.len();
            let around = all[..offset].iter().chain(&all[end..]);
            assert!(
                around.clone().all(|byte| *byte == 0x11),
                "offset {offset}, {bytes} bytes"
            );
        }
    }
}

/// A device that goes on with an address that is not mapped any more gets a fault, and
/// so does one that runs past the end of a region or into a buffer that was not lent.
#[test]
fn accesses_that_nobody_asked_for_are_refused() {
    let memory = HostMemory::new();
    let region = memory.allocate(4096).unwrap();
    let (iova, mut bytes) = (region.iova(), [0; 8]);
    assert_eq!(memory.write(iova + 4088, &[7; 8]), Ok(()));
    assert!(memory.write(iova + 4089, &[7; 8]).is_err());
    assert!(memory.read(iova - 1, &mut bytes).is_err());
    assert!(memory.read(u64::MAX, &mut bytes).is_err());
    drop(region);
    assert!(memory.read(iova, &mut bytes).is_err());
    let again = memory.allocate(4096).unwrap();
    assert!(again.iova() > iova + 4096, "addresses are not used again");

    let mut own = DmaBuf::new(memory.allocate(512).unwrap(), 512);
    own.bytes_mut().fill(3);
    let iova = own.iova();
    assert!(
        memory.write(iova, &[7; 8]).is_err(),
        "the program has the buffer"
    );
    let buf = own.into_buf();
    assert!(buf.iter().all(|byte| *byte == 3));
    assert_eq!(buf.len(), 512);
    assert_eq!(memory.faults(), 5);
}

/// Memory that the device may still write to is not freed.
#[test]
fn a_leaked_region_stays_mapped() {
    let memory = HostMemory::new();
    let region = memory.allocate(4096).unwrap();
    let iova = region.iova();
    region.leak();
    drop(region);
    assert_eq!(memory.write(iova, &[1; 8]), Ok(()));
    assert_eq!(memory.regions(), 1);
}

/// Buffers in memory of a driver are as good as any others.
#[test]
fn a_buffer_of_a_driver_is_equal_to_one_of_the_heap() {
    let memory = HostMemory::new();
    let mut own = DmaBuf::new(memory.allocate(100).unwrap(), 100).into_buf();
    own[99] = 9;
    let copy = own.clone();
    assert!(copy.memory::<DmaBuf>().is_none(), "a clone is in the heap");
    assert_eq!(copy, own);
    own[0] = 1;
    assert_ne!(copy, own);
    assert_ne!(Buf::zeroed(99), own);
}
