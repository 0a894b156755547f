use proptest::prelude::*;

use super::*;

const LEN: usize = 4096;

fn written(number: u64) -> Written {
    Written {
        offset: number * LEN as u64,
        is_append: false,
        number,
        seed: mix(number),
    }
}

fn block(verify: &Verify, what: &Written) -> Vec<u8> {
    let mut bytes = vec![0; LEN];
    verify.fill(&mut bytes, what);
    bytes
}

fn all() -> impl Iterator<Item = Verify> {
    let looks = |method: &Method| *method != Method::Null;
    Method::ALL.into_iter().filter(looks).map(|method| Verify {
        pattern: method
            .is_pattern()
            .then(|| Pattern::parse("0xcafe%o").expect("a pattern")),
        ..Verify::new(method)
    })
}

/// The header that fio 3.33 wrote at offset 0 of a file, with
/// `verify=crc32c verify_pattern=0xabcd bs=4k`, and the same with md5.
#[test]
fn blocks_that_fio_wrote_are_right() {
    let head = |text: &str| -> Vec<u8> {
        let digits = text.split_whitespace();
        digits
            .map(|byte| u8::from_str_radix(byte, 16).expect("a byte"))
            .collect()
    };
    let crc = head(
        "ca ac 05 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 \
         24 4a 00 00 ab 82 e8 35 01 00 00 00 fa 67 4c 4d 90 f9 b5 d0",
    );
    let md5 = head(
        "ca ac 02 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 \
         25 4a 00 00 06 48 bc 15 01 00 00 00 d9 3a a2 64 d7 fd c1 a1 d4 5d 8b 71 \
         10 70 1f d8 5a 2f 67 d1",
    );
    for (method, head) in [(Method::Crc32c, crc), (Method::Md5, md5)] {
        assert_eq!(head.len(), method.overhead_bytes());
        let mut block = [0xab, 0xcd].repeat(LEN / 2);
        block[..head.len()].copy_from_slice(&head);
        let verify = Verify::new(method);
        assert_eq!(verify.check_found(&block, 0, 0), Ok(()));
        assert!(verify.check_found(&block, 4096, 0).is_err());
    }
}

/// What fio 3.33 wrote with `verify=METHOD verify_pattern=0xabcd bs=512`, as far as it is no
/// pattern.
#[test]
fn every_checksum_is_that_of_fio() {
    for (method, head) in [
        (
            Method::Meta,
            "caac01000002000000000000000000000000000000000000000000001ae9f807010000001e98efb3",
        ),
        (
            Method::Crc64,
            "caac0300000200000000000000000000000000000000000000000000600d960701000000185bde98 \
             7e3e09dc1c314ef0",
        ),
        (
            Method::Crc32,
            "caac04000002000000000000000000000000000000000000000000005297340801000000615c8c26 \
             a79a7658",
        ),
        (
            Method::Crc16,
            "caac0700000200000000000000000000000000000000000000000000c20e22080100000081dd88f3 \
             a843",
        ),
        (
            Method::Crc7,
            "caac08000002000000000000000000000000000000000000000000000a77760701000000dd7274f7 \
             54",
        ),
        (
            Method::Xxhash,
            "caac0f00000200000000000000000000000000000000000000000000c8820f08010000000482cf7c \
             c3c9c98f",
        ),
        (
            Method::Sha1,
            "caac1000000200000000000000000000000000000000000000000000ed21430801000000df6957c7 \
             f715861b93095feb3724c6833a8a695dc34835b1",
        ),
        (
            Method::Sha3x224,
            "caac0b00000200000000000000000000000000000000000000000000ea1b810701000000075cf42a \
             128fa67ef722199621fe6b2122ec4bf547aa939082573e38ad3c84d9",
        ),
        (
            Method::Sha3x256,
            "caac0c00000200000000000000000000000000000000000000000000f3bd26070100000076a5c07a \
             8e36958310de7fdc9febe472811108ea40f780a51bcb57bb7bee07b1da567c2d",
        ),
        (
            Method::Sha3x384,
            "caac0d000002000000000000000000000000000000000000000000008cd8b307010000003e3eee24 \
             321a463f1effdbd3195d9538430391cd6be346b1d2565b005be2e22938cb8c5b72427a11f4156eac \
             44c3237c44161632",
        ),
        (
            Method::Sha3x512,
            "caac0e00000200000000000000000000000000000000000000000000d8d3000801000000c735edee \
             806e298ea8353b72019163e526d92e3fd3e7d68596996b48c80e8fbb2b6191da606128facb97ab9d \
             308a7a4d61f3ada8d203e8cd973272ff8aaa4920e6839b7c",
        ),
    ] {
        let digits: Vec<char> = head.split_whitespace().flat_map(str::chars).collect();
        let bytes = digits.chunks(2).map(|pair| {
            let pair: String = pair.iter().collect();
            u8::from_str_radix(&pair, 16).expect("a byte")
        });
        let mut block = [0xab, 0xcd].repeat(256);
        // The pattern begins at the start of the block.
        for (byte, of_head) in block.iter_mut().zip(bytes) {
            *byte = of_head;
        }
        let verify = Verify::new(method);
        assert_eq!(digits.len() / 2, method.overhead_bytes());
        assert_eq!(verify.check_found(&block, 0, 0), Ok(()), "{method:?}");
        block[300] ^= 1;
        let is_summed = method != Method::Meta;
        assert_eq!(verify.check_found(&block, 0, 0).is_err(), is_summed);
    }
}

