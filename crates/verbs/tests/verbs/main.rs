//! This machine, with or without RDMA; and a soft-RoCE guest.

mod guest;
mod machine;
