use super::*;
use proptest::prelude::*;

const SLOTS: Slots = Slots { count: 2, octets: 0x1000 };

fn entry(name: &str, offset: u64, length_octets: u64) -> Entry {
    Entry { name: name.to_owned(), region: 0, offset, length_octets }
}

fn manifest(buffers: Vec<Entry>) -> Result<Manifest, ManifestError> {
    Manifest::new(7, 3, SLOTS, DigestKind::Crc32, buffers)
}

/// D170: the octets of docs/applications.md, by hand.
#[test]
fn messages_have_the_documented_octets() {
    let begin: Vec<u8> = [
        &b"SRVB"[..],
        &[1, 2],
        &[0, 2],
        &[0, 0, 0, 0, 0, 0, 0, 7],
        &[0, 0, 0, 0, 0, 0, 0, 3],
        &[0, 0, 0, 0, 0, 0, 0x10, 0],
        &[0, 0, 0, 2],
        &[0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 5],
        &[0, 1],
        b"a",
        &[0, 0, 0, 0, 0, 0, 0, 0x40],
        &[0, 0, 0, 0, 0, 0, 0x0F, 0xC0],
        &[0, 2],
        "é".as_bytes(),
    ]
    .concat();
    let expected = manifest(vec![entry("a", 0, 5), entry("é", 0x40, 0xFC0)]).expect("it fits");
    assert_eq!(expected.emit(), begin);
    assert_eq!(Message::parse(&begin), Ok(Message::Begin(expected.clone())));
    assert_eq!((expected.slot(), expected.slots().offset_of(1)), (1, 0x1000));

    let end: Vec<u8> = [
        &b"SRVE"[..],
        &[1, 2, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 7],
        &[0, 0, 0, 2],
        &[0xCB, 0xF4, 0x39, 0x26],
        &[0, 0, 0, 0],
    ]
    .concat();
    let digest = |octets: [u8; 4]| Digest::from_octets(DigestKind::Crc32, &octets).expect("four octets");
    let digests = vec![digest([0xCB, 0xF4, 0x39, 0x26]), digest([0; 4])];
    let expected = End { version: 7, digest: DigestKind::Crc32, digests };
    assert_eq!(expected.emit(), end);
    assert_eq!(Message::parse(&end), Ok(Message::End(expected)));
}

