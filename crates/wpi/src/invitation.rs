//! Invitations: how the driver of a target learns that it has to join a group (D211).
//!
//! ```text
//!   source's driver ── creates group 7, "wpi m 5f3a…" ──► controller
//!          │                                                  ▲
//!          └── call: group 7, buffer m, octets, targets ──► target's driver: is the group's name that of this call?
//! ```
//!
//! The call proves nothing. The group does: the controller has it from a client with a token of the tenant, and its
//! name has the digest of all that the call says. A forged call names no group of that name; a repeated one invites
//! those that the source invites.

use crate::core::{BufferId, Part, Refusal, Target};
use crate::messages::Invitation;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Octets of the digest in a group's name.
const DIGEST_OCTETS: usize = 20;

/// What a target is invited to: checked, but for the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invited {
    pub(crate) group: u32,
    pub(crate) buffer: BufferId,
    pub(crate) shard: Option<u32>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) is_whole: bool,
    pub(crate) timeout: Duration,
    /// The name that the group has if the invitation is its source's.
    pub(crate) group_name: String,
}

/// The name of the group of a part, at most 128 octets, as the controller permits.
pub(crate) fn group_name(buffer: &BufferId, part: &Part, is_whole: bool) -> String {
    name_of(buffer, part.shard, [part.offset, part.length], is_whole, part.targets.iter().map(Target::as_str))
}

fn name_of<'a>(
    buffer: &BufferId,
    shard: Option<u32>,
    range: [u64; 2],
    is_whole: bool,
    targets: impl Iterator<Item = &'a str>,
) -> String {
    let mut digest = Sha256::new();
    let mut field = |octets: &[u8]| {
        // With its length: two lists of fields have no octets in common.
        digest.update((octets.len() as u64).to_be_bytes());
        digest.update(octets);
    };
    field(buffer.as_str().as_bytes());
    field(&number_of(shard).to_be_bytes());
    range.iter().for_each(|number| field(&number.to_be_bytes()));
    field(&[is_whole.into()]);
    targets.for_each(|target| field(target.as_bytes()));
    format!("wpi {buffer} {}", hex::encode(&digest.finalize()[..DIGEST_OCTETS]))
}

/// The shard in a message: and 1, so that 0 is none.
fn number_of(shard: Option<u32>) -> u32 {
    shard.map_or(0, |shard| shard.saturating_add(1))
}

/// The invitation of a target.
pub(crate) fn of(
    group: u32,
    buffer: &BufferId,
    part: &Part,
    is_whole: bool,
    target: &Target,
    timeout: Duration,
) -> Invitation {
    Invitation {
        group,
        buffer_id: buffer.to_string(),
        offset: part.offset,
        length: part.length,
        shard: number_of(part.shard),
        is_whole,
        targets: part.targets.iter().map(ToString::to_string).collect(),
        target: target.to_string(),
        timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
    }
}

/// Why an invitation is not followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unheeded {
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("{0} is not this node: it is named by --node")]
    OtherNode(Target),
    #[error("{0} is not among the targets of the part")]
    NotInvited(Target),
    #[error("the part has no octets")]
    Empty,
}

