//! Reclaim unit handles in profiles.

use super::*;
use zonelab_ssd::profile::{self, Profile, to_toml};

#[test]
fn a_profile_states_them() {
    let config = placed(3, Isolation::Persistently);
    let text = to_toml(&config);
    let stated = "spare_zones = 7\nreclaim_unit_handles = 3\nisolation = \"persistently\"\n";
    assert!(text.contains(stated), "{text}");
    let profile = Profile::parse("p.toml", &text, &[]).expect("it is valid");
    assert_eq!(profile.config, config);
    let without = to_toml(&placed(3, Isolation::Initially));
    assert!(without.contains("reclaim_unit_handles = 3\n"), "{without}");
    assert!(
        !without.contains("isolation"),
        "it is the default: {without}"
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let of = |namespaces: Vec<NamespaceConfig>| {
        let mut config = placed(2, Isolation::Initially);
        config.zones.count = namespaces.iter().map(|of| of.zones).sum();
        config.geometry.blocks_per_plane = 4_096;
        config.namespaces = namespaces;
        let broken = profile::check(&config).expect_err("it is wrong");
        broken[0].to_string()
    };
    let initially = |count| Some((count, Isolation::Initially));
    let persistently = |count| Some((count, Isolation::Persistently));
    let zoned = NamespaceConfig {
        kind: NamespaceKind::Zoned,
        ..namespace(4, 0, None)
    };
    for (namespaces, reason) in [
        (
            vec![namespace(9, 3, initially(2))],
            "what reclaim_unit_handles = 2 write; at least 4",
        ),
        (
            vec![namespace(9, 4, persistently(2))],
            "what reclaim_unit_handles = 2 write; at least 5",
        ),
        (
            vec![namespace(9, 3, initially(0))],
            "reclaim_unit_handles = 0 is out of range; at least 1, at most 128",
        ),
        (
            vec![namespace(400, 300, initially(129))],
            "at least 1, at most 128",
        ),
        (
            vec![namespace(140, 130, initially(128)), namespace(9, 3, None)],
            "reclaim_unit_handles of all of them are 129; at most 128",
        ),
        (
            vec![namespace(9, 4, initially(2)), zoned],
            "namespace 2 is zoned, and another has reclaim_unit_handles",
        ),
    ] {
        let said = of(namespaces);
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn the_example_has_what_it_says() {
    let example = include_str!("../../../../../docs/examples/fdp.toml");
    let profile = Profile::parse("fdp.toml", example, &[]).expect("it is valid");
    assert!(profile.config.has_handles());
    let reclaim_units = profile.config.namespaces()[0].size_lbas(&profile.config.zones)
        / profile.config.zones.capacity_lbas;
    assert_eq!(reclaim_units, 55);
    let rig = Rig::new(&profile.config);
    assert_eq!(rig.drive.placement().handles().len(), 4);
}
