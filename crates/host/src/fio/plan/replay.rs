//! Traces on a device.

use std::sync::Arc;

use zonelab_config::{Place, Problem};

use super::super::file::Section;
use super::super::value::shorten;
use super::{Device, Planner};
use crate::workload::directed::{DirectedWork, Direction, Flow, Sizes};
use crate::workload::record::TraceRecording;
use crate::workload::replay::{Action, Operation, Replay, Trace};

/// A write pointer that nobody knows before the run.
const UNKNOWN: u64 = u64::MAX;

impl Planner<'_> {
    /// Makes a thread of a job with `read_iolog` replay its trace.
    ///
    /// # Errors
    /// The trace was not read, or has an operation that does not fit: its line.
    pub(super) fn replay(
        &mut self,
        section: &Section,
        thread: u32,
        work: &mut DirectedWork,
    ) -> Result<(), Problem> {
        let options = &section.options;
        let replaying = &options.replay;
        if replaying.read_iolog.is_empty() {
            return Ok(());
        }
        let count = section.traces.len().max(1);
        let Some(trace) = section.traces.get(thread as usize % count) else {
            let origin = options.place(&["read_iolog"], &section.origin);
            let what = "the trace has not been read";
            return Err(origin.problem("read_iolog", what, "traces are files beside job files"));
        };
        let back = trace.out_of_order();
        if thread == 0 && back > 0 {
            let origin = options.place(&["read_iolog"], &section.origin);
            let what = format!(
                "{back} operations of {} have times before those of the ones in front of them: they \
                 come with these",
                shorten(&trace.file)
            );
            self.plan
                .warnings
                .push(origin.problem("read_iolog", what, ""));
        }
        let device = &self.device;
        let lbas = |bytes: u64| {
            u32::try_from(bytes / device.lba_bytes)
                .unwrap_or(u32::MAX)
                .max(1)
        };
        let replay = Replay {
            trace: Arc::clone(trace),
            speed_percent: (!replaying.no_stall).then_some(replaying.time_scale),
            skips: replaying.skip,
            scale: replaying.scale,
            align_bytes: replaying.align,
            wrap: replaying.wraps.then(|| {
                let within = device.within(work);
                (within.start, within.end - within.start)
            }),
            moves_writes: replaying.moves_writes,
            lba_bytes: device.lba_bytes,
            max_lbas: lbas(device.max_transfer),
            max_append_lbas: lbas(device.max_append),
            passes: match options.time_based {
                true => u64::MAX,
                false => options.loops,
            },
        };
        work.flows = Checker::new(device, &replay, work).check()?;
        work.replay = Some(replay);
        Ok(())
    }

    /// What a log of the commands of a job needs to know.
    pub(super) fn tracing(&self, section: &Section) -> Result<Option<TraceRecording>, Problem> {
        let options = &section.options;
        let Some(file) = &options.replay.write_iolog else {
            return Ok(None);
        };
        let origin = options.place(&["write_iolog"], &section.origin);
        let mut others = self
            .plan
            .jobs
            .iter()
            .filter_map(|job| job.logs.issued.as_ref());
        if options.numjobs > 1 || others.any(|log| log.file == *file) {
            let what = format!("\"{file}\" is the log of several threads");
            return Err(origin.problem("write_iolog", what, "a file for each job, and numjobs=1"));
        }
        if options.append || options.finish {
            let what = "logs of fio have no zone appends and finishes";
            return Err(origin.problem("write_iolog", what, "jobs that write"));
        }
        Ok(Some(TraceRecording {
            lba_bytes: self.device.lba_bytes,
            zone_lbas: self.device.zoned.zone_size_lbas,
        }))
    }
}

/// Looks whether the operations of a trace fit.
struct Checker<'a> {
    device: &'a Device,
    replay: &'a Replay,
    work: &'a DirectedWork,
    /// By zone of the job: where the trace has left the write pointer.
    pointers: Vec<u64>,
}

impl<'a> Checker<'a> {
    fn new(device: &'a Device, replay: &'a Replay, work: &'a DirectedWork) -> Self {
        Self {
            device,
            replay,
            work,
            pointers: vec![UNKNOWN; work.zones.len()],
        }
    }

