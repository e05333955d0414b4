//! Sources: tests of VPP and of Linux that cases are written after, from the RFCs and without code of them.
//! `docs/conform.md` has the same table, with the tests that have no case, and why.

/// A test of another implementation.
struct Source {
    name: &'static str,
    /// Names of profiles, and of cases in each.
    cases: &'static [(&'static str, &'static [&'static str])],
}

const SOURCES: [Source; 30] = [
    Source {
        name: "VPP test_srv6.py: test_SRv6_T_Encaps",
        cases: &[("rfc8986", &["h-encaps-three-segments", "h-encaps-packet-with-srh"])],
    },
    Source {
        name: "VPP test_srv6.py: test_SRv6_T_Encaps_with_v6src",
        cases: &[("rfc8986", &["h-encaps-three-segments"])],
    },
    Source { name: "VPP test_srv6.py: test_SRv6_T_Encaps_IPv4", cases: &[("ipv4", &["h-encaps-ipv4-three-segments"])] },
    Source { name: "VPP test_srv6.py: test_SRv6_T_Encaps_L2", cases: FRAMES_OF_VPP },
    Source {
        name: "VPP test_srv6.py: test_SRv6_End",
        cases: &[("usid", &["end", "end-last-segment", "end-upper-layer"])],
    },
    Source { name: "VPP test_srv6.py: test_SRv6_End_with_PSP", cases: &[("usid", &["end-psp", "end-psp-too-early"])] },
    Source {
        name: "VPP test_srv6.py: test_srv6_malformed_srh_payload_underflow",
        cases: &[("usid", &["end-psp", "end-psp-truncated"])],
    },
    Source { name: "VPP test_srv6.py: test_SRv6_End_X", cases: &[("usid", &["end-x", "end-x-last-segment"])] },
    Source {
        name: "VPP test_srv6.py: test_SRv6_End_X_with_PSP",
        cases: &[("usid", &["end-x-psp", "end-x-psp-too-early"])],
    },
    Source { name: "VPP test_srv6.py: test_SRv6_End_DX6", cases: &[("rfc8986", &["end-dx6", "end-dx6-with-srh"])] },
    Source {
        name: "VPP test_srv6.py: test_SRv6_End_DT6",
        cases: &[("usid", &["end-dt6", "end-dt6-with-srh", "end-dt6-vpn"])],
    },
    Source { name: "VPP test_srv6.py: test_SRv6_End_DX4", cases: &[("ipv4", &["end-dx4", "end-dx4-with-srh"])] },
    Source { name: "VPP test_srv6.py: test_SRv6_End_DT4", cases: &[("ipv4", &["end-dt4", "end-dt4-with-srh"])] },
    Source { name: "VPP test_srv6.py: test_SRv6_End_DX2", cases: INNER_FRAMES_OF_VPP },
    Source { name: "VPP test_srv6_l2_subint.py: test_SRv6_T_Encaps_L2_HW", cases: FRAMES_OF_VPP },
    Source { name: "VPP test_srv6_l2_subint.py: test_SRv6_End_DX2_HW", cases: INNER_FRAMES_OF_VPP },
    Source { name: "VPP test_srv6_un.py: test_srv6_usid_srh", cases: &[("usid", &["un-shift-beside-srh"])] },
    Source { name: "VPP test_srv6_un.py: test_srv6_usid", cases: &[("usid", &["un-shift-of-six"])] },
    Source { name: "VPP test_srv6_un.py: test_srv6_usid_flex_srh", cases: &[("usid", &["un-shift-beside-srh"])] },
    Source { name: "VPP test_srv6_un.py: test_srv6_usid_flex", cases: &[("usid", &["un-shift-of-six"])] },
    Source {
        name: "Linux selftests: srv6_hencap_red_l3vpn_test.sh",
        cases: &[
            ("usid", &["end", "end-last-segment", "h-encaps-red-one-segment", "h-encaps-red-three-segments"]),
            ("ipv4", &["end-dt46-ipv4", "end-dt46-ipv6", "h-encaps-red-ipv4"]),
        ],
    },
    Source {
        name: "Linux selftests: srv6_hl2encap_red_l2vpn_test.sh",
        cases: &[("rfc8986", &["h-encaps-l2-red", "end-dx2", "end-dx2-with-srh"])],
    },
    Source {
        name: "Linux selftests: srv6_end_flavors_test.sh",
        cases: &[("usid", &["end", "end-psp", "end-psp-too-early"])],
    },
    Source {
        name: "Linux selftests: srv6_end_next_csid_l3vpn_test.sh",
        cases: &[("usid", &["un-shift", "un-next-container", "un-last-container", "h-encaps-red-one-segment"])],
    },
    Source {
        name: "Linux selftests: srv6_end_x_next_csid_l3vpn_test.sh",
        cases: &[("usid", &["ua-shift", "ua-last-container"])],
    },
    Source {
        name: "Linux selftests: srv6_end_dt46_l3vpn_test.sh",
        cases: &[
            ("rfc8986", &["h-encaps-one-segment"]),
            ("ipv4", &["h-encaps-ipv4-one-segment", "end-dt46-ipv4", "end-dt46-ipv6"]),
        ],
    },
    Source {
        name: "Linux selftests: srv6_end_dt4_l3vpn_test.sh",
        cases: &[("ipv4", &["h-encaps-ipv4-one-segment", "end-dt4-with-srh"])],
    },
    Source {
        name: "Linux selftests: srv6_end_dt6_l3vpn_test.sh",
        cases: &[
            ("usid", &["end-dt6-with-srh", "end-dt6-vpn", "end-dt6-other-vpn"]),
            ("rfc8986", &["h-encaps-one-segment"]),
        ],
    },
    Source {
        name: "Linux selftests: srv6_end_dx4_netfilter_test.sh",
        cases: &[("ipv4", &["h-encaps-ipv4-one-segment", "end-dx4-with-srh"])],
    },
    Source {
        name: "Linux selftests: srv6_end_dx6_netfilter_test.sh",
        cases: &[("rfc8986", &["h-encaps-one-segment", "end-dx6-with-srh"])],
    },
];

/// Frames with another MAC address than the router's, of no IP protocol, and with a VLAN tag.
const FRAMES_OF_VPP: &[(&str, &[&str])] =
    &[("rfc8986", &["h-encaps-l2-red-other-mac", "h-encaps-l2-red-arp", "h-encaps-l2-red-tagged"])];

/// With an SRH and without one. The tester's sockets do not see the VLAN tag of a frame, which VPP's test has as well.
const INNER_FRAMES_OF_VPP: &[(&str, &[&str])] = &[("rfc8986", &["end-dx2", "end-dx2-with-srh"])];

/// The sources of a case of a profile.
pub(crate) fn of(profile: &str, case: &str) -> Vec<&'static str> {
    let has_it = |source: &&Source| source.cases.iter().any(|(name, cases)| *name == profile && cases.contains(&case));
    SOURCES.iter().filter(has_it).map(|source| source.name).collect()
}
