//! `[[route]]` with its paths, and `[[multicast_route]]`.

use super::{
    AnyPrefix, HostAddress, Integer, Located, MulticastAddress, PortName, Ports, U16, U32, ZonedAddress, addresses,
    integer, is_default, spanned, unless,
};
use serde::{Deserialize, Serialize};
use srdma_dataplane::headend::{HeadendPath, Probing};
use srdma_dataplane::{EncapsMode, MulticastRoute, RouteAction, TableId};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSection {
    pub prefix: Located<AnyPrefix>,
    pub via: Option<Spanned<Vec<Located<ZonedAddress>>>>,
    pub table: Option<Located<U16>>,
    pub encaps: Option<Spanned<EncapsSection>>,
    pub blackhole: Option<Spanned<bool>>,
    pub path: Option<Spanned<Vec<Spanned<PathSection>>>>,
    pub nic: Option<Spanned<String>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncapsSection {
    pub segments: Option<Vec<Located<HostAddress>>>,
    pub policy: Option<Located<U32>>,
    #[serde(default = "reduced", with = "EncapsName")]
    pub mode: EncapsMode,
    pub hmac_key_id: Option<Located<U32>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "EncapsMode")]
enum EncapsName {
    #[serde(rename = "H.Encaps")]
    Encaps,
    #[serde(rename = "H.Encaps.Red")]
    Reduced,
}

fn reduced() -> EncapsMode {
    EncapsMode::Reduced
}

impl RouteSection {
    /// A route by one of these neighbours.
    pub fn via(prefix: Prefix, neighbours: impl IntoIterator<Item = ZonedAddress>) -> Self {
        let via = spanned(neighbours.into_iter().map(Located::from).collect());
        RouteSection { via: Some(via), ..RouteSection::to(prefix) }
    }

    /// A route without an action.
    fn to(prefix: Prefix) -> Self {
        RouteSection {
            prefix: AnyPrefix(prefix).into(),
            via: None,
            table: None,
            encaps: None,
            blackhole: None,
            path: None,
            nic: None,
        }
    }

    /// The section of a route; `None` for one that another section implies.
    pub(super) fn of(ports: Ports<'_>, table: TableId, prefix: Prefix, action: &RouteAction) -> Option<Self> {
        let route = RouteSection { table: unless(table.0, 0, integer), ..RouteSection::to(prefix) };
        Some(match action {
            RouteAction::Via(next_hops) => {
                let via = next_hops.iter().map(|next_hop| ports.next_hop(*next_hop)).collect();
                RouteSection { via: Some(spanned(via)), ..route }
            }
            RouteAction::Encaps { segments, mode, hmac_key_id } => {
                let hmac_key_id = hmac_key_id.map(integer);
                let segments = Some(addresses(segments));
                let encaps = EncapsSection { segments, policy: None, mode: *mode, hmac_key_id };
                RouteSection { encaps: Some(spanned(encaps)), ..route }
            }
            RouteAction::Policy { policy, mode } => {
                let policy = Some(integer(policy.0));
                let encaps = EncapsSection { segments: None, policy, mode: *mode, hmac_key_id: None };
                RouteSection { encaps: Some(spanned(encaps)), ..route }
            }
            RouteAction::Placed(paths) => {
                let paths = paths.iter().map(|path| spanned(PathSection::of(path))).collect();
                RouteSection { path: Some(spanned(paths)), ..route }
            }
            RouteAction::Blackhole => RouteSection { blackhole: Some(spanned(true)), ..route },
            RouteAction::ToPeer => return None,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSection {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Located<HostAddress>>,
    pub template: Option<Spanned<TemplateSection>>,
    pub entropy: Option<Located<U32>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<Located<HostAddress>>,
    pub rank: Option<Located<Integer<0, 0xFFFF>>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub denied: bool,
    pub probe: Option<Spanned<bool>>,
    pub probe_segments: Option<Spanned<Vec<Located<HostAddress>>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateSection {
    pub base: Located<HostAddress>,
    pub choice: Vec<ChoiceSection>,
    pub values: Option<Vec<Located<U32>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Located<U32>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceSection {
    pub bits: Located<Integer<0, 32>>,
    pub choices: Located<Integer<1, 0xFFFF_FFFF>>,
    pub step: Ipv6Addr,
}

impl PathSection {
    fn of(placed: &HeadendPath) -> Self {
        let HeadendPath { path, probing, entropy } = placed;
        let (probe, probe_segments) = match probing {
            Probing::ThereAndBack => (None, None),
            Probing::By(segments) => (None, Some(spanned(addresses(segments)))),
            Probing::Never => (Some(spanned(false)), None),
        };
        PathSection {
            segments: addresses(&path.segments),
            template: None,
            entropy: entropy.map(|entropy| integer(entropy.0)),
            via: addresses(&path.nodes),
            rank: Some(integer(path.rank)),
            denied: path.is_denied,
            probe,
            probe_segments,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastRouteSection {
    pub source: Located<HostAddress>,
    pub group: Located<MulticastAddress>,
    pub incoming: Option<Located<PortName>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outgoing: Vec<Located<PortName>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub end_mt: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub require_hmac: bool,
}

impl MulticastRouteSection {
    pub(super) fn of(ports: Ports<'_>, route: &MulticastRoute) -> Self {
        MulticastRouteSection {
            source: HostAddress(route.source).into(),
            group: MulticastAddress(route.group).into(),
            incoming: route.incoming.map(|port| ports.name(port).into()),
            outgoing: route.outgoing.iter().map(|port| ports.name(*port).into()).collect(),
            end_mt: route.end_mt,
            require_hmac: route.require_hmac,
        }
    }
}
