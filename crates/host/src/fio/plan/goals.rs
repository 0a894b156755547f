//! What a job may do beside others, and which latencies it may have.

use zonelab_config::Problem;
use zonelab_device::Nanos;

use super::{PlannedJob, PlannedShare, Planner};
use crate::fio::file::Section;
use crate::rate;
use crate::workload::directed::{Direction, Flow};
use crate::workload::latency::{LatencyGoals, LatencyTarget};
use crate::workload::steady::SteadyGoal;

impl Planner<'_> {
    /// The latencies that a job may have.
    ///
    /// # Errors
    /// A search without windows, or of an engine that has no depth.
    pub(super) fn latency_goals(section: &Section) -> Result<LatencyGoals, Problem> {
        let options = &section.options;
        let max = options.beside.max_latency.map(Nanos);
        if options.beside.latency_target == 0 {
            return Ok(LatencyGoals { max, target: None });
        }
        let origin = options.place(&["latency_target"], &section.origin);
        if options.beside.latency_window == 0 {
            let what = "nothing says how long each depth is tried";
            return Err(origin.problem(
                "latency_target",
                what,
                "add for example latency_window=1s",
            ));
        }
        let is_of_zones = options.finish || options.softfinish || options.reset;
        let [_, writes, trims] = options.rw.directions;
        if is_of_zones || trims && !writes || options.verify.is_some() {
            let what = "is for jobs whose operations can be in flight together, without verify";
            return Err(origin.problem("latency_target", what, "rw=read, rw=write and the like"));
        }
        Ok(LatencyGoals {
            max,
            target: Some(LatencyTarget {
                latency: Nanos(options.beside.latency_target),
                window: Nanos(options.beside.latency_window),
                percent: options.beside.latency_percentile,
                goes_on: options.beside.latency_run,
            }),
        })
    }

    /// When the job is steady enough to end.
    ///
    /// # Errors
    /// Nothing says over which time, that is no multiple of the interval, or threads are to be
    /// steady together.
    pub(super) fn steady_goal(section: &Section) -> Result<Option<SteadyGoal>, Problem> {
        let options = &section.options;
        let steady = &options.beside.steady;
        let Some((metric, is_slope)) = steady.metric else {
            return Ok(None);
        };
        let refuse = |what: &str, valid: &str| {
            let origin = options.place(&["steadystate", "ss"], &section.origin);
            Err(origin.problem("steadystate", what.to_owned(), valid))
        };
        if steady.duration == 0 {
            return refuse("nothing says for how long", "add for example ss_dur=30s");
        }
        let intervals = steady.duration / steady.interval.max(1);
        let is_multiple = steady.interval > 0 && steady.duration.is_multiple_of(steady.interval);
        if !is_multiple || !(2..=1 << 20).contains(&intervals) {
            let valid = "ss_dur is at least twice ss_interval (1s), and a multiple of it";
            return refuse("its intervals do not fit into its duration", valid);
        }
        if options.group_reporting && options.numjobs > 1 {
            let valid = "without group_reporting each thread ends when it is steady by itself";
            return refuse("threads do not become steady as a group", valid);
        }
        Ok(Some(SteadyGoal {
            metric,
            is_slope,
            limit: steady.limit,
            is_percent: steady.is_percent,
            duration: Nanos(steady.duration),
            ramp: Nanos(steady.ramp),
            interval: Nanos(steady.interval),
        }))
    }

    /// How much later than its stage a thread begins, so that threads and jobs with a rate are out
    /// of step.
    pub(super) fn out_of_step(
        &self,
        (thread, number): (u32, u32),
        flows: &[Option<Flow>; 3],
    ) -> Nanos {
        let lba_bytes = self.device.lba_bytes;
        let periods = flows.iter().flatten();
        let periods = periods.filter_map(|flow| flow.period(lba_bytes));
        let period = periods.min().unwrap_or(Nanos::ZERO);
        let among_threads = rate::out_of_step(thread, period);
        let is_rated = |job: &PlannedJob| {
            let mut flows = job.spec.work.flows.iter().flatten();
            flows.any(|flow| flow.period(lba_bytes).is_some())
        };
        let stage = self.plan.stages - 1;
        let is_earlier = |job: &PlannedJob| job.stage == stage && job.number + thread < number;
        let mut earlier = self.plan.jobs.iter().filter(|job| is_earlier(job));
        if !earlier.any(is_rated) {
            return among_threads;
        }
        let drawn = rate::phase(self.seed, number - thread, period);
        Nanos(among_threads.saturating_add(drawn).0 % period.0.max(1))
    }

    /// Whose share of what is done together a job has, if it has one.
    pub(super) fn share(section: &Section) -> Option<PlannedShare> {
        let options = &section.options;
        (options.beside.flow > 0).then_some(PlannedShare {
            group: options.beside.flow_id,
            weight: options.beside.flow,
            sleep: Nanos(options.beside.flow_sleep),
        })
    }

    /// Options whose meaning depends on the clock.
    pub(super) fn note_cpus(&mut self, section: &Section) {
        let options = &section.options;
        if !options.beside.cpus.any() {
            return;
        }
        let names = ["cpus_allowed", "cpumask", "numa_cpu_nodes"];
        let mut places = options.places.iter();
        if let Some((name, origin)) = places.find(|(name, _)| names.contains(name)) {
            let what = "has no meaning in virtual time: each thread has a modelled core of its own";
            let warning = origin.problem(name, what, "?clock=real, or a drive over NVMe/TCP");
            if !self.plan.in_virtual_time.contains(&warning) {
                self.plan.in_virtual_time.push(warning);
            }
        }
    }

    /// Whether latencies of a direction are bounded that the job does not have.
    pub(super) fn check_latencies(&mut self, section: &Section, thread: u32) {
        let options = &section.options;
        let bounds = || Direction::ALL.map(|of| options.beside.max_latency[of as usize] > 0);
        let has_any = bounds().contains(&true);
        let does = options.rw.directions;
        let has_used = bounds()
            .iter()
            .zip(does)
            .any(|(bound, does)| *bound && does);
        if thread == 0 && has_any && !has_used {
            let origin = options.place(&["max_latency"], &section.origin);
            let what = "has no meaning: the job does nothing in that direction";
            self.plan
                .warnings
                .push(origin.problem("max_latency", what, ""));
        }
    }
}
