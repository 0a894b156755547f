use zonelab_ssd::{config::*, Drive, Control};
use zonelab_device::*;
use zonelab_host::{*, workload::*, stats::*};
fn config() -> DriveConfig {
    DriveConfig { name: "c".into(),
        geometry: Geometry { channels: 4, ways:1, dies:1, planes:1, blocks_per_plane: 48*22, pages_per_block: 768, page_bytes: 16384 },
        lba_bytes: 4096,
        zones: ZonesConfig { count: 48, size_lbas: 524288, capacity_lbas: 1056*256, max_active: None, max_open: None, channels:4, ways:1, stripe: StripeOrder::ChannelFirst, read_across: true, descriptor_extension_bytes: 0 },
        media: MediaConfig { read_ns: Nanos::from_us(60), program_ns: Nanos::from_us(700), erase_ns: Nanos::from_us(3500), transfer_ns: Nanos::from_us(25), partial_transfer: false, page_register: PageRegister::Overlap, planes: PlaneMode::Independent, policy: DiePolicy::Fifo, arbitration: ChannelArbitration::Arrival, suspend: Suspend::NONE },
        front_end: FrontEndConfig { cores: 0, read_ns: Nanos(0), write_ns: Nanos(0), append_ns: Nanos(0), management_ns: Nanos(0), link_bytes_per_s: None, max_transfer_bytes: None, max_append_bytes: None },
        finish: FinishConfig::Fill { granularity_bytes: 16384, pause_ns: Nanos(0), yield_ns: None },
        reset: ResetConfig { erase: EraseWhen::Synchronous, extent: EraseExtent::Full, preempt_ns: None },
        mapping: MappingConfig::Direct, data: DataStore::None }
}
fn main() {
    let a: Vec<f64> = std::env::args().skip(1).map(|s| s.parse().unwrap()).collect();
    let costs = if a.is_empty() { HostCosts::FREE } else { HostCosts { submit_ns: Nanos((a[0]*1e3) as u64), complete_ns: Nanos((a[1]*1e3) as u64), jitter_ns: Nanos((a[2]*1e3) as u64), hiccup_one_in: a[3] as u64, hiccup_ns: Nanos((a[4]*1e3) as u64) } };
    let spread = a.get(5).copied().unwrap_or(0.0);
    // reads
    for cl in [1u32, 2, 4, 8, 16, 32, 64] {
        let drive = Emulated::new(Drive::new(&config()));
        drive.with_drive(|d| d.control(Nanos(0), &Control::PreconditionFull { zones: 20..25 }).unwrap());
        let stop = StopSignal::default();
        let spec = JobSpec { name: "r".into(), work: Work::Read(ReadWork { zones: 20..25, block_lbas: 4, random: true }), queue_depth: cl, rate: None, ramp: Nanos(0), stop: Stop { runtime: Some(Nanos::from_secs(20)), ..Stop::default() }, ends_run: true };
        let mut job = WorkloadJob::new(spec, drive.info(), Rng::new(1, 1), stop.clone());
        let mut r = Reactor::new(VirtualClock::default(), drive.clone(), stop);
        let q = drive.open_queue(cl, costs, Rng::new(1, 2));
        let t = std::time::Instant::now();
        r.add(&mut job, q, CoreId(0), Nanos(0));
        r.run();
        let el = t.elapsed();
        let res = job.into_result();
        let g = GroupStats::of([&res.stats], OpKind::Read).unwrap();
        println!("read CL{cl}: {:.2} KIOPS mean {:.1} p95 {:?}  {:.2} M ops/s", g.mean_iops/1e3, g.latency.mean_ns().unwrap()/1e3, g.latency.percentile(95.0).unwrap(), res.operations as f64/el.as_secs_f64()/1e6);
    }
    for cl in [1u32, 4, 5, 6, 7] {
      for seed in 1..4u64 {
        let drive = Emulated::new(Drive::new(&config()));
        let stop = StopSignal::default();
        let mut jobs: Vec<_> = (0..cl).map(|i| {
            let spec = JobSpec { name: "w".into(), work: Work::Write(WriteWork { zones: 11+i*3..14+i*3, block_lbas: 4, append: false, open_zones: 1, repeat: true, reset_first: false }), queue_depth: 1, rate: None, ramp: Nanos(0), stop: Stop { runtime: Some(Nanos::from_secs(180)), ..Stop::default() }, ends_run: true };
            WorkloadJob::new(spec, drive.info(), Rng::new(seed, i as u64), stop.clone()) }).collect();
        let mut r = Reactor::new(VirtualClock::default(), drive.clone(), stop);
        let t = std::time::Instant::now();
        let mut rng = Rng::new(seed, 1000);
        for (i, job) in jobs.iter_mut().enumerate() {
            let q = drive.open_queue(1, costs, Rng::new(seed, 100 + i as u64));
            let start = Nanos(rng.below((spread*1e3) as u64 + 1));
            r.add(job, q, CoreId(i as u32), start);
        }
        r.run();
        let el = t.elapsed();
        let res: Vec<_> = jobs.into_iter().map(|j| j.into_result()).collect();
        let g = GroupStats::of(res.iter().map(|r| &r.stats), OpKind::Write).unwrap();
        println!("write CL{cl}: {:.3} KIOPS mean {:.1} p50 {:?} p95 {:?} p99 {:?} {:.2} M ops/s", g.mean_iops/1e3, g.latency.mean_ns().unwrap()/1e3, g.latency.percentile(50.0).unwrap(), g.latency.percentile(95.0).unwrap(), g.latency.percentile(99.0).unwrap(), g.latency.count() as f64/el.as_secs_f64()/1e6);
      }
    }
}
