//! Conventional namespaces in profiles.

use super::*;

#[test]
fn a_profile_states_them() {
    let text = to_toml(&config());
    assert!(
        text.contains("kind = \"conventional\"\nzones = 7\nspare_zones = 3\n"),
        "{text}"
    );
    let profile = Profile::parse("p.toml", &text, &[]).expect("it is valid");
    assert_eq!(profile.config, config());
    for (namespace, reason) in [
        (conventional(7, 2), "spare_zones = 2"),
        (conventional(7, 7), "all spare"),
        (
            NamespaceConfig {
                max_open: Some(1),
                ..conventional(7, 3)
            },
            "no zones",
        ),
    ] {
        let mut config = config();
        config.namespaces[1] = namespace;
        let broken = profile::check(&config).expect_err("it is wrong");
        assert!(broken[0].to_string().contains(reason), "{broken:?}");
    }
    let mut alone = config();
    alone.namespaces = vec![conventional(9, 3)];
    profile::check(&alone).expect("a drive may be conventional");
}
