//! Classification of IP addresses: protects the operator's own network from requests that others
//! choose.
//!
//! Follows the IANA special-purpose registries (RFC 6890 and its successors). An address counts as
//! public only if it is known to be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Class of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Public address on the internet.
    Public,
    /// Address of this machine, or of the operator's network: only for parties that the operator
    /// trusts.
    Private,
    /// Address that nothing may be sent to: link-local, multicast, reserved, or a cloud's metadata
    /// service.
    Never,
}

/// Metadata services of clouds, which reveal a machine's secrets, at addresses that are otherwise
/// public or private: Azure, Alibaba, and the one of Amazon's that is not link-local.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Classifies `address`.
pub fn reach(address: IpAddr) -> Reach {
    if METADATA.contains(&address) {
        return Reach::Never;
    }
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

/// Host in the form in which hosts are compared: lower case, without the final dot of a fully
/// qualified name and the brackets of IPv6, and an IPv4-mapped address as IPv4.
pub fn normal_host(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return address.to_canonical().to_string();
    }
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

/// Loopback address that a host means without a lookup: an address itself, or `localhost` and the
/// names below it, which every resolver answers with loopback (RFC 6761, section 6.3).
pub fn loopback_of(host: &str) -> Option<IpAddr> {
    let host = normal_host(host);
    if host == "localhost" || host.ends_with(".localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    host.parse::<IpAddr>().ok().filter(IpAddr::is_loopback)
}

fn v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            Reach::Private
        }
        // This network, link-local, protocol assignments, documentation, 6to4 relays, benchmarks,
        // multicast, reserved.
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => Reach::Never,
        _ => Reach::Public,
    }
}

fn v6(address: Ipv6Addr) -> Reach {
    let embedded = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high, low].map(u16::to_be_bytes);
        reach(Ipv4Addr::new(a, b, c, d).into())
    };
    // A private address behind a translator belongs to another network.
    let translated = |reach| if reach == Reach::Public { Reach::Public } else { Reach::Never };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] | [0xfc00..=0xfdff, ..] => Reach::Private,
        // IPv4-mapped address of the same host.
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        // NAT64 (RFC 6052) and 6to4 (RFC 3056).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            translated(embedded(high, low))
        }
        // Protocol assignments with Teredo, documentation twice, and everything outside global
        // unicast.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reach::Never,
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn host_spellings_have_one_normal_form() {
        for host in
            ["localhost", "LocalHost", "localhost.", "LOCALHOST.", "a.localhost", "127.0.0.1"]
        {
            assert!(loopback_of(host).is_some(), "{host}");
        }
        for host in ["127.8.9.1", "::1", "[::1]", "[::ffff:127.0.0.1]", "::ffff:7f00:1"] {
            assert!(loopback_of(host).is_some(), "{host}");
        }
        for host in ["", ".", "localhost.example", "notlocalhost", "8.8.8.8", "::2", "localhost.."]
        {
            assert_eq!(loopback_of(host), None, "{host}");
        }
        assert_eq!(normal_host("[::FFFF:8.8.8.8]"), "8.8.8.8");
        assert_eq!(normal_host("Example.COM."), "example.com");
    }

    #[test]
    fn address_table() {
        let cases = [
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.0",
            "192.0.1.1",
            "127.0.0.1",
            "127.255.255.254",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "169.254.169.254",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "2606:4700::1111",
            "2001:4860::8888",
            "3ffe::1",
            "::1",
            "fd12::1",
            "fc00::1",
            "::",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "100::1",
            "5f00::1",
            "fd00:ec2::254",
            "::127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::8.8.8.8",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::8.8.8.8",
            "2002:808:808::1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
        ];
        let told = cases.map(|text| format!("{text} {:?}", reach(text.parse().unwrap())));
        insta::assert_snapshot!(told.join("\n"), @"
        8.8.8.8 Public
        172.15.0.1 Public
        172.32.0.1 Public
        100.63.255.255 Public
        100.128.0.0 Public
        192.0.1.1 Public
        127.0.0.1 Private
        127.255.255.254 Private
        10.1.2.3 Private
        172.16.0.1 Private
        192.168.1.1 Private
        100.64.0.1 Private
        0.0.0.0 Never
        169.254.169.254 Never
        192.0.0.192 Never
        192.0.2.1 Never
        192.88.99.1 Never
        198.18.0.1 Never
        198.51.100.1 Never
        203.0.113.1 Never
        224.0.0.1 Never
        240.0.0.1 Never
        255.255.255.255 Never
        100.100.100.200 Never
        168.63.129.16 Never
        2606:4700::1111 Public
        2001:4860::8888 Public
        3ffe::1 Public
        ::1 Private
        fd12::1 Private
        fc00::1 Private
        :: Never
        fe80::1 Never
        fec0::1 Never
        ff02::1 Never
        2001:db8::1 Never
        2001::1 Never
        3fff::1 Never
        100::1 Never
        5f00::1 Never
        fd00:ec2::254 Never
        ::127.0.0.1 Never
        ::ffff:8.8.8.8 Public
        ::ffff:127.0.0.1 Private
        ::ffff:10.0.0.1 Private
        ::ffff:169.254.169.254 Never
        64:ff9b::8.8.8.8 Public
        64:ff9b::10.0.0.1 Never
        64:ff9b::a9fe:a9fe Never
        64:ff9b:1::8.8.8.8 Never
        2002:808:808::1 Public
        2002:7f00:1::1 Never
        2002:a9fe:a9fe::1 Never
        ");
    }

    proptest! {
        #[test]
        fn mapped_address_has_class_of_ipv4(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(reach(address.to_ipv6_mapped().into()), reach(address.into()));
        }

        /// Compares with the standard library's list of special addresses, as far as it has one.
        #[test]
        fn special_addresses_are_never_public(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            let special = address.is_unique_local() || address.is_unicast_link_local() || address.is_multicast();
            prop_assert!(!special || reach(address.into()) != Reach::Public);
        }
    }
}
