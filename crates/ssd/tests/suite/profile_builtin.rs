//! The profiles that come with zonelab: what they say, and what follows.

use zonelab_config::Override;
use zonelab_device::Nanos;
use zonelab_ssd::Drive;
use zonelab_ssd::config::{
    AllocationConfig, ChannelArbitration, CommandCosts, DataStore, DiePolicy, DriveConfig,
    EraseExtent, EraseWhen, FillExtent, FinishConfig, FrontEndConfig, Geometry, MappingConfig,
    MediaConfig, MediaDetails, PageRegister, PlaneMode, ResetConfig, StripeOrder, Suspend,
    ZonesConfig,
};
use zonelab_ssd::profile::{
    Cell, Limit, Profile, builtin, builtin_names, builtin_text, check, describe, to_toml,
};

#[test]
fn every_builtin_profile_reads_and_builds() {
    let names: Vec<_> = builtin_names().collect();
    assert_eq!(
        names,
        [
            "confznspp",
            "cosmos-plus",
            "qlc-buffered",
            "qlc-cached",
            "qlc-large",
            "small-zones",
            "zn540",
            "zn540-2tb"
        ]
    );
    for name in names {
        let profile = builtin(name).unwrap();
        assert_eq!(profile.config.name, name);
        assert!(
            !profile.description.is_empty() && !profile.source.is_empty(),
            "{name}"
        );
        assert_eq!(check(&profile.config), Ok(profile.derived.clone()));
        let again = Profile::parse(name, &to_toml(&profile.config), &[]).unwrap();
        assert_eq!(again.config, profile.config);
        // Figures of a drive that is too large for this are arithmetic as well.
        let drive = Drive::new(&profile.config);
        assert_eq!(drive.zones().count(), profile.config.zones.count);
    }
    assert_eq!(builtin("confznsp"), None);
    assert_eq!(builtin_text("confznsp"), None);
}

/// Against the configuration table of the paper's scripts, value by value.
#[test]
fn confznspp_is_the_papers_emulator() {
    let page_lbas = 4;
    let expected = DriveConfig {
        name: "confznspp".to_owned(),
        geometry: Geometry {
            channels: 4,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks_per_plane: 1_056,
            pages_per_block: 768,
            page_bytes: 16_384,
        },
        lba_bytes: 4_096,
        zones: ZonesConfig {
            count: 48,
            size_lbas: 2 * 1_024 * 1_024 * 1_024 / 4_096,
            capacity_lbas: 88 * 768 * page_lbas,
            max_active: None,
            max_open: None,
            channels: 4,
            ways: 1,
            stripe: StripeOrder::ChannelFirst,
            stagger: 0,
            read_across: true,
            descriptor_extension_bytes: 0,
            zrwa: None,
        },
        namespaces: Vec::new(),
        copy: None,
        media: MediaConfig {
            read_ns: Nanos::from_us(60),
            program_ns: Nanos::from_us(700),
            erase_ns: Nanos::from_us(3_500),
            transfer_ns: Nanos::from_us(25),
            partial_transfer: false,
            page_register: PageRegister::Overlap,
            planes: PlaneMode::Independent,
            policy: DiePolicy::Fifo,
            arbitration: ChannelArbitration::Arrival,
            suspend: Suspend::NONE,
            details: MediaDetails::NONE,
        },
        front_end: FrontEndConfig {
            cores: 0,
            read_ns: Nanos::ZERO,
            write_ns: Nanos::ZERO,
            append_ns: Nanos::ZERO,
            management_ns: Nanos::ZERO,
            link_bytes_per_s: None,
            max_transfer_bytes: None,
            max_append_bytes: None,
            max_in_flight_bytes: None,
            appends_per_zone: None,
            costs: CommandCosts::default(),
        },
        write_buffer: None,
        slc_cache: None,
        finish: FinishConfig::Fill {
            granularity_bytes: 256 * 1_024,
            pause_ns: Nanos::ZERO,
            yield_ns: None,
            buffered: false,
            takes_core: false,
            extent: FillExtent::Zone,
        },
        reset: ResetConfig {
            erase: EraseWhen::Synchronous,
            extent: EraseExtent::Partial,
            preempt_ns: None,
            bookkeeping: None,
        },
        mapping: MappingConfig::Direct,
        allocation: AllocationConfig::NONE,
        data: DataStore::None,
    };
    assert_eq!(builtin("confznspp").unwrap().config, expected);
}

