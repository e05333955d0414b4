//! Tests of the fuzz targets.

mod replay;
mod workers;