#[test]
fn patterns_are_those_of_fio() {
    // What fio 3.33 fills the block at offset 0x1000 with.
    for (text, start) in [
        ("0xff", "ffffff"),
        ("0xabc", "0abc0abc"),
        ("0x123456", "123456123456"),
        ("12", "0c0c"),
        ("-12", "f4fffffff4ffffff"),
        ("300", "2c012c01"),
        ("65536", "000001000001"),
        ("0", "0000"),
        ("-256", "00ffffff00ffffff"),
        ("\"abcd\"", "6162636461626364"),
        ("0x1\"ab\"", "016162016162"),
        ("%o", "00100000000000000010"),
        ("0xff%o\"ab\"-12", "ff00100000000000006162f4ffffffff0010"),
    ] {
        let pattern = Pattern::parse(text).expect(text);
        let mut bytes = vec![0; start.len() / 2];
        pattern.fill(&mut bytes, 0x1000);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, start, "{text}");
    }
    for text in [
        "",
        "0x",
        "\"",
        "\"\"",
        "5%x",
        "xyz",
        "4294967295",
        "-",
        "'/etc/passwd'",
    ] {
        assert!(Pattern::parse(text).is_err(), "{text}");
    }
}

#[test]
fn misplaced_stale_torn_and_foreign_blocks_are_told_apart() {
    let verify = Verify::new(Method::Crc32c);
    let what = written(3);
    let says = |bytes: &[u8]| verify.check(bytes, &what).expect_err("it is wrong").what;
    let good = block(&verify, &what);
    assert_eq!(verify.check(&good, &what), Ok(()));
    assert_eq!(
        says(&vec![0; LEN]),
        "no header: expected magic 0xacca, found 0x0000"
    );
    assert_eq!(
        says(&block(&verify, &written(4))),
        "block of another place: expected offset 12288, found 16384"
    );
    let earlier = Written { seed: 7, ..what };
    assert_eq!(
        says(&block(&verify, &earlier)),
        format!(
            "header of another write: expected seed {:#018x}, found 0x0000000000000007",
            what.seed
        )
    );
    // The first half is new and the second is what was there before.
    let mut torn = good.clone();
    torn[LEN / 2..].copy_from_slice(&block(&verify, &earlier)[LEN / 2..]);
    assert!(says(&torn).starts_with("crc32c of the data: expected "));
    let mut header = good.clone();
    header[20] ^= 1;
    assert!(says(&header).starts_with("header is torn: "));
    let other = block(&Verify::new(Method::Md5), &what);
    assert_eq!(
        says(&other),
        "header of another method: expected 5 (crc32c), found 2"
    );
}

#[test]
fn an_append_is_known_by_its_zone() {
    let verify = Verify::new(Method::Sha256);
    let what = Written {
        is_append: true,
        offset: 8 << 20,
        ..written(9)
    };
    let bytes = block(&verify, &what);
    assert_eq!(verify.check(&bytes, &what), Ok(()));
    assert_eq!(
        verify.check_found(&bytes, (8 << 20) + 65_536, 8 << 20),
        Ok(())
    );
    assert!(verify.check_found(&bytes, 65_536, 0).is_err());
}

proptest! {
    /// Whatever byte is changed in whatever way, that is found, with both kinds of
    /// check; and the chunk is named in which it is.
    #[test]
    fn every_flipped_byte_is_found(
        at in 0..LEN,
        flip in 1..=255_u8,
        number in 0..1_000_000_u64,
        interval in prop::option::of(prop::sample::select(vec![512_u32, 1024, 2048])),
    ) {
        for mut verify in all() {
            verify.interval_bytes = interval;
            let what = written(number);
            let mut bytes = block(&verify, &what);
            prop_assert_eq!(verify.check(&bytes, &what), Ok(()));
            prop_assert_eq!(verify.check_found(&bytes, what.offset, 0), Ok(()));
            bytes[at] ^= flip;
            let chunk = interval.map_or(LEN, |bytes| bytes as usize);
            let wrong = verify.check(&bytes, &what).expect_err("a byte is wrong");
            prop_assert_eq!((wrong.skipped, wrong.len), (at / chunk * chunk, chunk));
            // A header without a checksum says nothing of the data, and one of seven bits not
            // of a byte that differs by its polynomial.
            let is_data = at % chunk >= HEADER_BYTES;
            if is_data && matches!(verify.method, Method::Meta | Method::Crc7) {
                continue;
            }
            let wrong = verify.check_found(&bytes, what.offset, 0);
            prop_assert_eq!(wrong.expect_err("too").skipped, at / chunk * chunk);
        }
    }

    /// Texts of all kinds are patterns or are none, without a panic.
    #[test]
    fn any_text_is_a_pattern_or_none(text in "[-0-9a-fx%o\"'\\PC]{0,24}") {
        if let Ok(pattern) = Pattern::parse(&text) {
            let mut bytes = [0; 100];
            pattern.fill(&mut bytes, 4096);
        }
    }
}
