//! Notifications of congestion as text.

use super::list;
use crate::layer::{Cm, FastCnp, IoamNode, IoamTrace, Notification, OptionMeaning, Pause, PausedClass, Pfc};
use std::fmt::{self, Display, Formatter, Write};

impl Display for OptionMeaning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            OptionMeaning::FastCnp(fast_cnp) => fast_cnp.fmt(f),
            OptionMeaning::IoamTrace(trace) => trace.fmt(f),
        }
    }
}

impl Display for Notification {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Notification { traffic_class, level, sequence, hold_us, congested, .. } = self;
        write!(f, "class {traffic_class} level {level} hold {hold_us} us sequence {sequence} congested {congested}")
    }
}

impl Display for FastCnp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Fast CNP option {} about packets to {}", self.option, self.original_destination)?;
        match &self.trace {
            Some(trace) => write!(f, " with {trace}"),
            None => Ok(()),
        }
    }
}

impl Display for IoamTrace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "IOAM trace namespace {} type {:#08x} ", self.namespace_id, self.trace_type)?;
        let free = (usize::from(self.remaining_len_words)).checked_div(self.node_len_words.into());
        match free {
            Some(nodes) => write!(f, "room for {nodes} more")?,
            None => write!(f, "{} words free", self.remaining_len_words)?,
        }
        let flags = [(self.overflow, " overflow"), (self.loopback, " loopback"), (self.active, " active")];
        flags.into_iter().filter(|(set, _)| *set).try_for_each(|(_, name)| f.write_str(name))?;
        f.write_str(" {")?;
        list(f, &self.nodes, |f, node| node.fmt(f))?;
        f.write_char('}')
    }
}

impl Display for IoamNode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.node_id, self.node_id_wide) {
            (Some(id), _) => write!(f, "node {id:#x}")?,
            (None, Some(id)) => write!(f, "node {id}")?,
            (None, None) => f.write_str("node")?,
        }
        let plain = [
            ("hop limit", self.hop_limit.map(u32::from)),
            ("in", self.ingress),
            ("out", self.egress),
            ("queue", self.queue_depth),
            ("buffer", self.buffer_occupancy),
        ];
        for (name, value) in plain {
            if let Some(value) = value {
                write!(f, " {name} {value}")?;
            }
        }
        match (self.timestamp_seconds, self.timestamp_fraction) {
            (Some(seconds), Some(fraction)) => write!(f, " at {seconds} s and {fraction}")?,
            (Some(seconds), None) => write!(f, " at {seconds} s")?,
            (None, Some(fraction)) => write!(f, " at {fraction}")?,
            (None, None) => {}
        }
        if let Some(delay_ns) = self.transit_delay_ns {
            write!(f, " delay {delay_ns} ns")?;
        }
        if let Some(load) = &self.link_load {
            write!(f, " link {} Mbit/s {} octets sent", load.rate_mbit_per_s, load.sent_octets)?;
        }
        if let Some(data) = self.namespace_data {
            write!(f, " data {data:#x}")?;
        }
        match (self.opaque_schema_id, &self.opaque) {
            (Some(schema_id), Some(opaque)) => write!(f, " schema {schema_id:#x} ({opaque})"),
            _ => Ok(()),
        }
    }
}

impl Display for Pfc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "PFC classes {:#04x} {{", self.class_enable)?;
        list(f, &self.classes, |f, class| class.fmt(f))?;
        f.write_char('}')
    }
}

impl Display for PausedClass {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.quanta {
            0 => write!(f, "resume {}", self.class),
            quanta => write!(f, "pause {} for {}", self.class, Quanta(quanta, self.pause_ns)),
        }
    }
}

impl Display for Pause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.quanta {
            0 => f.write_str("PAUSE: resume"),
            quanta => write!(f, "PAUSE for {}", Quanta(quanta, self.pause_ns)),
        }
    }
}

struct Quanta(u16, Option<u64>);

impl Display for Quanta {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} quanta", self.0)?;
        self.1.map_or(Ok(()), |pause_ns| write!(f, ", {pause_ns} ns"))
    }
}

impl Display for Cm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "CM {name}")?,
            None => write!(f, "CM attribute {:#06x}", self.attribute_id)?,
        }
        let numbers = [
            (" id ", self.local_id),
            (" peer's id ", self.remote_id),
            (" QPN ", self.local_qpn),
            (" peer's QPN ", self.remote_qpn),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                write!(f, "{name}{number:#x}")?;
            }
        }
        Ok(())
    }
}