#[test]
fn what_follows_for_confznspp_is_what_the_paper_says() {
    let derived = builtin("confznspp").unwrap().derived;
    assert_eq!(
        (derived.luns, derived.planes, derived.planes_per_zone),
        (4, 4, 4)
    );
    assert_eq!((derived.zone_groups, derived.physical_zones), (1, 48));
    assert_eq!(
        (derived.zone_blocks_per_plane, derived.zone_blocks),
        (22, 88)
    );
    assert_eq!(derived.zone_pages, 67_584);
    assert_eq!(derived.zone_capacity_bytes, 1_107_296_256);
    assert_eq!(derived.zone_flash_bytes, derived.zone_capacity_bytes);
    assert_eq!(derived.namespace_bytes, 96 << 30);
    assert_eq!(derived.usable_bytes, derived.raw_bytes);
    assert_eq!(derived.over_provisioning_ppm, 0);
    let figures = derived.figures;
    // 4 x 16 KiB in 700 us; published as 87.8 MiB/s with the gaps between device writes.
    assert_eq!(
        figures.write_bytes_per_s.per_s,
        4 * 16_384 * 1_000_000 / 700
    );
    assert_eq!(figures.write_bytes_per_s.limit, Limit::Dies);
    assert_eq!(figures.zone_write_bytes_per_s, figures.write_bytes_per_s);
    // 4 in 60 us; published as 64.8 KIOPS at 64 outstanding.
    assert_eq!(figures.read_iops.per_s, 66_667);
    assert_eq!(figures.bus_bytes_per_s, Some(4 * 16_384 * 40_000));
    assert_eq!(
        (figures.page_read_ns, figures.page_write_ns),
        (Nanos::from_us(85), Nanos::from_us(725))
    );
    // Figure 9b: 77 ms.
    assert_eq!(figures.zone_erase_ns, Nanos::from_ms(77));
    // Figure 9a: 12.0 s; 4,224 device writes of 25 + 4 x 700 us.
    assert_eq!(figures.zone_finish_ns, Nanos::from_us(4_224 * 2_825));
}

#[test]
fn finish_times_at_the_papers_granularities() {
    // Figure 9a: 16 KiB 48.6 to 49.6 s; 256 KiB 12.0 s; up to 4 pages take 725 us.
    for (granularity, us) in [
        ("16KiB", 67_584 * 725),
        ("32KiB", 33_792 * 725),
        ("64KiB", 16_896 * 725),
        ("256KiB", 4_224 * 2_825),
    ] {
        let set = Override::parse(&format!("finish.granularity={granularity}")).unwrap();
        let text = builtin_text("confznspp").unwrap();
        let profile = Profile::parse("x.toml", text, &[set]).unwrap();
        let finish = profile.derived.figures.zone_finish_ns;
        assert_eq!(finish, Nanos::from_us(us), "{granularity}");
    }
}

#[test]
fn small_zones_isolate() {
    let profile = builtin("small-zones").unwrap();
    let derived = &profile.derived;
    assert_eq!((derived.zone_groups, derived.planes_per_zone), (8, 8));
    assert_eq!(
        profile.config.mapping,
        MappingConfig::Lazy {
            physical_zones: 1_152
        }
    );
    assert_eq!(derived.over_provisioning_ppm, 125_000);
    assert_eq!(derived.unused_blocks_per_plane, 0);
    let figures = &derived.figures;
    assert_eq!(
        figures.write_bytes_per_s.per_s / figures.zone_write_bytes_per_s.per_s,
        8
    );
    assert_eq!(figures.read_bytes_per_s.limit, Limit::Link);
}

