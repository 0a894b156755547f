//! Ranges of settings.

use zonelab_device::Nanos;
use zonelab_host::scheduler::{MqDeadlineSettings, SchedulerSpec, ZincSettings, ZincThrottle};

use super::INFO;

fn refused(spec: SchedulerSpec) -> String {
    match spec.build(&INFO) {
        Ok(scheduler) => panic!("{} takes {spec:?}", scheduler.name()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_out_of_range_is_refused_with_the_range() {
    let deadline = MqDeadlineSettings::default();
    let mq = SchedulerSpec::MqDeadline;
    for (settings, message) in [
        (
            MqDeadlineSettings {
                read_expire: Nanos::from_secs(3_601),
                ..deadline
            },
            "mq-deadline.read_expire = 3601 s is out of range: 0 ns to 3600 s",
        ),
        (
            MqDeadlineSettings {
                write_expire: Nanos::MAX,
                ..deadline
            },
            "mq-deadline.write_expire = never is out of range: 0 ns to 3600 s",
        ),
        (
            MqDeadlineSettings {
                fifo_batch: 0,
                ..deadline
            },
            "mq-deadline.fifo_batch = 0 is out of range: 1 to 1000000 commands",
        ),
        (
            MqDeadlineSettings {
                writes_starved: 1_000_001,
                ..deadline
            },
            "mq-deadline.writes_starved = 1000001 is out of range: 0 to 1000000 batches",
        ),
        (
            // The device has blocks of 512 bytes too, but must do with one limit.
            MqDeadlineSettings {
                max_request_bytes: 4095,
                ..deadline
            },
            "mq-deadline.max_request = 4095 is out of range: 4096 to 268435456 bytes",
        ),
    ] {
        assert_eq!(refused(mq(settings)), message);
        let zinc = ZincSettings {
            deadline: settings,
            ..ZincSettings::default()
        };
        assert_eq!(refused(SchedulerSpec::Zinc(zinc)), message);
    }
}

#[test]
fn each_kind_of_zinc_is_checked() {
    let throttle = ZincThrottle::default();
    for (settings, key, rest) in [
        (
            ZincThrottle {
                epoch: Nanos(999_999),
                ..throttle
            },
            "epoch",
            "999.999 us is out of range: 1 ms to 60 s",
        ),
        (
            ZincThrottle {
                epoch: Nanos(60_000_000_001),
                ..throttle
            },
            "epoch",
            "60.000000001 s is out of range: 1 ms to 60 s",
        ),
        (
            ZincThrottle {
                min_concurrency: 65_537,
                ..throttle
            },
            "min_concurrency",
            "65537 is out of range: 0 to 65536 units of 8 KiB",
        ),
        (
            ZincThrottle {
                max_epoch_holds: 1_001,
                ..throttle
            },
            "max_epoch_holds",
            "1001 is out of range: 0 to 1000 epochs",
        ),
    ] {
        let default = ZincSettings::default();
        let reset = ZincSettings {
            reset: settings,
            ..default
        };
        let finish = ZincSettings {
            finish: settings,
            ..default
        };
        for (zinc, kind) in [(reset, "reset"), (finish, "finish")] {
            assert_eq!(
                refused(SchedulerSpec::Zinc(zinc)),
                format!("zinc.{kind}.{key} = {rest}")
            );
        }
    }
}

#[test]
fn the_ends_of_the_ranges_are_valid() {
    let ends = |low: bool| {
        let pick = |range: std::ops::RangeInclusive<u32>| match low {
            true => *range.start(),
            false => *range.end(),
        };
        let time = |range: std::ops::RangeInclusive<Nanos>| match low {
            true => *range.start(),
            false => *range.end(),
        };
        let throttle = ZincThrottle {
            epoch: time(ZincThrottle::EPOCH),
            write_tokens: pick(0..=u32::MAX),
            min_concurrency: pick(ZincThrottle::MIN_CONCURRENCY),
            max_epoch_holds: pick(ZincThrottle::MAX_EPOCH_HOLDS),
        };
        ZincSettings {
            deadline: MqDeadlineSettings {
                read_expire: time(MqDeadlineSettings::EXPIRE),
                write_expire: time(MqDeadlineSettings::EXPIRE),
                fifo_batch: pick(MqDeadlineSettings::FIFO_BATCH),
                writes_starved: pick(MqDeadlineSettings::WRITES_STARVED),
                front_merges: low,
                max_request_bytes: pick(4096..=*MqDeadlineSettings::MAX_REQUEST_BYTES.end()),
            },
            reset: throttle,
            finish: throttle,
        }
    };
    for settings in [ends(true), ends(false), ZincSettings::default()] {
        assert!(SchedulerSpec::Zinc(settings).build(&INFO).is_ok());
    }
}
