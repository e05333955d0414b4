//! Files of fabrics.
#![no_main]

srdma_fuzz::text_target!(fabric);