#[test]
fn qlc_large_takes_its_times_from_the_cell() {
    let profile = builtin("qlc-large").unwrap();
    assert_eq!(profile.cell, Some(Cell::Qlc));
    assert_eq!(profile.config.media.program_ns, Nanos::from_ms(2));
    assert_eq!(profile.config.geometry.blocks_per_plane, 340);
    assert_eq!(profile.config.zones.stripe, StripeOrder::PlaneFirst);
    assert!(profile.derived.usable_bytes > 4_000_000_000_000);
    let row = describe(&profile)
        .into_iter()
        .find(|row| row.key == "program")
        .unwrap();
    assert_eq!(
        (row.value.as_str(), row.note.as_str()),
        ("2ms", "typical of qlc")
    );
}

#[test]
fn a_description_says_where_each_value_is_from() {
    let sets = ["media.read=50us", "finish.pause="].map(|set| Override::parse(set).unwrap());
    let text = builtin_text("confznspp").unwrap();
    let profile = Profile::parse("confznspp.toml", text, &sets).unwrap();
    let rows = describe(&profile);
    let find = |section: &str, key: &str| {
        let row = rows
            .iter()
            .find(|row| row.section == section && row.key == key)
            .unwrap();
        (row.value.clone(), row.note.clone())
    };
    let own = |value: &str, note: &str| (value.to_owned(), note.to_owned());
    let line = text
        .lines()
        .position(|line| line.starts_with("program"))
        .unwrap()
        + 1;
    assert_eq!(
        find("media", "program"),
        own("700us", &format!("line {line}"))
    );
    assert_eq!(find("media", "read"), own("50us", "--set media.read=50us"));
    assert_eq!(find("finish", "pause"), own("0ns", "default"));
    assert_eq!(find("zones", "max_open"), own("unlimited", "default"));
    assert_eq!(find("derived", "blocks of a zone"), own("88", "22 x 4"));
    assert_eq!(
        find("expected", "erasure of a zone"),
        own("77 ms", "all its blocks")
    );
    assert_eq!(
        find("expected", "write bandwidth"),
        own("89.3MiB/s", "limited by dies")
    );
}

#[test]
fn advice_names_what_surprises() {
    let advice = |sets: &[&str]| -> Vec<&'static str> {
        let sets: Vec<_> = sets
            .iter()
            .map(|set| Override::parse(set).unwrap())
            .collect();
        let profile = Profile::parse("x", builtin_text("small-zones").unwrap(), &sets).unwrap();
        let rows = describe(&profile).into_iter();
        rows.filter(|row| row.section == "advice")
            .map(|row| row.key)
            .collect()
    };
    assert!(advice(&[]).is_empty());
    let size = ["zones.size=33MiB", "zones.capacity=32MiB"];
    assert_eq!(advice(&size), ["zones.size"]);
    assert_eq!(advice(&["zones.capacity=31MiB"]), ["zones.capacity"]);
    assert_eq!(advice(&["zones.stripe=channel-first"]), ["zones.stripe"]);
    assert_eq!(
        advice(&["mapping.design=direct"]),
        ["geometry.blocks_per_plane"]
    );
}

#[test]
fn loading_by_name_or_path() {
    let no_file = |_: &str| Err("no such file");
    assert_eq!(
        Profile::load("confznspp", &[], no_file).unwrap(),
        builtin("confznspp").unwrap()
    );
    let read = |path: &str| match path {
        "./mine" => Ok(builtin_text("qlc-large").unwrap().to_owned()),
        _ => Err("no such file"),
    };
    assert_eq!(
        Profile::load("./mine", &[], read).unwrap().config.name,
        "qlc-large"
    );
    for (name, message) in [
        ("mine.toml", "mine.toml: no such file"),
        (
            "confznsp",
            "confznsp: there is no built-in profile of this name; did you mean `confznspp`?",
        ),
        (
            "pm1731a",
            "pm1731a: there is no built-in profile of this name; there are confznspp, \
             cosmos-plus, qlc-buffered, qlc-cached, qlc-large, small-zones, zn540, zn540-2tb; a file needs a slash or .toml \
             in its name",
        ),
    ] {
        assert_eq!(
            Profile::load(name, &[], read).unwrap_err().to_string(),
            message
        );
    }
}

