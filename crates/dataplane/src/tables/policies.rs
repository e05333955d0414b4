//! SR policies: their definitions, what routes and SIDs use of them, and which segment lists are valid.

use super::{Shared, Tables, Target};
use crate::config::ConfigError;
use crate::cross_connect;
use crate::drop::DropReason;
use crate::encaps::{Encaps, EncapsMode, InnerFields};
use crate::entropy;
use crate::policy::{Form, Outer, Payload, PolicyError, PolicyId, PreparedPolicy, SrPolicy};
use crate::scope;
use crate::security::HmacKey;
use srdma_frame::{Frame, Pool};
use std::collections::BTreeMap;

/// The SR policies of a node.
#[derive(Debug, Default)]
pub(super) struct Policies {
    defined: BTreeMap<PolicyId, SrPolicy>,
    /// Those in use, each in a form.
    prepared: Shared<PreparedPolicy>,
}

fn refused(id: PolicyId, error: PolicyError) -> ConfigError {
    ConfigError::Policy { policy: id.0, error }
}

impl Tables {
    pub(crate) fn policy(&self, id: PolicyId) -> Result<&SrPolicy, ConfigError> {
        self.policies.defined.get(&id).ok_or(ConfigError::UnknownPolicy(id.0))
    }

    /// Adds a policy, or replaces it for all that use it.
    pub(crate) fn set_policy(&mut self, id: PolicyId, policy: SrPolicy, outer: Outer<'_>) -> Result<(), ConfigError> {
        // The longest form, whether it is in use or not, so that a change of the form is always possible.
        let longest = Form { mode: EncapsMode::Encaps, payload: Payload::Ipv6 };
        PreparedPolicy::new(id, &policy, longest, outer).map_err(|error| refused(id, error))?;
        for known in self.policies.prepared.values_in_use_mut().filter(|known| known.id == id) {
            *known = PreparedPolicy::new(id, &policy, known.form, outer).map_err(|error| refused(id, error))?;
        }
        self.policies.defined.insert(id, policy);
        Ok(())
    }

    pub(crate) fn remove_policy(&mut self, id: PolicyId) -> Result<(), ConfigError> {
        self.policy(id)?;
        if self.policies.prepared.find(|known| known.id == id).is_some() {
            return Err(ConfigError::PolicyInUse(id.0));
        }
        self.policies.defined.remove(&id);
        Ok(())
    }

    /// The place of a policy in a form, used once more.
    pub(crate) fn hold_policy(&mut self, id: PolicyId, form: Form, outer: Outer<'_>) -> Result<u32, ConfigError> {
        let Policies { defined, prepared } = &mut self.policies;
        if let Some(place) = prepared.find(|known| known.id == id && known.form == form) {
            prepared.hold_again(place);
            return Ok(place);
        }
        let policy = defined.get(&id).ok_or(ConfigError::UnknownPolicy(id.0))?;
        let new = PreparedPolicy::new(id, policy, form, outer).map_err(|error| refused(id, error))?;
        Ok(prepared.hold(|_| false, || new))
    }

    /// Ends a use of a policy.
    pub(crate) fn release_policy(&mut self, place: u32) {
        self.policies.prepared.release(place);
    }

    pub(super) fn sign_policies(&mut self, key_id: u32, key: &HmacKey) {
        self.policies.prepared.values_mut().for_each(|policy| policy.sign(key_id, key));
    }

    pub(super) fn signs_policies(&self, key_id: u32) -> bool {
        self.policies.defined.values().any(|policy| policy.hmac_key_id == Some(key_id))
    }

    /// Pushes the headers of one of a policy's segment lists, by the flow of the packet; returns how many octets.
    pub(crate) fn push_policy(&mut self, place: u32, frame: &mut Frame, pool: &mut Pool) -> Result<usize, DropReason> {
        let headers = self.choose_list(place, entropy::of_packet(frame.head(pool)));
        headers.push(frame, pool).map(|()| headers.octets())
    }

    /// The same onto a packet with these fields.
    #[cold]
    pub(crate) fn push_policy_around(
        &mut self,
        place: u32,
        inner: InnerFields,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<usize, DropReason> {
        let headers = self.choose_list(place, inner.flow());
        headers.push_around(inner, frame.len(), frame, pool).map(|()| headers.octets())
    }

    /// The same onto an Ethernet frame, which stays whole, by its flow.
    pub(crate) fn push_policy_onto_frame(
        &mut self,
        place: u32,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let head = frame.head(pool);
        let (traffic_class, flow) = (cross_connect::traffic_class(head), cross_connect::flow(head));
        self.choose_list(place, flow).push_onto_frame(traffic_class, flow, frame, pool)
    }

    /// The headers of the segment list for a flow's hash.
    fn choose_list(&mut self, place: u32, flow: u32) -> &Encaps {
        if !self.policies.prepared[place as usize].is_of(self.generation) {
            self.find_valid_lists(place);
        }
        self.policies.prepared[place as usize].choose(flow, self.ecmp_salt)
    }

    /// Finds out which segment lists of a policy are valid (RFC 9256 section 5.1): their first segments can be reached.
    #[cold]
    fn find_valid_lists(&mut self, place: u32) {
        let lists: Vec<bool> = self.policies.prepared[place as usize]
            .destinations()
            .map(|destination| destination.is_some_and(|destination| self.is_reachable(&destination)))
            .collect();
        self.policies.prepared[place as usize].set_valid(lists.into_iter(), self.generation);
    }

    /// Whether the main table leads anywhere from where packets to an address can go on.
    fn is_reachable(&self, destination: &[u8; 16]) -> bool {
        let is_usable = |adjacency: &u32| {
            let adjacency = self.adjacency(*adjacency);
            adjacency.resolved && !adjacency.is_avoided
        };
        if scope::may_be_special(destination[0]) && scope::is_bound(destination) {
            return false;
        }
        match self.lookup_main(destination) {
            Some(Target::Adjacency(adjacency)) => is_usable(&adjacency),
            Some(Target::Ecmp(set)) => self.ecmp[set as usize].adjacencies.iter().any(is_usable),
            Some(Target::Sid(_) | Target::Group(_) | Target::Encaps(_) | Target::Policy(_) | Target::Placed(_)) => true,
            // A multicast route has its own table.
            None => destination[0] == 0xFF,
            Some(Target::Local | Target::Blackhole | Target::ToPeer) => false,
        }
    }
}
