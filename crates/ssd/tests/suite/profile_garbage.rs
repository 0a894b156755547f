//! No profile and no configuration panics: it is read, or it is refused.

use crate::profile_support::valid_config;
use proptest::prelude::*;
use zonelab_config::Override;
use zonelab_device::Nanos;
use zonelab_ssd::config::{DriveConfig, FillExtent, FinishConfig, MappingConfig, ZrwaConfig};
use zonelab_ssd::profile::{
    Profile, builtin, builtin_names, builtin_text, check, describe, to_toml,
};

/// What is accepted is consistent; what is refused says something.
fn read(text: &str, sets: &[Override]) {
    match Profile::parse("x.toml", text, sets) {
        Ok(profile) => {
            assert!(!describe(&profile).is_empty());
            let again = Profile::parse("x.toml", &to_toml(&profile.config), &[]);
            assert_eq!(
                again.expect("what was accepted is accepted").config,
                profile.config
            );
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

fn builtin_profile() -> impl Strategy<Value = &'static str> {
    let texts: Vec<_> = builtin_names().filter_map(builtin_text).collect();
    proptest::sample::select(texts)
}

/// A piece of TOML that hits more often than a random string.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,6}",
        "[\\[\\]{}\"'=.,#\n0-9a-zKMGTiB%]{0,6}",
        "[0-9]{1,25}",
        Just("18446744073709551615".to_owned()),
        Just("4294967295".to_owned()),
        Just("-1".to_owned()),
        Just("\u{0}".to_owned()),
        Just("true".to_owned()),
    ]
}

/// Where to replace how many characters by what.
fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    (any::<prop::sample::Index>(), 0..8_usize, piece())
}

/// An override of a key that exists, with an extreme or senseless value.
fn override_of_a_key() -> impl Strategy<Value = Override> {
    let text = to_toml(&builtin("qlc-large").expect("it is built in").config);
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
        } else if let Some((key, _)) = line.split_once(" = ") {
            keys.push(format!("{section}{key}"));
        }
    }
    let units = [
        "", "B", "KiB", "GiB", "TiB", "ns", "us", "s", "h", "MiB/s", "TB",
    ];
    let number = prop_oneof![
        0..10_u64,
        (0..64_u32).prop_map(|shift| 1 << shift),
        (0..64_u32).prop_map(|shift| u64::MAX >> shift),
        any::<u64>(),
    ];
    let quantity = (number, proptest::sample::select(units.to_vec()));
    let value = prop_oneof![
        4 => quantity.prop_map(|(number, unit)| format!("{number}{unit}")),
        1 => proptest::sample::select(vec!["true", "false", "lazy", "weighted", "asynchronous",
            "metadata", "single", "multi-plane", "hold", "arrival", "[]", "{}", "{ x = 1 }", "1.5"])
            .prop_map(str::to_owned),
    ];
    (proptest::sample::select(keys), value)
        .prop_map(|(key, value)| Override::parse(&format!("{key}={value}")).expect("a key, `=`"))
}

/// Any value for any number of a configuration.
fn distorted() -> impl Strategy<Value = DriveConfig> {
    let word = || {
        prop_oneof![
            0..3_u32,
            any::<u32>(),
            (0..32_u32).prop_map(|s| u32::MAX >> s)
        ]
    };
    let wide = || {
        prop_oneof![
            0..3_u64,
            any::<u64>(),
            (0..64_u32).prop_map(|s| u64::MAX >> s)
        ]
    };
    let changes = proptest::collection::vec((0..27_usize, word(), wide()), 1..5);
    (valid_config(), changes).prop_map(|(mut config, changes)| {
        for (field, word, wide) in changes {
            distort(&mut config, field, word, wide);
        }
        config
    })
}

fn distort(config: &mut DriveConfig, field: usize, word: u32, wide: u64) {
    let DriveConfig {
        geometry,
        zones,
        media,
        front_end,
        ..
    } = config;
    match field {
        0 => geometry.channels = word,
        1 => geometry.ways = word,
        2 => geometry.dies = word,
        3 => geometry.planes = word,
        4 => geometry.blocks_per_plane = word,
        5 => geometry.pages_per_block = word,
        6 => geometry.page_bytes = word,
        7 => config.lba_bytes = word,
        8 => zones.count = word,
        9 => zones.size_lbas = wide,
        10 => zones.capacity_lbas = wide,
        11 => zones.max_active = Some(word),
        12 => zones.max_open = Some(word),
        13 => zones.channels = word,
        14 => zones.ways = word,
        15 => zones.descriptor_extension_bytes = word,
        16 => media.read_ns = Nanos(wide),
        17 => media.program_ns = Nanos(wide),
        18 => media.erase_ns = Nanos(wide),
        19 => media.transfer_ns = Nanos(wide),
        20 => front_end.cores = word,
        21 => front_end.management_ns = Nanos(wide),
        22 => front_end.link_bytes_per_s = Some(wide),
        23 => front_end.max_transfer_bytes = Some(word),
        24 => {
            config.mapping = MappingConfig::Lazy {
                physical_zones: word,
            }
        }
        25 => {
            zones.zrwa = Some(ZrwaConfig {
                size_lbas: word,
                // The upper half is as good as any.
                flush_granularity_lbas: (wide >> 32) as u32,
                max_areas: (!wide.is_multiple_of(3)).then_some(word),
                explicit_flush: true,
            });
        }
        _ => {
            let yield_ns = Some(Nanos(wide));
            let pause_ns = Nanos(wide);
            config.finish = FinishConfig::Fill {
                granularity_bytes: word,
                pause_ns,
                yield_ns,
                buffered: false,
                takes_core: false,
                extent: FillExtent::Zone,
            };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn mutated_profiles(
        text in builtin_profile(),
        edits in proptest::collection::vec(edit(), 1..5),
    ) {
        let mut text: Vec<char> = text.chars().collect();
        for (at, length, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + length).min(text.len());
            text.splice(at..end, piece.chars());
        }
        read(&text.into_iter().collect::<String>(), &[]);
    }

    #[test]
    fn extreme_overrides(
        text in builtin_profile(),
        sets in proptest::collection::vec(override_of_a_key(), 1..5),
    ) {
        read(text, &sets);
    }

    #[test]
    fn any_text(text in "\\PC*") {
        read(&text, &[]);
    }

    #[test]
    fn any_configuration(config in distorted()) {
        match check(&config) {
            Ok(derived) => prop_assert!(derived.usable_bytes <= derived.raw_bytes),
            Err(violations) => prop_assert!(!violations.is_empty()),
        }
        let _ = to_toml(&config);
    }
}