/// D192: the octets of docs/applications.md, by hand.
#[test]
fn a_version_in_several_regions_has_a_form_of_its_own() {
    let begin: Vec<u8> = [
        &b"SRVB"[..],
        &[2, 2],
        &[0, 2],
        &[0, 0, 0, 0, 0, 0, 0, 7],
        &[0, 0, 0, 0, 0, 0, 0, 3],
        &[0, 0, 0, 0, 0, 0, 0x10, 0],
        &[0, 3],
        &[0, 0, 0, 0, 0, 0, 0, 0x40],
        &[0, 0, 0, 0, 0, 0, 0, 0x80],
        &[0, 0, 0, 2],
        &[2],
        &[0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 0x80],
        &[0, 1],
        b"a",
        &[0],
        &[0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 9],
        &[0, 1],
        b"b",
    ]
    .concat();
    let slots = SlotRegions::new(SLOTS, vec![0x40, 0x80]);
    let of = |slots: &SlotRegions, buffers| Manifest::new(7, 3, slots.clone(), DigestKind::Crc32, buffers);
    let buffers = vec![Entry { region: 2, ..entry("a", 0, 0x80) }, entry("b", 0, 9)];
    let expected = of(&slots, buffers).expect("each fits its own slot");
    assert_eq!(expected.emit(), begin);
    assert_eq!(Message::parse(&begin), Ok(Message::Begin(expected.clone())));
    assert_eq!((expected.place(0, 1), expected.place(1, 1), expected.place(2, 1)), (0x1001, 0x41, 0x81));

    let refused = |buffers| of(&slots, buffers).expect_err("refused");
    let beyond = ManifestError::BeyondSlot { index: 0, slot_octets: 0x40 };
    assert_eq!(refused(vec![Entry { region: 1, ..entry("a", 0, 0x41) }]), beyond);
    assert_eq!(refused(vec![Entry { region: 3, ..entry("a", 0, 0) }]), ManifestError::Region { index: 0, region: 3 });
    let again = [entry("a", 0, 9), Entry { region: 1, ..entry("b", 0, 9) }, entry("c", 8, 1)];
    assert_eq!(refused(again.to_vec()), ManifestError::Order(2));
    let most = SlotRegions::new(SLOTS, vec![1; 16]);
    assert_eq!(of(&most, Vec::new()), Err(ManifestError::RegionCount(17)));
    assert_eq!(of(&SlotRegions::new(SLOTS, vec![0]), Vec::new()), Err(ManifestError::SlotOctets(0)));
    let mut one = begin.clone();
    one[33] = 1;
    assert_eq!(Message::parse(&one), Err(ManifestError::RegionCount(1)));
    assert_eq!(Message::parse(&[&b"SRVE"[..], &begin[4..]].concat()), Err(ManifestError::Form(2)));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let refused = |buffers| manifest(buffers).expect_err("refused");
    let beyond = |index| ManifestError::BeyondSlot { index, slot_octets: 0x1000 };
    assert_eq!(refused(vec![entry("a", 0, 0x1001)]), beyond(0));
    assert_eq!(refused(vec![entry("a", 0, 1), entry("b", 2, u64::MAX)]), beyond(1), "no overflow");
    assert_eq!(refused(vec![entry("a", 0, 9), entry("b", 8, 1)]), ManifestError::Order(1));
    assert_eq!(refused(vec![entry("a", 0, 1), entry("a", 8, 1)]), ManifestError::SameName(1));
    assert_eq!(refused(vec![entry("", 0, 1)]), ManifestError::NameLength { index: 0, octets: 0 });
    let long = "n".repeat(MAX_NAME_OCTETS + 1);
    assert_eq!(refused(vec![entry(&long, 0, 1)]), ManifestError::NameLength { index: 0, octets: 1025 });
    assert_eq!(refused(vec![entry("a\0", 0, 1)]), ManifestError::Name(0));
    let many = |count: usize| (0..count).map(|number| entry(&number.to_string(), 0, 0)).collect::<Vec<_>>();
    assert_eq!(refused(many(MAX_BUFFERS + 1)), ManifestError::TooManyBuffers(MAX_BUFFERS + 1));
    assert!(manifest(many(MAX_BUFFERS)).is_ok());
    let long_names: Vec<Entry> = (0..3000).map(|number| entry(&format!("{number:01024}"), 0, 0)).collect();
    assert_eq!(refused(long_names), ManifestError::TooLong(36 + 3000 * (18 + 1024)));
    let of = |count, octets| Manifest::new(1, 0, Slots { count, octets }, DigestKind::Sha256, Vec::new());
    assert_eq!(of(0, 1), Err(ManifestError::SlotCount(0)));
    assert_eq!(of(MAX_SLOTS + 1, 1), Err(ManifestError::SlotCount(MAX_SLOTS + 1)));
    assert_eq!(of(2, 0), Err(ManifestError::SlotOctets(0)));
    assert_eq!(of(2, u64::MAX), Err(ManifestError::SlotOctets(u64::MAX)), "the region would overflow");
    assert!(of(1, 1).is_ok(), "a version without buffers");
}