/// Checks an invitation.
pub(crate) fn parse(
    invitation: &Invitation,
    is_own: impl Fn(&str) -> bool,
    longest: Duration,
) -> Result<Invited, Unheeded> {
    let buffer = BufferId::parse(&invitation.buffer_id)?;
    let target = Target::parse(&invitation.target)?;
    if !is_own(target.host()) {
        return Err(Unheeded::OtherNode(target));
    }
    if !invitation.targets.contains(&invitation.target) {
        return Err(Unheeded::NotInvited(target));
    }
    if invitation.length == 0 {
        return Err(Unheeded::Empty);
    }
    let shard = invitation.shard.checked_sub(1);
    let Invitation { group, offset, length, is_whole, .. } = *invitation;
    let targets = invitation.targets.iter().map(String::as_str);
    let group_name = name_of(&buffer, shard, [offset, length], is_whole, targets);
    let timeout = Duration::from_millis(invitation.timeout_ms.into()).min(longest);
    Ok(Invited { group, buffer, shard, offset, length, is_whole, timeout, group_name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> Part {
        let targets = ["a", "10.0.0.2:7"].map(|target| Target::parse(target).expect("a target")).to_vec();
        Part { shard: Some(3), offset: 5, length: 9, targets }
    }

    fn invitation() -> Invitation {
        let buffer = BufferId::parse("m").expect("a name");
        of(7, &buffer, &part(), false, &part().targets[1], Duration::from_secs(3))
    }

    fn parsed(invitation: &Invitation) -> Result<Invited, Unheeded> {
        parse(invitation, |host| host == "10.0.0.2", Duration::from_secs(60))
    }

    /// D211.
    #[test]
    fn the_groups_name_confirms_all_of_an_invitation() {
        let buffer = BufferId::parse("m").expect("a name");
        let name = group_name(&buffer, &part(), false);
        let invited = parsed(&invitation()).expect("good");
        assert_eq!(
            (invited.group_name.as_str(), invited.shard, invited.timeout.as_secs()),
            (name.as_str(), Some(3), 3)
        );
        assert!(name.starts_with("wpi m ") && name.len() == 46, "{name}");
        let forged = |change: fn(&mut Invitation)| {
            let mut invitation = invitation();
            change(&mut invitation);
            parsed(&invitation).expect("well-formed").group_name
        };
        for change in [
            (|i: &mut Invitation| i.buffer_id = "n".to_owned()) as fn(&mut Invitation),
            |i| i.offset = 6,
            |i| i.length = 10,
            |i| i.shard = 0,
            |i| i.shard = 5,
            |i| i.is_whole = true,
            |i| i.targets.push("b".to_owned()),
            |i| i.targets.swap(0, 1),
            |i| i.targets = vec!["10.0.0.2:7".to_owned()],
            |i| i.targets[0] = "b".to_owned(),
        ] {
            assert_ne!(forged(change), name);
        }
        let longest = BufferId::parse(&"x".repeat(64)).expect("a name");
        assert!(group_name(&longest, &part(), true).len() <= 128);
    }

    proptest! {
        /// What a peer sends is an invitation whose group has a name that the controller permits, or is refused by a
        /// sentence that a terminal shows.
        #[test]
        fn any_message_is_an_invitation_or_refused(
            buffer_id in "[a-z./]{0,70}|.*",
            targets in proptest::collection::vec("[a-z0-9.:\\[\\]]{0,8}|.*", 0..4),
            target in "[a-z0-9.:]{0,8}|.*",
            numbers in any::<(u32, u64, u64, u32)>(),
            is_own: bool,
        ) {
            let (group, offset, length, shard) = numbers;
            let names = targets.iter().chain([&target]).cloned().collect();
            let message = Invitation {
                group, buffer_id, offset, length, shard, target, targets: names, ..Invitation::default()
            };
            match parse(&message, |_| is_own, Duration::from_secs(1)) {
                Ok(invited) => {
                    prop_assert!(is_own && invited.group_name.len() <= 128 && invited.group_name.is_ascii());
                    prop_assert_eq!(invited.shard.is_none(), shard == 0);
                }
                Err(unheeded) => prop_assert!(!unheeded.to_string().chars().any(char::is_control)),
            }
        }
    }

    #[test]
    fn an_invitation_for_others_is_not_followed() {
        let target = |text: &str| Target::parse(text).expect("a target");
        let other = Invitation { target: "a".to_owned(), ..invitation() };
        assert_eq!(parsed(&other), Err(Unheeded::OtherNode(target("a"))));
        let own = Invitation { target: "10.0.0.2".to_owned(), ..invitation() };
        assert_eq!(parsed(&own), Err(Unheeded::NotInvited(target("10.0.0.2"))));
        assert_eq!(parsed(&Invitation { length: 0, ..invitation() }), Err(Unheeded::Empty));
        let name = Invitation { buffer_id: "../m".to_owned(), ..invitation() };
        assert!(matches!(parsed(&name), Err(Unheeded::Refused(Refusal::BufferName(_)))));
        let long = Invitation { timeout_ms: u32::MAX, ..invitation() };
        assert_eq!(parsed(&long).expect("good").timeout, Duration::from_secs(60));
    }
}
