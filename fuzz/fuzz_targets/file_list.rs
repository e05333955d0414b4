//! Lists of files that are broadcast.
#![no_main]

srdma_fuzz::text_target!(file_list);