#[test]
fn malformed_messages_are_refused_by_name() {
    let good = manifest(vec![entry("abc", 0, 5)]).expect("it fits").emit();
    let changed = |place: usize, octet: u8| {
        let mut octets = good.clone();
        octets[place] = octet;
        Message::parse(&octets).expect_err("refused")
    };
    assert_eq!(changed(0, b'X'), ManifestError::Magic);
    assert_eq!(changed(4, 3), ManifestError::Form(3));
    assert_eq!(changed(4, 2), ManifestError::RegionCount(0), "form 2 has the number of regions here");
    assert_eq!(changed(5, 0), ManifestError::Digest(0));
    assert_eq!(changed(7, 0), ManifestError::SlotCount(0));
    assert_eq!(changed(32, 1), ManifestError::TooManyBuffers(0x0100_0001));
    assert_eq!(changed(35, 2), ManifestError::Length { found: 57, needed: 36 + 2 * 18 });
    assert_eq!(changed(53, 4), ManifestError::Length { found: 57, needed: 58 });
    assert_eq!(changed(53, 2), ManifestError::Length { found: 57, needed: 56 }, "an octet too many");
    assert_eq!(changed(55, 0xFF), ManifestError::Name(0));
    for length in 0..good.len() {
        let is_length = matches!(Message::parse(&good[..length]), Err(ManifestError::Length { .. }));
        assert!(is_length, "{length} octets");
    }
    let long = vec![b'S'; MAX_MANIFEST_OCTETS + 1];
    assert_eq!(Message::parse(&long), Err(ManifestError::TooLong(MAX_MANIFEST_OCTETS + 1)));
}

fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let buffers = prop::collection::vec(("[a-zé]{0,9}", 0..4_u8, 0..0x2000_u64, 0..0x900_u64), 0..6);
    let more_octets = prop::collection::vec(0..0x4000_u64, 0..3);
    let begin = (any::<u64>(), any::<u64>(), 0..4_u16, 0..0x4000_u64, more_octets, buffers).prop_map(
        |(version, sequence, slots, slot_octets, more_octets, buffers)| {
            let of = |(name, region, offset, length): (String, u8, u64, u64)| Entry {
                region,
                ..entry(&name, offset, length)
            };
            let buffers = buffers.into_iter().map(of).collect();
            let slots = SlotRegions::new(Slots { count: slots, octets: slot_octets }, more_octets);
            Manifest { version, sequence, slots, digest: DigestKind::Sha256, buffers }.emit()
        },
    );
    let end = (any::<u64>(), 0..6_usize).prop_map(|(version, count)| {
        let digest = Digest::from_octets(DigestKind::Crc32, &[1, 2, 3, 4]).expect("four octets");
        End { version, digest: DigestKind::Crc32, digests: vec![digest; count] }.emit()
    });
    prop_oneof![begin, end, prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    /// Whatever the octets: no panic, and what is accepted keeps every limit, by arithmetic of its own.
    #[test]
    fn no_octets_make_it_panic_and_what_it_accepts_fits(
        mut octets in any_message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        for (place, octet) in changes {
            if !octets.is_empty() {
                let place = place.index(octets.len());
                octets[place] = octet;
            }
        }
        if let Some(cut) = cut {
            octets.truncate(cut.index(octets.len() + 1));
        }
        match Message::parse(&octets) {
            Ok(Message::Begin(manifest)) => {
                prop_assert_eq!(manifest.emit(), octets);
                let first = manifest.slots().octets;
                let slots: Vec<u64> = [first].into_iter().chain(manifest.regions().more_octets().iter().copied()).collect();
                let fits = |slot: &u64| u128::from(*slot) * u128::from(manifest.slots().count) <= u128::from(u64::MAX);
                prop_assert!(slots.iter().all(fits) && slots.len() <= 16);
                let mut taken = vec![0_u128; slots.len()];
                for buffer in manifest.buffers() {
                    let taken = &mut taken[usize::from(buffer.region)];
                    prop_assert!(u128::from(buffer.offset) >= *taken);
                    *taken = u128::from(buffer.offset) + u128::from(buffer.length_octets);
                    prop_assert!(*taken <= u128::from(slots[usize::from(buffer.region)]) && !buffer.name.is_empty());
                }
            }
            // Octets 6 and 7 are reserved, and ignored.
            Ok(Message::End(end)) => prop_assert_eq!(&end.emit()[8..], &octets[8..]),
            Err(_) => {}
        }
    }
}
