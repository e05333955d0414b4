//! What controller, nodes, sources and clients say to each other.
