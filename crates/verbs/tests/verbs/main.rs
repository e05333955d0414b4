//! This machine, with or without RDMA.

mod machine;