/// What its head says: it differs from `zn540` in the keys marked "differs".
#[test]
fn the_larger_zn540_differs_in_nothing_but_its_marked_keys() {
    let larger = builtin("zn540-2tb").unwrap().config;
    let mut config = builtin("zn540").unwrap().config;
    config.name.clone_from(&larger.name);
    config.geometry.ways = 8;
    config.zones.ways = 4;
    config.zones.count = 1_905;
    config.geometry.blocks_per_plane = larger.geometry.blocks_per_plane;
    config.front_end.read_ns = larger.front_end.read_ns;
    config.front_end.costs.read_per_kib_ns = larger.front_end.costs.read_per_kib_ns;
    config.front_end.link_bytes_per_s = larger.front_end.link_bytes_per_s;
    let drain = larger.write_buffer.unwrap().drain_bytes_per_s;
    config.write_buffer.as_mut().unwrap().drain_bytes_per_s = drain;
    assert_eq!(config, larger);
    let text = builtin_text("zn540-2tb").unwrap();
    assert_eq!(text.matches("# differs: ").count(), 7);
}

/// Every row of a description that is a key, as its path and what is shown of it.
fn shown(profile: &Profile) -> Vec<(String, String)> {
    let rows = describe(profile).into_iter();
    let no_key = ["namespaces", "derived", "expected", "advice"];
    rows.filter(|row| !no_key.contains(&row.section))
        .map(|row| match row.section {
            "" => (row.key.to_owned(), row.value),
            section => (format!("{section}.{}", row.key), row.value),
        })
        .collect()
}

/// One by one after `--set`, and all of them in a file.
#[test]
fn what_is_shown_can_be_stated_and_gives_the_same_drive() {
    for name in builtin_names() {
        let (text, profile) = (builtin_text(name).unwrap(), builtin(name).unwrap());
        let mut sets = Vec::new();
        for (key, value) in shown(&profile) {
            let set = Override::parse(&format!("{key}={value}")).unwrap();
            let again = Profile::parse(name, text, std::slice::from_ref(&set));
            let again = again.unwrap_or_else(|errors| panic!("{name}: {errors}"));
            assert_eq!(again.config, profile.config, "{name}: {key}={value}");
            assert_eq!(shown(&again), shown(&profile), "{name}: {key}={value}");
            sets.push(set);
        }
        let again = Profile::parse(name, "schema = 1\n", &sets);
        let again = again.unwrap_or_else(|errors| panic!("{name}: {errors}"));
        assert_eq!(again.config, profile.config, "{name}");
    }
}

#[test]
fn no_limit_is_stated_by_its_word() {
    let text = builtin_text("zn540").unwrap();
    let profile = |sets: &[&str]| {
        let sets = sets.iter().map(|set| Override::parse(set).unwrap());
        Profile::parse("x.toml", text, &sets.collect::<Vec<_>>())
    };
    let config = profile(&["zones.max_active=unlimited", "zones.max_open=unlimited"]);
    let zones = config.unwrap().config.zones;
    assert_eq!((zones.max_active, zones.max_open), (None, None));
    // Open zones are active.
    let zones = profile(&["zones.max_open=unlimited"]).unwrap().config.zones;
    assert_eq!(zones.max_open, zones.max_active);
    assert!(zones.max_active.is_some());
    let front_end = |set| profile(&[set]).unwrap().config.front_end;
    assert_eq!(
        front_end("front_end.max_transfer=unlimited").max_transfer_bytes,
        None
    );
    assert_eq!(
        front_end("front_end.link=not modelled").link_bytes_per_s,
        None
    );
    let link = text
        .lines()
        .find(|line| line.starts_with("link = "))
        .unwrap();
    let file = text.replace(link, "link = \"not modelled\"");
    let of_file = Profile::parse("x.toml", &file, &[]).unwrap().config;
    assert_eq!(of_file.front_end.link_bytes_per_s, None);
    // The word of another key is none, and a refusal says which word there is.
    let refused = profile(&["front_end.link=unlimited"])
        .unwrap_err()
        .to_string();
    assert!(refused.ends_with("or \"not modelled\""), "{refused}");
}
