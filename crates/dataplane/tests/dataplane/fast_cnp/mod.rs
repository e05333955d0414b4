//! Fast CNP at a switch (draft-xiao-rtgwg-rocev2-fast-cnp, D40–D48): from packets to packets.

mod borders;
mod end_e;
mod first_hop;
mod hostile;
mod notify;
mod packets;
mod path_traces;
mod refusal;
mod tree;
