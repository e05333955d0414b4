//! A corpus as one file: inputs one behind the other, each after its length in four octets, most significant first.

use std::io;
use std::path::Path;

/// Puts inputs into one file's octets, shortest first, each once.
pub fn pack(inputs: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut inputs: Vec<Vec<u8>> = inputs.into_iter().collect();
    inputs.sort_by_key(|input| (input.len(), input.clone()));
    inputs.dedup();
    inputs.iter().flat_map(|input| [&(input.len() as u32).to_be_bytes(), &input[..]].concat()).collect()
}

/// The inputs in a file's octets; `None` when they end within one.
pub fn unpack(mut octets: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    while !octets.is_empty() {
        let (len, rest) = octets.split_first_chunk()?;
        let (input, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        inputs.push(input.to_vec());
        octets = rest;
    }
    Some(inputs)
}

/// The inputs of a corpus as the fuzzer keeps it: a file each; or of one file that [`pack`] made.
///
/// # Errors
///
/// If they cannot be read, or the file ends within an input.
pub fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    if !path.is_dir() {
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, format!("{} ends within an input", path.display()));
        return unpack(&std::fs::read(path)?).ok_or_else(cut);
    }
    let mut names = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    names.into_iter().map(std::fs::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_inputs_are_unpacked() {
        let inputs = [vec![2; 300], vec![], vec![1, 2, 3], vec![2; 300]];
        let packed = pack(inputs);
        assert_eq!(unpack(&packed), Some(vec![vec![], vec![1, 2, 3], vec![2; 300]]));
        assert_eq!(unpack(&packed[..packed.len() - 1]), None);
        assert_eq!(unpack(&packed[..2]), None);
    }
}