    /// The directions that there are.
    fn check(mut self) -> Result<[Option<Flow>; 3], Problem> {
        let mut flows = [None, None, None];
        let trace: &Trace = &self.replay.trace;
        for (index, operation) in trace.iter().enumerate() {
            if self.replay.skips.includes(operation.action) {
                continue;
            }
            if let Err((what, valid)) = self.operation(&operation) {
                let line = usize::try_from(trace.line_of(index)).unwrap_or(usize::MAX);
                return Err(Problem {
                    file: trace.file.clone(),
                    place: Place::Line { line, column: 1 },
                    key: String::new(),
                    what,
                    valid,
                });
            }
            let direction = match operation.action {
                Action::Read => Direction::Read,
                Action::Write | Action::Append | Action::Finish => Direction::Write,
                Action::Trim | Action::ResetAll => Direction::Trim,
                Action::Sync => continue,
            };
            flows[direction as usize].get_or_insert_with(|| Flow::unlimited(Sizes::fixed(1)));
        }
        Ok(flows)
    }

    fn operation(&mut self, operation: &Operation) -> Result<(), (String, String)> {
        let (offset, bytes) = (operation.offset, operation.bytes);
        if operation.action == Action::Sync {
            return Ok(());
        }
        if operation.action == Action::ResetAll {
            if self.work.blocks.is_some() {
                return on_blocks(operation.action);
            }
            self.pointers.fill(0);
            return Ok(());
        }
        let block = self.device.lba_bytes;
        let Some((lba, lbas)) = self.replay.place(operation) else {
            let what = format!("{bytes} bytes at {offset} are no whole logical blocks of {block}");
            return Err((what, format!("replay_align={block} rounds them")));
        };
        let size = self.device.zoned.zone_size_lbas;
        let capacity = self.device.zoned.zone_capacity_lbas;
        let zones = &self.work.zones;
        let within = self.device.within(self.work);
        let end = lba.saturating_add(lbas);
        if lba < within.start || lba >= within.end || end > within.end {
            let what = format!("{bytes} bytes at {offset} lie outside of what the job works on");
            let (from, to) = (within.start * block, within.end * block);
            let valid = format!(
                "bytes {from} to {to}; replay_wrap=1 folds offsets into them, replay_scale divides \
                 them"
            );
            return Err((what, valid));
        }
        if self.work.blocks.is_some() {
            return on_blocks(operation.action);
        }
        // Fits: the zones of the job.
        let zone = (lba / size) as u32;
        let at = lba % size;
        let is_strict = !self.replay.moves_writes;
        let pointer = &mut self.pointers[(zone - zones.start) as usize];
        match operation.action {
            Action::Write if is_strict => {
                if at + lbas > capacity {
                    let what = format!(
                        "a write of {bytes} bytes at {offset} goes beyond zone {zone}, which holds {}",
                        capacity * block
                    );
                    return Err((what, MOVES.to_owned()));
                }
                if at != 0 && *pointer != UNKNOWN && at != *pointer {
                    let expected = (u64::from(zone) * size + *pointer) * block;
                    let what = format!(
                        "a write at {offset} that is not at the write pointer of zone {zone}, {expected}"
                    );
                    return Err((what, MOVES.to_owned()));
                }
                *pointer = at + lbas;
            }
            Action::Write | Action::Append => {
                if lbas > capacity {
                    let what = format!("a write of {bytes} bytes is longer than a zone");
                    return Err((what, format!("at most {}", capacity * block)));
                }
                if *pointer != UNKNOWN {
                    *pointer = (*pointer + lbas).min(capacity);
                }
            }
            Action::Finish => *pointer = capacity,
            Action::Trim => {
                // Zones that lie within it as a whole.
                for zone in lba.div_ceil(size)..end.div_ceil(size) {
                    let index = (zone - u64::from(zones.start)) as usize;
                    if zone * size + capacity <= end
                        && let Some(pointer) = self.pointers.get_mut(index)
                    {
                        *pointer = 0;
                    }
                }
            }
            Action::Read | Action::Sync | Action::ResetAll => {}
        }
        Ok(())
    }
}

/// Whether an operation can be one on blocks without zones.
fn on_blocks(action: Action) -> Result<(), (String, String)> {
    match action {
        Action::Append | Action::Finish | Action::ResetAll => Err((
            "a command for zones, and there are none".to_owned(),
            "reads, writes, trims and flushes".to_owned(),
        )),
        Action::Read | Action::Write | Action::Trim | Action::Sync => Ok(()),
    }
}

const MOVES: &str = "replay_zones=append lets it go to the write pointer";
