//! Connection management against messages of Linux, tshark, lossy networks, hostile messages, and parties that fail.

mod garbage;
mod golden;
mod ipv4;
mod network;
mod peers;
mod refused;
mod table;
mod tshark;
mod virtual_time;
