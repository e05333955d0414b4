//! Networks in namespaces of one machine, built from a topology file.
