//! Where each field lies, against the numbers that the specifications print:
//! NVMe base 2.0 and NVM command set 1.0 (Identify), ZNS command set 1.1.

use core::mem::offset_of;
use zonelab_nvme::identify::{
    ControllerList, IdentifyController, IdentifyControllerNvm, IdentifyControllerZns,
    IdentifyNamespace, IdentifyNamespaceIndependent, IdentifyNamespaceNvm, IdentifyNamespaceZns,
    LbaFormatExtension, PowerState,
};
use zonelab_nvme::zns::{ChangedZoneList, ReportHeader, ZoneDescriptor};

/// Asserts the offset of each field, as the specification prints it.
macro_rules! assert_offsets {
    ($type:ty { $($field:ident: $offset:literal),* $(,)? }) => {
        $( assert_eq!(offset_of!($type, $field), $offset, stringify!($field)); )*
    };
}

#[test]
fn identify_controller_offsets() {
    // The upper part: capabilities and admin command set attributes.
    assert_offsets!(IdentifyController {
        vid: 0,
        ssvid: 2,
        sn: 4,
        mn: 24,
        fr: 64,
        rab: 72,
        ieee: 73,
        cmic: 76,
        mdts: 77,
        cntlid: 78,
        ver: 80,
        rtd3r: 84,
        rtd3e: 88,
        oaes: 92,
        ctratt: 96,
        rrls: 100,
        cntrltype: 111,
        fguid: 112,
        crdt1: 128,
        crdt2: 130,
        crdt3: 132,
        nvmsr: 253,
        vwci: 254,
        mec: 255,
        oacs: 256,
        acl_z: 258,
        aerl_z: 259,
        frmw: 260,
        lpa: 261,
        elpe_z: 262,
        npss_z: 263,
        avscc: 264,
        apsta: 265,
        wctemp: 266,
        cctemp: 268,
        mtfa: 270,
        hmpre: 272,
        hmmin: 276,
        tnvmcap: 280,
        unvmcap: 296,
        rpmbs: 312,
        edstt: 316,
        dsto: 318,
        fwug: 319,
        kas: 320,
        hctma: 322,
        mntmt: 324,
        mxtmt: 326,
        sanicap: 328,
        hmminds: 332,
        hmmaxd: 336,
        nsetidmax: 338,
        endgidmax: 340,
        anatt: 342,
        anacap: 343,
        anagrpmax: 344,
        nanagrpid: 348,
        pels: 352,
        domainid: 356,
        megcap: 368,
    });
    // The lower part: NVM command set attributes, fabrics, power states.
    assert_offsets!(IdentifyController {
        sqes: 512,
        cqes: 513,
        maxcmd: 514,
        nn: 516,
        oncs: 520,
        fuses: 522,
        fna: 524,
        vwc: 525,
        awun_z: 526,
        awupf_z: 528,
        icsvscc: 530,
        nwpc: 531,
        acwu_z: 532,
        ocfs: 534,
        sgls: 536,
        mnan: 540,
        maxdna: 544,
        maxcna: 560,
        subnqn: 768,
        ioccsz: 1792,
        iorcsz: 1796,
        icdoff: 1800,
        fcatt: 1802,
        msdbd: 1803,
        ofcs: 1804,
        dctype: 1806,
        psd: 2048,
        vs: 3072,
    });
}

#[test]
fn power_state_offsets() {
    assert_offsets!(PowerState {
        mp: 0,
        flags: 3,
        enlat: 4,
        exlat: 8,
        rrt: 12,
        rrl: 13,
        rwt: 14,
        rwl: 15,
        idlp: 16,
        ips: 18,
        actp: 20,
        apws: 22,
    });
}

#[test]
fn identify_namespace_offsets() {
    assert_offsets!(IdentifyNamespace {
        nsze: 0,
        ncap: 8,
        nuse: 16,
        nsfeat: 24,
        nlbaf_z: 25,
        flbas: 26,
        mc: 27,
        dpc: 28,
        dps: 29,
        nmic: 30,
        rescap: 31,
        fpi: 32,
        dlfeat: 33,
        nawun_z: 34,
        nawupf_z: 36,
        nacwu_z: 38,
        nabsn_z: 40,
        nabo: 42,
        nabspf_z: 44,
        noiob: 46,
        nvmcap: 48,
        npwg_z: 64,
        npwa_z: 66,
        npdg_z: 68,
        npda_z: 70,
        nows_z: 72,
        mssrl: 74,
        mcl: 76,
        msrc_z: 80,
        nulbaf: 82,
        anagrpid: 92,
        nsattr: 99,
        nvmsetid: 100,
        endgid: 102,
        nguid: 104,
        eui64: 120,
        lbaf: 128,
        vs: 384,
    });
}

#[test]
fn zoned_identify_offsets() {
    assert_offsets!(IdentifyNamespaceZns {
        zoc: 0,
        ozcs: 2,
        mar_z: 4,
        mor_z: 8,
        rrl: 12,
        frl: 16,
        rrl1: 20,
        rrl2: 24,
        rrl3: 28,
        frl1: 32,
        frl2: 36,
        frl3: 40,
        numzrwa_z: 44,
        zrwafg: 48,
        zrwasz: 50,
        zrwacap: 52,
        lbafe: 2816,
        vs: 3840,
    });
    assert_offsets!(LbaFormatExtension { zsze: 0, zdes: 8 });
    assert_offsets!(IdentifyControllerZns { zasl: 0 });
}

#[test]
fn offsets_of_other_command_sets() {
    assert_offsets!(IdentifyNamespaceNvm {
        lbstm: 0,
        pic: 8,
        elbaf: 12
    });
    assert_offsets!(IdentifyControllerNvm {
        vsl: 0,
        wzsl: 1,
        wusl: 2,
        dmrl: 3,
        dmrsl: 4,
        dmsl: 8
    });
    assert_offsets!(IdentifyNamespaceIndependent {
        nsfeat: 0,
        nmic: 1,
        rescap: 2,
        fpi: 3,
        anagrpid: 4,
        nsattr: 8,
        nvmsetid: 10,
        endgid: 12,
        nstat: 14,
    });
    assert_offsets!(ControllerList {
        numids: 0,
        cntlid: 2
    });
}

#[test]
fn report_and_log_offsets() {
    assert_offsets!(ReportHeader { nr_zones: 0 });
    assert_offsets!(ZoneDescriptor {
        zt: 0,
        zs: 1,
        za: 2,
        zai: 3,
        zcap: 8,
        zslba: 16,
        wp: 24,
    });
    assert_offsets!(ChangedZoneList { nrzid: 0, zid: 8 });
}
